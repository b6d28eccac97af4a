// @ts-check
// The worker's side of worker.js: opens models there and does what is asked of them.

import { mismatch } from './errors.js';
import { Link } from './link.js';
import { tune } from './tune.js';
import { createDecoder, createEncoder, createVae } from './vae.js';

const CREATE = { decode: createDecoder, encode: createEncoder, both: createVae };

/** What may be asked of a model. */
const METHODS = ['plan', 'planClip', 'planEncode', 'planEncodeClip', 'shapeOf', 'decode', 'clip', 'encode', 'encodeClip', 'ledger', 'destroy'];

const link = new Link(/** @type {any} */ (globalThis), { gives: true });

/** @type {Map<number, any>} */
const models = new Map();
let last = 0;

link.offer('create', async (/** @type {keyof typeof CREATE} */ directions, /** @type {any} */ options) => {
  const model = await CREATE[directions](options);
  models.set((last += 1), model);
  return { id: last, info: model.info };
});

link.offer('tune', tune);

link.offer('ask', async (/** @type {number} */ id, /** @type {string} */ method, /** @type {unknown[]} */ parameters) => {
  const model = models.get(id);
  if (method === 'bitmap') return { value: await bitmapOf(model) };
  if (!METHODS.includes(method) || typeof model?.[method] !== 'function') throw mismatch('input', 'model', `one that can ${method}`, 'one that was created for something else');
  const value = await model[method](...parameters);
  return { value, report: model.report, info: model.info };
});

/** The picture of the last decode. @param {import('./index.js').Decoder} model */
async function bitmapOf(model) {
  const canvas = new OffscreenCanvas(1, 1);
  await model.present(canvas);
  // See index.d.ts of `present`.
  model.device.queue.submit([]);
  return canvas.transferToImageBitmap();
}
