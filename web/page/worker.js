// @ts-check
// The page's worker: owns the package and the GPU device. What the user wants is noted as soon as it is said; then what is there is made to fit it, one step
// after the other. A newer wish stops the steps for an older one.

import { cacheUsage, clearCache, createDecoder, createVae, families, version, WgvaeError } from '../src/index.js';
import { fetchFile, nameOf } from './fetch-file.js';
import { Original } from './original.js';
import { psnr } from './psnr.js';
import { isPicture, sortFiles } from './sort-files.js';

/** @typedef {import('./protocol.js').ToWorker} ToWorker */
/** @typedef {import('./protocol.js').FromWorker} FromWorker */
/** @typedef {import('./protocol.js').State} State */
/** @typedef {import('../src/index.js').Decoder} Decoder */
/** @typedef {import('../src/index.js').Vae} Vae */

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
/**
 * Latents or a picture. `file`: where they are read from, once they are there, and what they are.
 * @type {{ choice: import('./protocol.js').InputChoice, file?: File, isPicture?: boolean, shape?: number[], original?: Original } | undefined}
 */
let input;
/** @type {Decoder | undefined} */
let decoder;
/** The same, if it can encode, too. @type {Vae | undefined} */
let vae;
/** What `decoder` was opened with. */
let openedWith = '';
/** For what is wanted; none until that is known. @type {import('./protocol.js').Plans} */
let plans = [];
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
      plans = [];
      begin();
      break;
    case 'settings':
      settings = message.settings;
      plans = [];
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
  if (plans.length === 0) await prepare(signal);
  if (wantsDecode && plans.length > 0) await make(signal);
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
  if (sorted.input) {
    input?.original?.close();
    input = { choice: sorted.input };
    // As the view does: the first of them.
    settings = { ...settings, index: 0 };
    tell({ type: 'input', name: nameOfInput(input.choice) });
  }
}

/**
 * Opens what is chosen and not open yet, and plans.
 * @param {AbortSignal} signal
 */
async function prepare(signal) {
  if (input?.choice.file) await identify(signal);
  if (model) await openModel(model, signal);
  if (decoder && input) {
    setState('loading');
    await identify(signal);
    // An address that led to a picture.
    if (model) await openModel(model, signal);
    await openInput(signal);
  }
  signal.throwIfAborted();
  if (decoder && input) {
    setState('planning');
    plans = planned();
  }
  tell({ type: 'plans', plans });
  setState(restState());
}

/**
 * Gets the file of the input, and finds out what it is.
 * @param {AbortSignal} signal
 */
async function identify(signal) {
  if (!input) return;
  // Once: a link may work no second time.
  input.file ??= input.choice.file ?? (await fetchFile(input.choice.url ?? '', signal));
  input.isPicture ??= await isPicture(input.file);
  signal.throwIfAborted();
}

/**
 * Finds out how large the input is, and shows a picture.
 * @param {AbortSignal} signal
 */
async function openInput(signal) {
  if (!decoder || !input?.file) return;
  const name = nameOfInput(input.choice);
  if (!input.isPicture && !input.shape) {
    input.shape = await decoder.shapeOf(input.file, { signal });
    tell({ type: 'input', name, shape: input.shape });
  }
  if (input.isPicture && !input.original) {
    const original = await Original.open(input.file);
    if (signal.aborted) original.close();
    signal.throwIfAborted();
    input.original = original;
    tell({ type: 'input', name, size: original.size });
    const bitmap = await original.bitmap(decoder.info.pixels_per_latent);
    tell({ type: 'original', bitmap, name }, [bitmap]);
  }
}

/** What will be done with the input. @returns {import('./protocol.js').Plans} */
function planned() {
  const memoryBudget = settings.budget;
  if (decoder && input?.shape) {
    checkChannels(input.shape, decoder);
    const [rows, columns] = input.shape.slice(-2);
    const scale = decoder.info.pixels_per_latent;
    return [{ operation: 'decode', plan: decoder.plan({ width: columns * scale, height: rows * scale, memoryBudget }) }];
  }
  if (!vae || !input?.original) return [];
  const { width, height } = input.original.part(vae.info.pixels_per_latent);
  return [
    { operation: 'encode', plan: vae.planEncode({ width, height, memoryBudget }) },
    // Its pixels are compared, in memory.
    { operation: 'decode', plan: vae.plan({ width, height, memoryBudget, output: 'image-data' }) },
  ];
}

/**
 * @param {import('./protocol.js').ModelChoice} choice
 * @param {AbortSignal} signal
 */
async function openModel(choice, signal) {
  const { precision, family, unscaled, budget } = settings;
  const encodes = input?.isPicture === true;
  // A budget needs the weights on the host, so that they can make way.
  const wanted = JSON.stringify([precision, family, unscaled, budget !== undefined]);
  if (decoder && openedWith === wanted && (vae || !encodes)) return;
  if (encodes && decoder?.info.parameters.encoder === 0) {
    throw new WgvaeError('input', 'this model has no encoder: it turns latents into pictures, and no picture into latents');
  }
  await closeModel();
  setState('loading');
  /** @type {import('../src/index.js').ModelOptions} */
  const options = {
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
  };
  if (encodes) decoder = vae = await createVae(options);
  else decoder = await createDecoder(options);
  openedWith = wanted;
  tell({ type: 'model', name: nameOfModel(choice), info: decoder.info });
  await tellCache();
}

async function closeModel() {
  const closing = decoder;
  decoder = vae = undefined;
  await closing?.destroy();
}

/** @param {AbortSignal} signal */
async function make(signal) {
  wantsDecode = false;
  if (input?.original) await encodeAndDecode(input.original, signal);
  else await decode(signal);
}

/** @param {AbortSignal} signal */
async function decode(signal) {
  if (!decoder || !input?.file) return;
  checkSides(plans[0].plan.result.size, decoder.device);
  setState('decoding');
  const bitmap = await decoder.decode(input.file, { index: settings.index, memoryBudget: settings.budget, signal });
  tell({ type: 'picture', bitmap, name: nameOfInput(input.choice) }, [bitmap]);
  tell({ type: 'outcomes', outcomes: outcomeOf(0) });
  setState('done');
}

/**
 * @param {Original} original
 * @param {AbortSignal} signal
 */
async function encodeAndDecode(original, signal) {
  if (!vae || !input?.file) return;
  const memoryBudget = settings.budget;
  setState('encoding');
  const latents = await vae.encode(input.file, { memoryBudget, signal });
  const encoded = outcomeOf(0);
  setState('decoding');
  const image = await vae.decode(latents, { output: 'image-data', memoryBudget, signal });
  const likeness = psnr(original.pixels(vae.info.pixels_per_latent), image.data);
  const bitmap = await createImageBitmap(image);
  tell({ type: 'picture', bitmap, name: nameOfInput(input.choice), psnr: likeness }, [bitmap]);
  tell({ type: 'outcomes', outcomes: [...encoded, ...outcomeOf(1)] });
  setState('done');
}

/**
 * What was done last, which was planned as one of `plans`.
 * @param {number} index
 * @returns {import('./protocol.js').Outcome[]}
 */
function outcomeOf(index) {
  const { operation, plan } = plans[index];
  const { size } = operation === 'encode' ? plan.input : plan.result;
  if (!decoder?.report) return [];
  const { report, info } = decoder;
  return [{ operation, ...size, plan, report, info, budget: settings.budget, isDemo: Boolean(model?.isDemo) }];
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
  return plans.length > 0 ? 'ready' : 'idle';
}

/** @param {State} next */
function setState(next) {
  state = next;
  tell({ type: 'state', state, canDecode: plans.length > 0 });
}

/** @param {unknown} error */
function fail(error) {
  const { code = 'unknown', message = String(error), smallest, seconds } = /** @type {Partial<WgvaeError>} */ (error ?? {});
  const problem = { code, message, smallest, seconds, during: state };
  wantsDecode = false;
  // The module is gone, and the decoder with it: whoever chooses the model again, or another setting, gets a new one.
  if (code === 'internal') {
    plans = [];
    closeModel();
  }
  if (!('code' in Object(error))) console.error(error);
  tell({ type: 'plans', plans });
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

/** @param {import('./protocol.js').InputChoice} choice */
function nameOfInput({ file, url }) {
  return file?.name ?? nameOf(url ?? '');
}

/** @param {import('./protocol.js').ModelChoice} choice */
function nameOfModel({ files, urls, isDemo }) {
  if (isDemo) return 'Demo model';
  const names = files?.map((file) => file.name) ?? urls?.map(nameOf) ?? [];
  return names.length > 1 ? `${names[0]} and ${names.length - 1} more` : (names[0] ?? '');
}
