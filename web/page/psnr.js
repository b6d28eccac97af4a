// @ts-check
// Likeness of pictures.

import { WgvaeError } from '../src/worker.js';

/** Highest level of a channel. */
const MOST = 255;

/**
 * Checks that decodes are as large as the pictures that encode to the same latents.
 * @param {import('../src/index.js').ModelFacts} info
 */
export function checkComparable({ pixels_per_latent: encoded, decoded_pixels_per_latent: decoded }) {
  if (encoded === decoded) return;
  const [expected, found] = [encoded, decoded].map((pixels) => `${pixels} pixels a latent`);
  throw new WgvaeError('input', `this model's decodes are larger than its pictures: expected ${expected}, found ${found}; drop latents instead`, { expected, found });
}

/** PSNR of all added pictures together. */
export class Psnr {
  #squares = 0;
  #pixels = 0;

  /**
   * @param {number} squares sum of the squared differences of red, green and blue
   * @param {import('./news.js').Size} size of the picture
   */
  add(squares, { width, height }) {
    this.#squares += squares;
    this.#pixels += width * height;
    return this;
  }

  /**
   * Peak signal-to-noise ratio in dB of red, green and blue, by the mean of all squares; Infinity
   * for equal pictures.
   */
  get value() {
    return 10 * Math.log10((MOST ** 2 * 3 * this.#pixels) / this.#squares);
  }
}
