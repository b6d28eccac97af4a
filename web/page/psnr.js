// @ts-check
// Likeness of pictures.

/** Highest level of a channel. */
const MOST = 255;

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
