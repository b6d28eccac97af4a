// @ts-check
// How alike two pictures are.

/** The highest level of a channel. */
const MOST = 255;

/** Likeness of as many pictures as are added. */
export class Psnr {
  #squares = 0;
  #pixels = 0;

  /**
   * @param {Uint8ClampedArray} left RGBA
   * @param {Uint8ClampedArray} right of as many pixels
   */
  add(left, right) {
    for (let index = 0; index < left.length; index += 1) {
      if (index % 4 !== 3) this.#squares += (left[index] - right[index]) ** 2;
    }
    this.#pixels += left.length / 4;
    return this;
  }

  /** Peak signal-to-noise ratio in dB, of red, green and blue, by the mean of all squares; Infinity for the same pictures. */
  get value() {
    return 10 * Math.log10((MOST ** 2 * 3 * this.#pixels) / this.#squares);
  }
}
