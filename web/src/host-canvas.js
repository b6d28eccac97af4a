// @ts-check
// The way of a picture from memory to a canvas, for a model on the CPU and for pictures with
// opacity: putImageData takes colours that are not multiplied by alpha.

import { messageOf, mismatch, WgvaeError } from './errors.js';

/** Most pixels of a side of a canvas that every browser shows. Larger ones stay blank. */
export const LARGEST_CANVAS = 16_384;

/**
 * Gives `canvas` the size of a picture and copies the picture there.
 * @param {HTMLCanvasElement | OffscreenCanvas} canvas
 * @param {ImageData} image
 */
export async function show(canvas, image) {
  const context = checkHostCanvas(canvas, image);
  [canvas.width, canvas.height] = [image.width, image.height];
  context.putImageData(image, 0, 0);
}

/**
 * Returns the canvas's context, if it can show a picture of this size.
 * @param {HTMLCanvasElement | OffscreenCanvas} canvas
 * @param {import('./canvas.js').Size} size
 */
export function checkHostCanvas(canvas, { width, height }) {
  if (Math.max(width, height) > LARGEST_CANVAS) throw mismatch('canvas', 'picture on a canvas', `at most ${LARGEST_CANVAS} pixels a side`, `${width}x${height}`);
  let context;
  try {
    context = /** @type {CanvasRenderingContext2D | null} */ (canvas.getContext('2d'));
  } catch (cause) {
    throw new WgvaeError('canvas', `the canvas cannot be used: ${messageOf(cause)}`, { cause });
  }
  if (!context) throw mismatch('canvas', 'canvas', 'one without a context, or with one for 2D drawing', 'a context of another kind');
  return context;
}
