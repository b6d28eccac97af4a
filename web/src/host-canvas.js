// @ts-check
// The way of a picture from memory to a canvas, for a model on the CPU.

import { mismatch } from './errors.js';

/**
 * Gives `canvas` the size of a picture and copies the picture there.
 * @param {HTMLCanvasElement | OffscreenCanvas} canvas
 * @param {ImageData} image
 */
export async function show(canvas, image) {
  const context = contextOf(canvas);
  [canvas.width, canvas.height] = [image.width, image.height];
  context.putImageData(image, 0, 0);
}

/**
 * Returns the canvas's context, if it can show a picture.
 * @param {HTMLCanvasElement | OffscreenCanvas} canvas
 */
export function contextOf(canvas) {
  const context = /** @type {CanvasRenderingContext2D | null} */ (canvas.getContext('2d'));
  if (!context) throw mismatch('canvas', 'canvas', 'one without a context, or with one for 2D drawing', 'a context of another kind');
  return context;
}
