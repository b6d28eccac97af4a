// @ts-check
// Previews of latents without a model: a published linear map makes a pixel of each.

import { wgvaeError } from './errors.js';
import { openLatents } from './latents.js';
import { MAX_SIDE } from './latest.js';
import { checkOptions, checkValue, OF_MODELS, SMALL, TEXT } from './options.js';
import { orAborted } from './queue.js';
import { Access } from './sources.js';
import { startWasm } from './wasm.js';

/** @type {import('./options.js').Checks} */
const OPTIONS = { family: TEXT, maxSide: SMALL, index: SMALL, fetch: OF_MODELS.fetch, wasm: OF_MODELS.wasm, signal: OF_MODELS.signal };

/**
 * @param {import('./index.js').LatentsInput} input
 * @param {import('./index.js').LinearPreviewOptions} options
 */
export async function preview(input, options) {
  checkOptions(options, OPTIONS);
  checkValue('family', options.family, TEXT);
  const signal = options.signal ?? new AbortController().signal;
  signal.throwIfAborted();
  try {
    return await orAborted(make(input, options, signal), signal);
  } catch (error) {
    throw wgvaeError(error);
  }
}

/**
 * @param {import('./index.js').LatentsInput} input
 * @param {import('./index.js').LinearPreviewOptions} options
 * @param {AbortSignal} signal
 */
async function make(input, { family, maxSide = MAX_SIDE, index = 0, wasm: sources, fetch }, signal) {
  const wasm = await startWasm(sources);
  signal.throwIfAborted();
  const latents = await openLatents(wasm, input, new Access(signal, () => {}, false, fetch));
  try {
    signal.throwIfAborted();
    return latents.preview(index, family, maxSide);
  } finally {
    latents.free();
  }
}
