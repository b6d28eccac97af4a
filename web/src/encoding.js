// @ts-check
// Encoding of pictures to latents.

import { pictureNow } from './copies.js';
import { mismatch } from './errors.js';
import { checkRequest, OF_SIZES } from './fit.js';
import { openImages } from './images.js';
import { FILES } from './latents-file.js';
import { checkOptions, FLAG, isCount, LISTENER, oneOf, SIGNAL, SMALL, WHOLE } from './options.js';

/** @typedef {import('./index.js').EncodeOptions} EncodeOptions */
/** @typedef {import('./index.js').ImageInput} ImageInput */

/** Options of a plan. @type {import('./options.js').Checks} */
export const OF_PLANS = { width: SMALL, height: SMALL, memoryBudget: WHOLE };

/** Results to choose from the distribution that an encoder gives. */
const RESULTS = ['mode', 'sample', 'moments'];

/** Options of an encode of a picture. @type {import('./options.js').Checks} */
const OF_ENCODES = {
  output: oneOf(...RESULTS, ...Object.keys(FILES)),
  seed: [(value) => isCount(value), `a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`],
  unscaled: FLAG,
  ...OF_SIZES,
  index: SMALL,
  memoryBudget: WHOLE,
  onProgress: LISTENER,
  signal: SIGNAL,
};

/**
 * Options of an encode of a clip: its parts are no files, and have no index.
 * @type {import('./options.js').Checks}
 */
export const OF_PARTS = Object.fromEntries(Object.entries({ ...OF_ENCODES, output: oneOf(...RESULTS) }).filter(([name]) => name !== 'index'));

/**
 * Throws for options that the form of the result leaves without a meaning, or that the model cannot
 * give.
 * @param {{ output?: string, seed?: number, unscaled?: boolean }} options
 * @param {{ has_distribution: boolean }} info
 */
export function checkResult({ output = 'mode', seed, unscaled }, { has_distribution }) {
  const isDrawn = output === 'sample' || (output in FILES && seed !== undefined);
  if (seed !== undefined && !isDrawn) throw mismatch('input', 'seed', 'use with output "sample" or a file', `it with output "${output}"`);
  const isMoments = output === 'moments';
  if (isMoments && unscaled === false) throw mismatch('input', 'unscaled', 'true or nothing for moments, which are the VAE\'s own', 'false');
  if ((isDrawn || isMoments) && !has_distribution) throw mismatch('input', 'output', 'the mode, because this encoder gives the latents themselves', isMoments ? 'moments' : 'a sample');
}

/** Encoding by a loaded model. */
export class Encoding {
  #loaded;

  /** @param {import('./loaded.js').Loaded} loaded */
  constructor(loaded) {
    this.#loaded = loaded;
  }

  /** @param {import('./index.js').EncodePlanOptions} options */
  planEncode(options) {
    this.#loaded.throwIfDestroyed();
    checkOptions(options, OF_PLANS);
    const { width, height, memoryBudget } = options;
    return this.#loaded.plan({ direction: 'encode', width, height, ...this.#loaded.moduleOptions({ memoryBudget }) });
  }

  /**
   * @param {ImageInput} input
   * @param {EncodeOptions} [options]
   * @returns {Promise<any>}
   */
  async encode(input, options = {}) {
    this.#loaded.throwIfDestroyed();
    checkOptions(options, OF_ENCODES);
    checkResult(options, this.#loaded.info);
    checkRequest(options);
    const [{ picture, free }, asked] = [pictureNow(input), { ...options }];
    const { output = 'mode', seed } = asked;
    const file = Object.entries(FILES).find(([name]) => name === output)?.[1];
    if (file) asked.output = seed === undefined ? 'mode' : 'sample';
    try {
      const latents = await this.#loaded.run(asked, true, async (signal) => this.#attempt(await picture, asked, signal));
      return file ? file(latents) : latents;
    } finally {
      free();
    }
  }

  /**
   * @param {ImageInput} input
   * @param {EncodeOptions} options
   * @param {AbortSignal} signal
   */
  async #attempt(input, { output, seed, unscaled, width: columns, height: rows, fit, onProgress, ...options }, signal) {
    const { wasm, engine, info } = this.#loaded;
    const images = await openImages(wasm, input, this.#loaded.accessOf(signal), info, { width: columns, height: rows, fit });
    try {
      const [width, height] = images.size();
      const moduleOptions = { ...this.#loaded.moduleOptions(options), output, seed, unscaled };
      const listener = this.#loaded.listener('encode', onProgress);
      const result = await this.#loaded.cancellable(signal, (cancel) => engine.vae.encode(images, moduleOptions, cancel, listener));
      return { data: result.data, shape: result.shape, unscaled: result.unscaled, width, height };
    } finally {
      images.free();
    }
  }
}
