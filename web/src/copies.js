// @ts-check
// What a caller gives, as it is at the call: a caller that changes an array or a canvas afterwards
// changes nothing, however long the call waits for its turn. What is on a GPU cannot be copied at
// once, and bitmaps and video frames cannot change: these stay the caller's own.

import { drawableOf } from './images.js';
import { isTensor, valuesInMemory } from './onnx.js';
import { bytesOf } from './sources.js';
import { movingWith } from './transfer.js';

/**
 * A picture as it was at the call, and what frees it when nobody needs it any more. @typedef {{
 * picture: any, free(): void }} Kept
 */

/**
 * Latents of pictures, or of a clip.
 * @param {any} input
 * @returns {any}
 */
export function latentsNow(input) {
  if (input instanceof URL) return input.href;
  // What moves to another thread is the caller's no more.
  if (!isObject(input) || movingWith(input)) return input;
  const bytes = bytesOf(input);
  // Not by slice(), with which a Buffer of Node's gives no copy.
  return bytes?.length ? new Uint8Array(bytes) : tensorNow(input);
}

/**
 * Latents of a clip, of which there may be a list of parts.
 * @param {any} input
 */
export function clipNow(input) {
  return Array.isArray(input) ? input.map(latentsNow) : latentsNow(input);
}

/**
 * A picture. One that is drawn comes as a promise.
 * @param {any} input
 * @returns {Kept}
 */
export function pictureNow(input) {
  const drawn = /** @type {Promise<ImageBitmap>} */ (drawableOf(input));
  if (drawn === input) return { picture: isPixels(input) ? pixelsNow(input) : latentsNow(input), free: () => {} };
  // Heard of when its turn comes.
  drawn.catch(() => {});
  return { picture: drawn, free: () => drawn.then((bitmap) => bitmap.close(), () => {}) };
}

/**
 * Pictures of a clip, of which there may be a list.
 * @param {any} frames
 * @returns {{ frames: any, free(): void }}
 */
export function picturesNow(frames) {
  if (!Array.isArray(frames)) return { frames, free: () => {} };
  const kept = frames.map(pictureNow);
  return { frames: kept.map(({ picture }) => picture), free: () => kept.forEach(({ free }) => free()) };
}

/**
 * @param {any} input a tensor, an array with its shape, a buffer with its shape, or something that
 * cannot be used
 */
function tensorNow(input) {
  const tensor = isTensor(input) ? valuesInMemory(input) : input;
  if (!tensor || !Array.isArray(tensor.shape)) return input;
  const shape = [...tensor.shape];
  if ('buffer' in tensor) return { buffer: tensor.buffer, shape, offset: tensor.offset };
  return 'data' in tensor ? { data: arrayNow(tensor.data), shape, unscaled: tensor.unscaled } : input;
}

/** @param {any} image */
function pixelsNow(image) {
  const { data, width, height } = image;
  return { data: arrayNow(data), width, height };
}

/** @param {any} value of bytes, as an ImageData has them */
function isPixels(value) {
  return isObject(value) && 'width' in value && value.data instanceof Uint8ClampedArray && !movingWith(value);
}

/** @param {any} data */
function arrayNow(data) {
  return ArrayBuffer.isView(data) && data.byteLength > 0 && !(data instanceof DataView) ? /** @type {any} */ (data).slice() : data;
}

/** @param {unknown} value */
function isObject(value) {
  return typeof value === 'object' && value !== null && !(value instanceof Blob);
}
