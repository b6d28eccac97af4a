// @ts-check
// The page's worker: owns the package and the GPU device. What the user wants is noted as soon as it is said; then what is there is made to fit it, one step
// after the other. A newer wish stops the steps for an older one.

import { cacheUsage, clearCache, createDecoder, families, version, WgvaeError } from '../src/index.js';
import { fetchFile, nameOf } from './fetch-file.js';
import { sortFiles } from './sort-files.js';

/** @typedef {import('./protocol.js').ToWorker} ToWorker */
/** @typedef {import('./protocol.js').FromWorker} FromWorker */
/** @typedef {import('./protocol.js').State} State */
/** @typedef {import('../src/index.js').Decoder} Decoder */

/** Progress is told this often, milliseconds. */
const PROGRESS_EVERY = 50;

// What is wanted.

/** @type {import('./protocol.js').Settings} */
let settings;
/** Choices that nobody has looked at yet, oldest first. @type {Extract<ToWorker, { type: 'open' | 'files' }>[]} */
const choices = [];
/** Whether to decode as soon as that is possible. */
let wantsDecode = false;

// What is there.

/** @type {State} */
let state = 'starting';
/** Whether the page has been told about the module. */
let isIntroduced = false;
/** @type {import('./protocol.js').ModelChoice | undefined} */
let model;
/** `file`: where they are read from, once they are there. @type {{ choice: import('./protocol.js').LatentsChoice, file?: File, shape?: number[] } | undefined} */
let latents;
/** @type {Decoder | undefined} */
let decoder;
/** What `decoder` was opened with. */
let openedWith = '';
/** For what is wanted; undefined until that is known. @type {import('../src/index.js').Plan | undefined} */
let plan;
/** Stops what is going on. */
let running = new AbortController();
/** What is going on. @type {Promise<void>} */
let work = Promise.resolve();

self.onmessage = ({ data }) => receive(data);

/** @param {ToWorker} message */
function receive(message) {
  switch (message.type) {
    case 'start':
      settings = message.settings;
      begin();
      break;
    case 'open':
    case 'files':
      choices.push(message);
      wantsDecode = message.type === 'open' && message.decode === true;
      plan = undefined;
      begin();
      break;
    case 'settings':
      settings = message.settings;
      plan = undefined;
      begin();
      break;
    case 'decode':
      wantsDecode = true;
      begin();
      break;
    case 'cancel':
      wantsDecode = false;
      running.abort();
      break;
    case 'clear-cache':
      // Beside what is going on.
      tellCache(clearCache);
      break;
  }
}

/** Stops what is going on, and does what is wanted by now when it has stopped. */
function begin() {
  running.abort();
  const mine = (running = new AbortController());
  work = work.then(async () => {
    try {
      mine.signal.throwIfAborted();
      await fulfil(mine.signal);
    } catch (error) {
      // A newer turn does it all.
      if (mine !== running) return;
      // Asked for by the user, who sees the buttons change.
      if (mine.signal.aborted) setState(restState());
      else fail(error);
      // What was chosen behind something that is wrong.
      if (!mine.signal.aborted && choices.length > 0) begin();
    }
  });
}

/** @param {AbortSignal} signal */
async function fulfil(signal) {
  if (!isIntroduced) await introduce();
  signal.throwIfAborted();
  while (choices.length > 0) await choose(choices[0], signal);
  if (!plan) await prepare(signal);
  if (wantsDecode && plan) await decode(signal);
}

async function introduce() {
  tell({ type: 'module', version: await version(), families: await families() });
  isIntroduced = true;
  await tellCache();
}

/**
 * Takes up the first of the choices.
 * @param {Extract<ToWorker, { type: 'open' | 'files' }>} choice
 * @param {AbortSignal} signal
 */
async function choose(choice, signal) {
  const sorted = choice.type === 'open' ? choice : await sortFiles(choice.files, choice.kind).catch((error) => {
    choices.shift();
    throw error;
  });
  signal.throwIfAborted();
  choices.shift();
  if (sorted.model) {
    model = sorted.model;
    tell({ type: 'model', name: nameOfModel(model), info: undefined });
    await closeModel();
  }
  if (sorted.latents) {
    latents = { choice: sorted.latents };
    // As the view does: the first of them.
    settings = { ...settings, index: 0 };
    tell({ type: 'latents', name: nameOfLatents(latents.choice), shape: undefined });
  }
}

/**
 * Opens what is chosen and not open yet, and plans.
 * @param {AbortSignal} signal
 */
async function prepare(signal) {
  if (model) await openModel(model, signal);
  if (decoder && latents && !latents.shape) {
    setState('loading');
    // Once: a link may work no second time.
    latents.file ??= latents.choice.file ?? (await fetchFile(latents.choice.url ?? '', signal));
    latents.shape = await decoder.shapeOf(latents.file, { signal });
    tell({ type: 'latents', name: nameOfLatents(latents.choice), shape: latents.shape });
  }
  signal.throwIfAborted();
  if (decoder && latents?.shape) {
    setState('planning');
    checkChannels(latents.shape, decoder);
    const [rows, columns] = latents.shape.slice(-2);
    const scale = decoder.info.pixels_per_latent;
    plan = decoder.plan({ width: columns * scale, height: rows * scale, memoryBudget: settings.budget });
  }
  tell({ type: 'plan', plan });
  setState(restState());
}

/**
 * @param {import('./protocol.js').ModelChoice} choice
 * @param {AbortSignal} signal
 */
async function openModel(choice, signal) {
  const { precision, family, unscaled, budget } = settings;
  // A budget needs the weights on the host, so that they can make way.
  const wanted = JSON.stringify([precision, family, unscaled, budget !== undefined]);
  if (decoder && openedWith === wanted) return;
  await closeModel();
  setState('loading');
  decoder = await createDecoder({
    model: choice.files ?? choice.urls ?? [],
    config: choice.config,
    family: family ?? undefined,
    precision,
    unscaled,
    memoryBudget: budget,
    cache: true,
    onProgress: throttle((progress) => tell({ type: 'progress', progress })),
    onNotice: (notice) => tell({ type: 'notice', notice }),
    signal,
  });
  openedWith = wanted;
  tell({ type: 'model', name: nameOfModel(choice), info: decoder.info });
  await tellCache();
}

async function closeModel() {
  const closing = decoder;
  decoder = undefined;
  await closing?.destroy();
}

/** @param {AbortSignal} signal */
async function decode(signal) {
  wantsDecode = false;
  if (!decoder || !latents?.file || !plan) return;
  const { size } = plan.result;
  checkSides(size, decoder.device);
  const outcome = { ...size, plan, budget: settings.budget, isDemo: Boolean(model?.isDemo) };
  const name = nameOfLatents(latents.choice);
  setState('decoding');
  const bitmap = await decoder.decode(latents.file, { index: settings.index, memoryBudget: settings.budget, signal });
  tell({ type: 'picture', bitmap, name }, [bitmap]);
  const { report, info } = decoder;
  if (report) tell({ type: 'outcome', outcome: { ...outcome, report, info } });
  setState('done');
}

/**
 * @param {number[]} shape
 * @param {Decoder} decoder
 */
function checkChannels(shape, { info }) {
  const [channels, expected] = [shape.at(-3), info.latent_channels];
  if (channels === expected) return;
  const facts = { expected: `${expected}`, found: `${channels}` };
  throw new WgvaeError('input', `these latents have ${channels} channels, but the model takes ${expected}`, facts);
}

/**
 * Canvases that are wider or higher than a texture stay blank in Chromium.
 * @param {{ width: number, height: number }} size of the picture
 * @param {GPUDevice} device
 */
function checkSides({ width, height }, { limits }) {
  const facts = { expected: `at most ${limits.maxTextureDimension2D} pixels a side`, found: `${width}x${height}` };
  if (Math.max(width, height) <= limits.maxTextureDimension2D) return;
  throw new WgvaeError('canvas', `this picture is too large to be shown: expected ${facts.expected} on this device, found ${facts.found}`, facts);
}

/** What the page can do next. @returns {State} */
function restState() {
  return plan ? 'ready' : 'idle';
}

/** @param {State} next */
function setState(next) {
  state = next;
  tell({ type: 'state', state, canDecode: plan !== undefined });
}

/** @param {unknown} error */
function fail(error) {
  const { code = 'unknown', message = String(error), smallest, seconds } = /** @type {Partial<WgvaeError>} */ (error ?? {});
  const problem = { code, message, smallest, seconds, during: state };
  wantsDecode = false;
  // The module is gone, and the decoder with it: whoever chooses the model again, or another setting, gets a new one.
  if (code === 'internal') {
    plan = undefined;
    closeModel();
  }
  if (!('code' in Object(error))) console.error(error);
  tell({ type: 'plan', plan });
  setState('failed');
  tell({ type: 'problem', problem });
}

/**
 * What the cache takes, after `change`. A failure is a notice: models and pictures are well without a cache.
 * @param {() => Promise<void>} [change]
 */
async function tellCache(change = async () => {}) {
  try {
    await change();
    tell({ type: 'cache', ...(await cacheUsage()) });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    tell({ type: 'notice', notice: { code: 'cache-failed', message: `the browser does not let its kept models be counted or removed: ${why}` } });
  }
}

/**
 * @param {FromWorker} message
 * @param {Transferable[]} [transfer]
 */
function tell(message, transfer = []) {
  self.postMessage(message, { transfer });
}

/**
 * Not more often than people can read, and always the last of each step's.
 * @param {(progress: import('../src/index.js').Progress) => void} listener
 * @returns {(progress: import('../src/index.js').Progress) => void}
 */
function throttle(listener) {
  let last = 0;
  return (progress) => {
    const now = performance.now();
    if (now - last < PROGRESS_EVERY && progress.done < progress.total) return;
    last = now;
    listener(progress);
  };
}

/** @param {import('./protocol.js').LatentsChoice} choice */
function nameOfLatents({ file, url }) {
  return file?.name ?? nameOf(url ?? '');
}

/** @param {import('./protocol.js').ModelChoice} choice */
function nameOfModel({ files, urls, isDemo }) {
  if (isDemo) return 'Demo model';
  const names = files?.map((file) => file.name) ?? urls?.map(nameOf) ?? [];
  return names.length > 1 ? `${names[0]} and ${names.length - 1} more` : (names[0] ?? '');
}
