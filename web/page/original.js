// @ts-check
// A picture to encode, read as the package reads it, so that the result can be compared with it.

import { bitmapOf } from '../src/canvas.js';
import { WgvaeError } from '../src/index.js';
import { AS_IT_IS, straightStripsOf } from '../src/pixels.js';
import { middle } from './crop.js';

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
    const pixels = await pixelsOf(whole, factor);
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
    return await pixelsOf(whole, factor);
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
async function pixelsOf(whole, factor) {
  const part = middle(whole, factor);
  const image = new ImageData(part.width, part.height);
  let done = 0;
  for await (const strip of straightStripsOf(whole, part)) {
    image.data.set(strip, done);
    done += strip.length;
  }
  return image;
}

/** @param {File} file */
async function read(file) {
  try {
    return await createImageBitmap(file, AS_IT_IS);
  } catch (cause) {
    throw new WgvaeError('format', `${file.name}: expected a picture that this browser shows (${cause instanceof Error ? cause.message : cause})`, { cause });
  }
}
