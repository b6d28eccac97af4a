// @ts-check
// How alike two pictures are.

/** The highest level of a channel. */
const MOST = 255;

/**
 * Peak signal-to-noise ratio in dB, of red, green and blue; Infinity for the same picture.
 * @param {Uint8ClampedArray} left RGBA
 * @param {Uint8ClampedArray} right of as many pixels
 */
export function psnr(left, right) {
  let squares = 0;
  for (let index = 0; index < left.length; index += 1) {
    if (index % 4 !== 3) squares += (left[index] - right[index]) ** 2;
  }
  return 10 * Math.log10((MOST ** 2 * 0.75 * left.length) / squares);
}
