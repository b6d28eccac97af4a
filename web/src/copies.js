// @ts-check
// Copies of a caller's arguments at the time of the call. A caller that changes an array or a
// canvas afterwards changes no result, however long the call waits in the queue. Data on a GPU
// cannot be copied at once, and bitmaps and video frames cannot change: these are used in place.

import { drawableOf } from './images.js';
import { isTensor, valuesInMemory } from './onnx.js';
import { isBytes } from './pixels.js';
import { isA, isBlob, isUrl } from './realms.js';
import { bytesOf } from './sources.js';
import { movingWith } from './transfer.js';

/**
 * A picture as it was at the call, and a function that frees it after use.
 * @typedef {{ picture: any, free(): void }} Kept
 */

/**
 * Copies latents of pictures, or of a clip.
 * @param {any} input
 * @returns {any}
 */
export function latentsNow(input) {
  if (isUrl(input)) return input.href;
  // Values marked for transfer move to the other thread and no longer belong to the caller.
  if (!isObject(input) || movingWith(input)) return input;
  const bytes = bytesOf(input);
  // Not slice(), which does not copy a Buffer of Node.
  return bytes?.length ? new Uint8Array(bytes) : tensorNow(input);
}

/**
 * Copies latents of a clip, which may be a list of parts.
 * @param {any} input
 */
export function clipNow(input) {
  return Array.isArray(input) ? input.map(latentsNow) : latentsNow(input);
}

/**
 * Copies a picture. A drawn one comes as a promise.
 * @param {any} input
 * @returns {Kept}
 */
export function pictureNow(input) {
  const drawn = /** @type {Promise<ImageBitmap>} */ (drawableOf(input));
  if (drawn === input) return { picture: isPixels(input) ? pixelsNow(input) : latentsNow(input), free: () => {} };
  // Its error is handled when its turn comes.
  drawn.catch(() => {});
  return { picture: drawn, free: () => drawn.then((bitmap) => bitmap.close(), () => {}) };
}

/**
 * Copies the pictures of a clip, which may be a list.
 * @param {any} frames
 * @param {(picture: any) => Kept} copy copies one of them
 * @returns {{ frames: any, free(): void }}
 */
export function picturesNow(frames, copy = pictureNow) {
  if (!Array.isArray(frames)) return { frames, free: () => {} };
  const kept = frames.map(copy);
  return { frames: kept.map(({ picture }) => picture), free: () => kept.forEach(({ free }) => free()) };
}

/**
 * @param {any} input a tensor, an array or a buffer with its shape, or any unusable value
 */
function tensorNow(input) {
  const tensor = isTensor(input) ? valuesInMemory(input) : input;
  if (!tensor || !Array.isArray(tensor.shape)) return input;
  const shape = [...tensor.shape];
  if ('buffer' in tensor) return { buffer: tensor.buffer, shape, offset: tensor.offset, unscaled: tensor.unscaled };
  return 'data' in tensor ? { data: arrayNow(tensor.data), shape, unscaled: tensor.unscaled } : input;
}

/** @param {any} image */
function pixelsNow(image) {
  const { data, width, height } = image;
  return { data: new Uint8ClampedArray(data), width, height };
}

/** @param {any} value an ImageData or an object like it */
function isPixels(value) {
  return isObject(value) && 'width' in value && isBytes(value.data) && !movingWith(value);
}

/** @param {any} data */
function arrayNow(data) {
  return ArrayBuffer.isView(data) && data.byteLength > 0 && !isA(data, 'DataView') ? /** @type {any} */ (data).slice() : data;
}

/** @param {unknown} value */
function isObject(value) {
  return typeof value === 'object' && value !== null && !isBlob(value);
}
