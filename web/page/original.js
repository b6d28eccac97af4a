// @ts-check
// A picture to encode, read as the package reads it, so that the result can be compared with it.

import { bitmapOf } from '../src/canvas.js';
import { WgvaeError } from '../src/index.js';
import { middle } from './crop.js';

/** Options without colour profile and without premultiplied alpha. @type {ImageBitmapOptions} */
const AS_IT_IS = { colorSpaceConversion: 'none', premultiplyAlpha: 'none' };

/**
 * Returns the size of the picture, and the part that will be encoded.
 * @param {File} file
 * @param {number} factor pixels, see crop.js
 * @param {number} channels of the model: 4 with opacity
 */
export async function openPicture(file, factor, channels) {
  const whole = await read(file);
  try {
    const size = { width: whole.width, height: whole.height };
    const pixels = pixelsOf(whole, factor);
    return { size, bitmap: await bitmapOf(channels === 4 ? pixels : opaque(pixels)) };
  } finally {
    whole.close();
  }
}

/**
 * Returns the part that will be encoded, as pixels.
 * @param {File} file
 * @param {number} factor pixels
 * @param {import('./news.js').Size} [expected] size of the whole picture
 */
export async function openOriginal(file, factor, expected) {
  const whole = await read(file);
  try {
    if (expected && (whole.width !== expected.width || whole.height !== expected.height)) {
      throw new WgvaeError('input', `${file.name}: expected ${expected.width}x${expected.height} pixels, as the first picture has, found ${whole.width}x${whole.height}`);
    }
    return pixelsOf(whole, factor);
  } finally {
    whole.close();
  }
}

/**
 * Returns the picture without transparency, as a model without opacity encodes it: a transparent
 * one would show the page behind it.
 * @param {ImageData} image
 */
export function opaque({ data, width, height }) {
  const copy = new ImageData(new Uint8ClampedArray(data), width, height);
  for (let at = 3; at < data.length; at += 4) copy.data[at] = 255;
  return copy;
}

/**
 * @param {ImageBitmap} whole
 * @param {number} factor pixels
 */
function pixelsOf(whole, factor) {
  const { x, y, width, height } = middle(whole, factor);
  const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
  if (!context) throw new WgvaeError('canvas', 'the browser has no canvas to read the picture from');
  context.drawImage(whole, -x, -y);
  return context.getImageData(0, 0, width, height);
}

/** @param {File} file */
async function read(file) {
  try {
    return await createImageBitmap(file, AS_IT_IS);
  } catch (cause) {
    throw new WgvaeError('format', `${file.name}: expected a picture that this browser shows (${cause instanceof Error ? cause.message : cause})`, { cause });
  }
}
