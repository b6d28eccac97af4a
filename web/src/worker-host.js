// @ts-check
// The worker's side of worker.js: opens models and runs their calls.

import { families, version } from './about.js';
import { startFrom } from './address.js';
import { cacheUsage, clearCache } from './cache.js';
import { mismatch } from './errors.js';
import { inspect } from './inspect.js';
import { closing, isIterable } from './iterate.js';
import { Link } from './link.js';
import { planFor } from './plan-for.js';
import { preview } from './preview.js';
import { isBlob } from './realms.js';
import { selftest } from './selftest.js';
import { isSupported } from './support.js';
import { tune } from './tune.js';
import { createDecoder, createEncoder, createVae } from './vae.js';

const CREATE = { decode: createDecoder, encode: createEncoder, both: createVae };

/** Functions that need no model. */
const FUNCTIONS = { families, version, inspect, planFor, preview, selftest, tune, isSupported, cacheUsage, clearCache };

/** Methods that the page may call on a model. */
const METHODS = ['plan', 'planClip', 'planEncode', 'planEncodeClip', 'shapeOf', 'decode', 'decodeEach', 'clip', 'encode', 'encodeClip', 'ledger', 'destroy'];

/** Methods that return several values, one after the other. */
const GENERATORS = ['decodeEach', 'clip', 'encodeClip'];

const link = new Link(/** @type {any} */ (globalThis), { gives: true });

/** @type {Map<number, any>} */
const models = new Map();
let last = 0;

link.offer('create', async (/** @type {keyof typeof CREATE} */ directions, /** @type {any} */ options) => {
  const model = await CREATE[directions](options);
  models.set((last += 1), model);
  return { id: last, info: model.info, limits: limitsOf(model.device) };
});

link.offer('ask', async (/** @type {number} */ id, /** @type {string} */ method, /** @type {unknown[]} */ parameters) => {
  const model = models.get(id);
  if (method === 'bitmap') return { value: await bitmapOf(model) };
  if (!METHODS.includes(method) || typeof model?.[method] !== 'function') throw mismatch('input', 'model', `one that can ${method}`, 'one that was created for something else');
  const [input, ...others] = parameters;
  // Each message brings a copy of its Blob.
  if (method === 'shapeOf' && isBlob(input)) parameters[2] = false;
  if (GENERATORS.includes(method)) return { value: reported(model, model[method](owned(input), ...others)) };
  try {
    const value = await model[method](...parameters);
    if (method === 'destroy') return { value: ended(id, model) };
    return { value, report: model.report, info: model.info };
  } finally {
    /** @type {any} */ (input)?.close?.();
  }
});

/**
 * Forgets a model that was destroyed, with its file. Returns its last ledger, or none if the module
 * broke.
 * @param {number} id
 * @param {import('./index.js').LoadedModel} model
 */
function ended(id, model) {
  models.delete(id);
  try {
    return model.ledger();
  } catch {
    return undefined;
  }
}

/**
 * Returns the input of a call, which came here as a copy or was moved: it closes bitmaps and frames
 * of video after their use.
 * @param {any} input
 */
function owned(input) {
  return isIterable(input) ? closing(/** @type {AsyncGenerator<any>} */ (input)) : input;
}

link.offer('startFrom', startFrom);

for (const [name, task] of Object.entries(FUNCTIONS)) link.offer(name, task);

/**
 * Yields the results of a generator, each with its report.
 * @param {import('./index.js').LoadedModel} model
 * @param {AsyncIterable<unknown>} values
 */
async function* reported(model, values) {
  for await (const value of values) yield { value, report: model.report, info: model.info };
}

/** @param {GPUDevice | undefined} device */
function limitsOf(device) {
  /** @type {Record<string, number>} */
  const all = {};
  const limits = device?.limits ?? {};
  // Limits are properties of the prototype.
  for (const name in limits) {
    const limit = /** @type {any} */ (limits)[name];
    if (typeof limit === 'number') all[name] = limit;
  }
  return all;
}

/** Returns the picture of the last decode. @param {import('./index.js').Decoder} model */
async function bitmapOf(model) {
  const canvas = new OffscreenCanvas(1, 1);
  await model.present(canvas);
  // See `present` in index.d.ts.
  model.device?.queue.submit([]);
  return canvas.transferToImageBitmap();
}
