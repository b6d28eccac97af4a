// @ts-check
// The page's worker: owns the package, the GPU device and the canvas. Does one thing after the other; a newer wish to open aborts an older one.

import { cacheUsage, clearCache, createDecoder, families, version, WgvaeError } from '../src/index.js';
import { nameOf } from '../src/http.js';
import { sortFiles } from './sort-files.js';

/** @typedef {import('./protocol.js').ToWorker} ToWorker */
/** @typedef {import('./protocol.js').FromWorker} FromWorker */
/** @typedef {import('./protocol.js').State} State */
/** @typedef {import('../src/index.js').Decoder} Decoder */

/** Progress is told this often, milliseconds. */
const PROGRESS_EVERY = 50;

/** @type {OffscreenCanvas} */
let canvas;
/** @type {import('./protocol.js').Settings} */
let settings;
/** @type {State} */
let state = 'starting';
/** @type {import('./protocol.js').ModelChoice | undefined} */
let model;
/** @type {{ choice: import('./protocol.js').LatentsChoice, shape: number[] | undefined } | undefined} */
let latents;
/** @type {Decoder | undefined} */
let decoder;
/** What `decoder` was opened with. */
let openedWith = '';
/** @type {import('../src/index.js').Plan | undefined} */
let plan;
/** The latents of the picture that is there, if one is. @type {import('./protocol.js').LatentsChoice | undefined} */
let decoded;
/** Stops what is going on. */
let running = new AbortController();
/** What is going on. @type {Promise<void>} */
let work = Promise.resolve();

self.onmessage = ({ data }) => receive(data);

/** @param {ToWorker} message */
function receive(message) {
  switch (message.type) {
    case 'start':
      ({ canvas, settings } = message);
      begin(start);
      break;
    case 'open':
      begin((signal) => open(message, signal));
      break;
    case 'files':
      begin((signal) => openFiles(message, signal));
      break;
    case 'settings':
      settings = message.settings;
      begin(prepare);
      break;
    case 'decode':
      begin(decode);
      break;
    case 'cancel':
      running.abort();
      break;
    case 'download':
      begin(download);
      break;
    case 'clear-cache':
      // Beside what is going on.
      tellCache(clearCache);
      break;
  }
}

/**
 * Stops what is going on, and does `task` when it has stopped.
 * @param {(signal: AbortSignal) => Promise<void>} task
 */
function begin(task) {
  running.abort();
  const mine = (running = new AbortController());
  work = work.then(async () => {
    if (mine.signal.aborted && mine !== running) return;
    try {
      await task(mine.signal);
    } catch (error) {
      // Asked for by the user, who sees the buttons change.
      if (mine.signal.aborted) setState(restState());
      else fail(error);
    }
  });
}

/** @param {AbortSignal} signal */
async function start(signal) {
  tell({ type: 'module', version: await version(), families: await families() });
  signal.throwIfAborted();
  await tellCache();
}

/**
 * @param {Extract<ToWorker, { type: 'open' }>} wish
 * @param {AbortSignal} signal
 */
async function open(wish, signal) {
  if (wish.model) {
    await closeModel();
    model = wish.model;
    tell({ type: 'model', name: nameOfModel(model), info: undefined });
  }
  if (wish.latents) {
    latents = { choice: wish.latents, shape: undefined };
    // As the view does: the first of them.
    settings = { ...settings, index: 0 };
    tell({ type: 'latents', name: nameOfLatents(wish.latents), shape: undefined });
  }
  await prepare(signal);
  if (wish.decode && plan) await decode(signal);
}

/**
 * @param {Extract<ToWorker, { type: 'files' }>} wish
 * @param {AbortSignal} signal
 */
async function openFiles({ files, kind }, signal) {
  const sorted = await sortFiles(files, kind);
  await open({ type: 'open', ...sorted }, signal);
}

/**
 * Opens what is chosen and not open yet, and plans.
 * @param {AbortSignal} signal
 */
async function prepare(signal) {
  plan = undefined;
  if (model) await openModel(model, signal);
  if (decoder && latents && !latents.shape) {
    setState('loading');
    latents.shape = await decoder.shapeOf(latentsInput(latents.choice), { signal });
    tell({ type: 'latents', name: nameOfLatents(latents.choice), shape: latents.shape });
  }
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
  decoded = undefined;
  const closing = decoder;
  decoder = undefined;
  await closing?.destroy();
}

/** @param {AbortSignal} signal */
async function decode(signal) {
  if (!decoder || !latents?.shape || !plan) return;
  decoded = undefined;
  setState('decoding');
  await decoder.decode(latentsInput(latents.choice), { canvas, index: settings.index, memoryBudget: settings.budget, signal });
  decoded = latents.choice;
  const { report, info } = decoder;
  if (report) {
    const { width, height } = plan.image;
    tell({ type: 'outcome', outcome: { width, height, report, plan, info, budget: settings.budget, isDemo: Boolean(model?.isDemo) } });
  }
  setState('done');
}

/** The picture as a file. What a canvas shows is gone after the task that drew it, so it is drawn once more. */
async function download() {
  if (!decoder || !decoded) return;
  const drawn = decoder.present(canvas);
  const blob = await canvas.convertToBlob({ type: 'image/png' });
  await drawn;
  const name = nameOfLatents(decoded).replace(/\.[^.]*$/, '');
  tell({ type: 'png', blob, name: `${name || 'picture'}.png` });
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

/** What the page can do next. @returns {State} */
function restState() {
  return plan ? 'ready' : 'idle';
}

/** @param {State} next */
function setState(next) {
  state = next;
  tell({ type: 'state', state, canDecode: plan !== undefined, canDownload: decoded !== undefined });
}

/** @param {unknown} error */
function fail(error) {
  const { code = 'unknown', message = String(error), smallest, seconds } = /** @type {Partial<WgvaeError>} */ (error ?? {});
  const problem = { code, message, smallest, seconds, during: state };
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

/** @param {FromWorker} message */
function tell(message) {
  self.postMessage(message);
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
function latentsInput({ file, url }) {
  return /** @type {File | string} */ (file ?? url);
}

/** @param {import('./protocol.js').LatentsChoice} choice */
function nameOfLatents({ file, url }) {
  return file?.name ?? lastPart(url ?? '');
}

/** @param {import('./protocol.js').ModelChoice} choice */
function nameOfModel({ files, urls, isDemo }) {
  if (isDemo) return 'Demo model';
  const names = files?.map((file) => file.name) ?? urls?.map(lastPart) ?? [];
  return names.length > 1 ? `${names[0]} and ${names.length - 1} more` : (names[0] ?? '');
}

/** @param {string} url */
function lastPart(url) {
  return nameOf(new URL(url, self.location.href));
}
