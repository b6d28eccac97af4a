// @ts-check
// Pictures beside others: how far apart they are, and what of them is shown or kept.

import { openOriginal } from './original.js';
import { fromPng, toPng } from './png.js';

/** How many times a difference is shown. */
const AMPLIFIED = 8;

/**
 * A picture that was encoded and decoded, beside the file that it was encoded from.
 * @param {File} file
 * @param {number} factor pixels, see crop.js
 * @param {ImageData} image of as many pixels as are encoded of it
 */
export async function compareWithOriginal(file, factor, image) {
  const original = await openOriginal(file, factor);
  return { bitmap: await createImageBitmap(image), squares: squares(original.data, image.data) };
}

/**
 * A frame of a clip, as a PNG file, beside the one that was encoded.
 * @param {Blob} original as a PNG file
 * @param {ImageData} image
 */
export async function compareFrames(original, image) {
  return { blob: await toPng(image), squares: squares((await fromPng(original)).data, image.data) };
}

/**
 * A picture and what another tool makes of it.
 * @param {ImageData} exact
 * @param {ImageData} tiled of the same size
 */
export async function comparePictures(exact, tiled) {
  const [first, second, third] = await Promise.all([exact, tiled, difference(exact, tiled)].map((image) => createImageBitmap(image)));
  return { exact: first, tiled: second, difference: third, amplified: AMPLIFIED, squares: squares(exact.data, tiled.data) };
}

/**
 * The sum of squared differences of red, green and blue.
 * @param {Uint8ClampedArray} left RGBA
 * @param {Uint8ClampedArray} right of as many pixels
 */
function squares(left, right) {
  let sum = 0;
  for (let index = 0; index < left.length; index += 1) {
    if (index % 4 !== 3) sum += (left[index] - right[index]) ** 2;
  }
  return sum;
}

/**
 * @param {ImageData} one
 * @param {ImageData} other of the same size
 */
function difference(one, other) {
  const image = new ImageData(one.width, one.height);
  // Bytes of a clamped array do not overflow.
  for (let at = 0; at < image.data.length; at += 1) image.data[at] = at % 4 === 3 ? 255 : AMPLIFIED * Math.abs(one.data[at] - other.data[at]);
  return image;
}
