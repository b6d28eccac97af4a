// @ts-check
// The session: stores the user's wishes at once, and then fulfils them step by step. A newer wish
// stops the steps for an older one. Models, and with them the GPU, live in the worker.

import { nameOf } from '../src/answers.js';
import { isHubName } from '../src/hub-name.js';
import { cacheUsage, clearCache, createDecoder, createVae, families, inspect, version, WgvaeError } from '../src/worker.js';
import { needsConfig } from './advice.js';
import { ask } from './ask.js';
import { stagesOf } from './bar.js';
import { decodeClip, encodeAndDecodeClip } from './clip-job.js';
import { Input } from './input.js';
import { previewOf } from './latents-preview.js';
import { decodePicture, encodeAndDecodePicture } from './picture-job.js';
import { worker } from './start-worker.js';
import { progressTeller, tell } from './tell.js';
import { compareTiles } from './tile-job.js';

/** @typedef {import('./news.js').State} State */
/** @typedef {import('./news.js').Decoder} Decoder */
/** @typedef {import('./news.js').Vae} Vae */
/** @typedef {import('./news.js').ModelChoice} ModelChoice */
/** @typedef {import('./news.js').InputChoice} InputChoice */
/**
 * A choice of the user: a model, an input, or both; or files that are not yet sorted. `name`: of
 * all together.
 * @typedef {{ model?: ModelChoice, input?: InputChoice, files?: File[], kind?: 'model' | 'input',
 * name?: string }} Choice
 */

/** Largest download of a model without asking, bytes. */
const UNASKED = 100e6;

/** Largest file that is downloaded whole without a notice, bytes. */
const SMALL = 32 << 20;

/** States whose work a new choice stops. @type {State[]} */
const BUSY = ['loading', 'planning', 'encoding', 'decoding'];

// The wishes.

/** @type {import('./news.js').Settings} */
let settings;
/** Choices that are not yet taken up, oldest first. @type {Choice[]} */
const choices = [];
/** True while the page plans again after a cancel: another cancel does not end that. */
let resuming = false;
/** True to decode as soon as possible. */
let wantsDecode = false;
/**
 * Tiles to compare with as soon as possible.
 * @type {import('./news.js').Tiles | undefined}
 */
let wantedTiles;
/** Models that may be downloaded, whatever their size. @type {WeakSet<ModelChoice>} */
const agreed = new WeakSet();

// The current state.

/** @type {State} */
let state = 'starting';
/**
 * Settles when the page knows the module's version and families.
 * @type {Promise<void> | undefined}
 */
let introducing;
/** @type {ModelChoice | undefined} */
let model;
/** @type {Input | undefined} */
let input;
/** The kind that was chosen last. @type {'model' | 'input'} */
let latest = 'model';
/** @type {Decoder | undefined} */
let decoder;
/** The decoder, if it can encode as well. @type {Vae | undefined} */
let vae;
/** Settings that `decoder` was opened with. */
let openedWith = '';
/** Plans for the wishes; empty until they are made. @type {import('./news.js').Plans} */
let plans = [];
/** Stops the work in progress. */
let running = new AbortController();
/** The work in progress. @type {Promise<void>} */
let work = Promise.resolve();

/** Begins the session. @param {import('./news.js').Settings} first */
export function start(first) {
  settings = first;
  begin();
}

/**
 * Opens a model, latents or a picture, or both.
 * @param {{ model?: ModelChoice, input?: InputChoice, name?: string }} choice
 * @param {boolean} [decodes] true to decode as soon as both are open
 */
export function open(choice, decodes = false) {
  choose(choice, decodes);
}

/**
 * Opens files that were dropped or chosen, and sorts them first unless `kind` tells what they are.
 * @param {File[]} files
 * @param {'model' | 'input'} [kind]
 */
export function openFiles(files, kind) {
  choose({ files, kind });
}

/** @param {import('./news.js').Settings} changed all settings */
export function change(changed) {
  settings = changed;
  acknowledge();
  begin();
}

/** Takes the answer to the question whether to download the model. @param {boolean} may */
export function answer(may) {
  if (may) {
    if (model) {
      agreed.add(model);
      acknowledge(nameOfModel(model));
    }
    begin();
    return;
  }
  model = undefined;
  tell({ type: 'model', name: 'None', info: undefined });
  running.abort();
}

/** Decodes as soon as possible. */
export function decode() {
  wantsDecode = true;
  tell({ type: 'work', stages: ['load', 'later'] });
  begin();
}

/**
 * Decodes the picture whole and in another tool's tiles.
 * @param {import('./news.js').Tiles} tiles
 */
export function compare(tiles) {
  wantedTiles = tiles;
  tell({ type: 'work', stages: ['load', 'later'] });
  begin();
}

export function cancel() {
  const isChoosing = choices.length > 0 || resuming;
  choices.length = 0;
  wantsDecode = false;
  wantedTiles = undefined;
  // The worker may take a while to stop.
  tell({ type: 'stopping' });
  running.abort();
  // The files that were open before the choice may be decoded.
  if (isChoosing && decoder && input) {
    begin();
    resuming = true;
  }
}

/** Runs beside the work in progress. */
export function forgetKept() {
  tellCache(() => clearCache(undefined, { worker }));
}

/**
 * @param {Choice} choice
 * @param {boolean} [decodes] true to decode as soon as everything is open
 */
function choose(choice, decodes = false) {
  const { files, model: ofModel = files && { files }, input: ofInput } = choice;
  const name = choice.name ?? (ofModel ? nameOfModel(ofModel) : new Input(ofInput ?? {}).name);
  choices.push(choice);
  wantsDecode = decodes;
  wantedTiles = undefined;
  acknowledge(name);
  begin();
}

/**
 * Tells of a choice at once, whatever the worker is doing. No plan counts any more.
 * @param {string} [name] of what is opened; none for settings
 */
function acknowledge(name) {
  const stops = underWay();
  plans = [];
  tell({ type: 'work', stages: wantsDecode || wantedTiles ? ['load', 'later'] : ['load'] });
  setState('loading');
  tell({ type: 'chosen', name, stops });
}

/** Returns the name of the work that a new choice stops; undefined if there is none. */
function underWay() {
  if (!BUSY.includes(state)) return undefined;
  return model?.isDemo ? 'the demo' : 'what is under way';
}

/** Stops the work in progress, and then fulfils the current wishes. */
function begin() {
  running.abort();
  resuming = false;
  const mine = (running = new AbortController());
  work = work.then(async () => {
    try {
      mine.signal.throwIfAborted();
      await fulfil(mine.signal);
      if (mine === running) resuming = false;
    } catch (error) {
      // A newer turn does everything.
      if (mine !== running) return;
      // The user asked for it, and sees the buttons change.
      if (mine.signal.aborted) setState(restState());
      else fail(error);
      // Go on with choices behind the failed one.
      if (!mine.signal.aborted && choices.length > 0) begin();
    }
  });
}

/** @param {AbortSignal} signal */
async function fulfil(signal) {
  introducing ??= introduce();
  // Opening a model reports the same error if the module does not start.
  introducing.catch(() => { introducing = undefined; });
  while (choices.length > 0) await takeUp(choices[0], signal);
  if (plans.length === 0) await prepare(signal);
  await introducing;
  if (wantsDecode && plans.length > 0) await make(signal);
  if (wantedTiles && plans.length > 0) await makeTiles(wantedTiles, signal);
}

async function introduce() {
  const [found, names] = await Promise.all([version({ worker }), families({ worker })]);
  tell({ type: 'module', version: found, families: names });
  // Not awaited: it may take its time.
  tellCache();
}

/**
 * Takes up the first choice.
 * @param {Choice} choice
 * @param {AbortSignal} signal
 */
async function takeUp(choice, signal) {
  const sorted = !choice.files ? choice : await ask('sortFiles', choice.files, choice.kind).catch(async (error) => {
    // A cancel may have dropped it, and another may be first by now.
    if (choices[0] === choice) choices.shift();
    // The open files stay, and may be decoded beside the error.
    if (choices.length === 0 && decoder && input) await prepare(signal).catch(() => {});
    throw error;
  });
  signal.throwIfAborted();
  choices.shift();
  latest = sorted.input && !sorted.model ? 'input' : 'model';
  if (sorted.model) {
    model = sorted.model;
    tell({ type: 'model', name: nameOfModel(model), info: undefined, isFile: model.files !== undefined });
    // The demo's latents belong to the demo's model only, and the user did not choose them.
    if (!model.isDemo && input?.isDemo) {
      input = undefined;
      tell({ type: 'input', name: 'None' });
    }
    await closeModel();
  }
  if (sorted.input) {
    input = new Input(sorted.input);
    const { index = 0 } = sorted.input;
    settings = { ...settings, index };
    tell({ type: 'input', name: input.name, index, isFile: sorted.input.files !== undefined, isDemo: input.isDemo });
  }
}

/**
 * Opens chosen files that are not open yet, and plans.
 * @param {AbortSignal} signal
 */
async function prepare(signal) {
  if (input && !input.isAway) await input.identify(signal);
  // A remote input is fetched in parallel with the model; errors are handled below.
  input?.identify(signal).catch(() => {});
  if (model) await openModel(model, signal).catch((error) => sayBoth(error, signal));
  else await input?.check(signal);
  if (decoder && input) {
    setState('loading');
    await input.identify(signal);
    await input.settle(decoder.info);
    // The address turned out to be no latents of pictures: the model must be opened for that.
    if (model) await openModel(model, signal);
    await input.open(decoder, signal);
  }
  signal.throwIfAborted();
  if (decoder && input) {
    setState('planning');
    const found = await input.plans(decoder, vae, settings.budget);
    signal.throwIfAborted();
    plans = found;
    await showPreview(input, decoder, signal);
  }
  tell({ type: 'plans', plans });
  // Work that goes on needs no rest.
  if (plans.length === 0 || !(wantsDecode || wantedTiles)) setState(restState());
}

/**
 * Shows what newly opened latents hold, if that takes no decode.
 * @param {Input} latents
 * @param {Decoder} model
 * @param {AbortSignal} signal
 */
async function showPreview(latents, model, signal) {
  const [planned] = plans;
  if (latents.kind !== 'latents' || latents.isPreviewed || !planned || planned.frames !== undefined) return;
  latents.isPreviewed = true;
  const bitmap = await previewOf(latents.file, model.info, settingsNow());
  signal.throwIfAborted();
  if (bitmap) tell({ type: 'preview', bitmap, size: planned.plan.result.size });
}

/**
 * Rejects with the error of the model, and adds the error of the input, which nothing else checks
 * in this case.
 * @param {unknown} error error of the model
 * @param {AbortSignal} signal
 */
async function sayBoth(error, signal) {
  signal.throwIfAborted();
  try {
    await input?.check(signal);
  } catch (other) {
    signal.throwIfAborted();
    throw new AggregateError(latest === 'input' ? [other, error] : [error, other]);
  }
  throw error;
}

/**
 * @param {ModelChoice} choice
 * @param {AbortSignal} signal
 */
async function openModel(choice, signal) {
  const { precision, family = choice.family, unscaled, budget } = settingsNow();
  const [address = '', ...shards] = choice.urls ?? [];
  const files = { model: choice.files ?? (shards.length > 0 ? [address, ...shards] : address), config: choice.config, family, cache: true, signal, worker };
  if (input?.kind === 'clip') {
    // Its third axis may also count layers, which the model's headers tell. Opening it reports
    // errors.
    const info = decoder?.info ?? (await inspect(files).catch(() => undefined));
    signal.throwIfAborted();
    if (info) await input.settle(info);
  }
  const { encodes, clips } = input?.wants ?? { encodes: false, clips: false };
  // A budget needs the weights on the host, so that they can be evicted.
  const wanted = JSON.stringify([precision, family, unscaled, budget !== undefined, clips]);
  if (decoder && openedWith === wanted && (vae || !encodes)) return;
  if (encodes && decoder?.info.parameters.encoder === 0) {
    throw new WgvaeError('input', 'this model has no encoder: it turns latents into pictures, and no picture into latents');
  }
  if (clips && decoder && !decoder.info.has_time) {
    throw new WgvaeError('input', 'this model knows no time: it takes single pictures and their latents, and no clips of either');
  }
  await closeModel();
  setState('loading');
  const source = { ...files, clips };
  if (choice.urls && !choice.isDemo && !agreed.has(choice)) {
    const found = await inspect(source).catch((error) => inspectWithConfig(choice, source, error));
    await askFirst(choice, found, encodes, signal);
    source.config = choice.config;
  }
  /** @type {import('../src/worker.js').WorkerOptions} */
  const options = {
    ...source,
    precision,
    unscaled,
    memoryBudget: budget,
    onProgress: progressTeller(signal),
    onNotice: (notice) => {
      // A notice about a small file helps nobody.
      if (notice.code === 'no-ranges' && (notice.bytes ?? Infinity) < SMALL) console.info(notice.message);
      else tell({ type: 'notice', notice });
    },
  };
  if (encodes) decoder = vae = await createVae(options);
  else decoder = await createDecoder(options);
  openedWith = wanted;
  tell({ type: 'model', name: nameOfModel(choice), info: decoder.info });
  await tellCache();
}

/**
 * Looks for the config.json beside a model at an address that needs one. Rejects with `error` if
 * there is none.
 * @param {ModelChoice} choice receives the address of the config.json
 * @param {import('../src/worker.js').InspectOptions} source
 * @param {Partial<WgvaeError>} error
 */
async function inspectWithConfig(choice, source, error) {
  const [address = ''] = choice.urls ?? [];
  if (!needsConfig(error) || choice.config || isHubName(address)) throw error;
  const config = new URL('config.json', address).href;
  const inspection = await inspect({ ...source, config }).catch((/** @type {any} */ other) => {
    throw ['http', 'network'].includes(other.code) ? error : other;
  });
  choice.config = config;
  return inspection;
}

/**
 * Asks before a large download. Resolves when the answer has changed the state.
 * @param {ModelChoice} choice
 * @param {import('../src/index.js').Inspection} inspection
 * @param {boolean} encodes
 * @param {AbortSignal} signal
 */
async function askFirst(choice, { decode, encode }, encodes, signal) {
  const bytes = decode.download_bytes + (encodes ? encode.download_bytes : 0);
  signal.throwIfAborted();
  if (bytes <= UNASKED) return;
  setState('asking');
  tell({ type: 'ask', name: nameOfModel(choice), bytes });
  await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
}

async function closeModel() {
  const closing = decoder;
  decoder = vae = undefined;
  await closing?.destroy();
}

/** @param {AbortSignal} signal */
async function make(signal) {
  wantsDecode = false;
  if (!decoder || !input) return;
  const { name } = input;
  const options = { memoryBudget: settings.budget, signal, onProgress: progressTeller(signal) };
  const onDecode = () => {
    tell({ type: 'work', stages: stagesOf(['decode']), continues: true });
    setState('decoding');
  };
  const [{ operation }] = plans;
  const last = plans[plans.length - 1];
  tell({ type: 'work', stages: stagesOf(plans.map((planned) => planned.operation)), continues: true });
  setState(operation === 'encode' ? 'encoding' : 'decoding');
  if (last.frames !== undefined) {
    const { width, height, parts_after: after } = last.plan;
    const clip = { name, size: { width, height }, after };
    const encodes = vae && input.footage && encodeAndDecodeClip(vae, { ...clip, footage: input.footage }, { ...options, onDecode });
    const outcomes = await (encodes ?? decodeClip(decoder, { ...clip, latents: input.file, frames: last.frames }, options));
    signal.throwIfAborted();
    tell({ type: 'clip-outcomes', outcomes, info: decoder.info });
  } else {
    const encodes = vae && operation === 'encode' ? encodeAndDecodePicture(vae, { file: input.file, name }, { ...options, onDecode }) : undefined;
    const reports = await (encodes ?? decodePicture(decoder, { file: input.file, name, size: last.plan.result.size }, { ...options, index: settings.index }));
    tell({ type: 'outcomes', outcomes: reports.flatMap((report, index) => outcomeOf(index, report)) });
  }
  setState('done');
}

/**
 * @param {import('./news.js').Tiles} tiles
 * @param {AbortSignal} signal
 */
async function makeTiles(tiles, signal) {
  wantedTiles = undefined;
  const [{ plan, frames }] = plans;
  if (!decoder || !input || plans.length > 1 || frames !== undefined) return setState(restState());
  tell({ type: 'work', stages: stagesOf(['decode']), continues: true });
  setState('decoding');
  const options = { memoryBudget: settings.budget, index: settings.index, signal, onProgress: progressTeller(signal) };
  await compareTiles(decoder, { file: input.file, name: input.name, size: plan.result.size }, tiles, options);
  setState('done');
}

/**
 * Returns the result of the operation planned as `plans[index]`.
 * @param {number} index
 * @param {import('./news.js').Report | undefined} report
 * @returns {import('./news.js').Outcome[]}
 */
function outcomeOf(index, report) {
  const { operation, plan, frames } = plans[index];
  if (!decoder || !report || frames !== undefined) return [];
  const { size } = operation === 'encode' ? plan.input : plan.result;
  return [{ operation, ...size, plan, report, info: decoder.info, budget: settings.budget, isDemo: Boolean(model?.isDemo) }];
}

/**
 * Returns the settings for the open model. The page's own models ignore what is meant for models
 * of the user: their pictures would have wrong colours.
 */
function settingsNow() {
  return model?.isDemo ? { ...settings, family: undefined, unscaled: false } : settings;
}

/** Returns the state for the next wish. @returns {State} */
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
  const [main, other] = error instanceof AggregateError ? error.errors : [error];
  const { code = 'unknown', message = String(main), expected, smallest, seconds, offer } = /** @type {Partial<WgvaeError> & { offer?: 'unscaled' }} */ (main ?? {});
  const problem = { code, message, expected, smallest, seconds, offer, also: other?.message, ofDemo: hasOwnLatents() && model?.isDemo };
  wantsDecode = false;
  wantedTiles = undefined;
  // The module is gone, and the decoder with it. Choosing the model again, or another setting,
  // creates a new one.
  if (code === 'internal') {
    plans = [];
    closeModel();
  }
  if (!('code' in Object(main))) console.error(main);
  tell({ type: 'plans', plans });
  setState('failed');
  tell({ type: 'problem', problem });
}

/** True if the input is latents of the user. */
function hasOwnLatents() {
  return !input?.isDemo && (input?.kind === 'latents' || input?.kind === 'clip');
}

/**
 * Tells the size of the cache after `change`. A failure is only a notice, because models and
 * pictures do not need the cache.
 * @param {() => Promise<void>} [change]
 */
async function tellCache(change = async () => {}) {
  try {
    await change();
    tell({ type: 'cache', ...(await cacheUsage({ worker })) });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    tell({ type: 'notice', notice: { code: 'cache-failed', message: `the cache cannot be read or cleared: ${why}` } });
  }
}

/** @param {ModelChoice} choice */
function nameOfModel({ files, urls, name }) {
  if (name) return name;
  const names = files?.map((file) => file.name) ?? urls?.map((url) => (isHubName(url) ? url : nameOf(new URL(url)))) ?? [];
  return names.length > 1 ? `${names[0]} and ${names.length - 1} more` : (names[0] ?? '');
}
