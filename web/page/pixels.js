// @ts-check
// Comparison of pictures, and preparation of pictures that are shown or kept.

import { bitmapOf } from '../src/canvas.js';
import { opaque, openOriginal } from './original.js';
import { fromPng, toPng } from './png.js';

/** Factor of a shown difference. */
const AMPLIFIED = 8;

/**
 * Compares a picture that was encoded and decoded with its original file.
 * @param {File} file
 * @param {Pick<import('../src/index.js').ModelFacts, 'pixels_per_latent' | 'in_channels'>} info
 * @param {ImageData} image pixels, as many as were encoded
 */
export async function compareWithOriginal(file, { pixels_per_latent: factor, in_channels: channels }, image) {
  const found = await openOriginal(file, factor);
  const original = channels === 4 ? found : opaque(found);
  return { bitmap: await bitmapOf(image), squares: squares(original.data, image.data) };
}

/**
 * Compares a frame of a clip with its original, and returns it as a PNG file.
 * @param {Blob} original as a PNG file
 * @param {ImageData} image
 */
export async function compareFrames(original, image) {
  return { blob: await toPng(image), squares: squares((await fromPng(original)).data, image.data) };
}

/**
 * Compares a picture with the result of another tool.
 * @param {ImageData} exact
 * @param {ImageData} tiled of the same size
 */
export async function comparePictures(exact, tiled) {
  const [first, second, third] = await Promise.all([exact, tiled, difference(exact, tiled)].map(bitmapOf));
  return { exact: first, tiled: second, difference: third, amplified: AMPLIFIED, squares: squares(exact.data, tiled.data) };
}

/**
 * Returns the sum of squared differences of red, green and blue, as they are in front of black.
 * @param {Uint8ClampedArray} left RGBA
 * @param {Uint8ClampedArray} right of as many pixels
 */
function squares(left, right) {
  let sum = 0;
  for (let index = 0; index < left.length; index += 1) {
    if (index % 4 !== 3) sum += ((left[index] * left[index | 3] - right[index] * right[index | 3]) / 255) ** 2;
  }
  return sum;
}

/**
 * @param {ImageData} one
 * @param {ImageData} other of the same size
 */
function difference(one, other) {
  const image = new ImageData(one.width, one.height);
  // Values of a clamped array do not overflow.
  for (let at = 0; at < image.data.length; at += 1) image.data[at] = at % 4 === 3 ? 255 : AMPLIFIED * Math.abs(one.data[at] - other.data[at]);
  return image;
}
