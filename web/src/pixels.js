// @ts-check
// Pixels of whatever can be drawn, some rows at a time, so that the whole picture is never there
// twice.

import { messageOf, WgvaeError } from './errors.js';

/** Pixels at once. */
const STRIP = 1 << 20;

/**
 * What of a picture is wanted. @typedef {{ x: number, y: number, width: number, height: number }}
 * Part
 */

/**
 * By way of a canvas. Where a pixel lets through some of what is behind it, the canvas has its
 * colours rounded; where all of it, none.
 * @param {ImageBitmap | HTMLCanvasElement | OffscreenCanvas} source
 * @param {Part} part
 * @returns {Iterable<Uint8ClampedArray>}
 */
export function* stripsOf(source, { x, y, width, height }) {
  const most = rowsOfStrip(width);
  try {
    const canvas = new OffscreenCanvas(width, Math.min(most, height));
    const context = canvas.getContext('2d', { willReadFrequently: true });
    if (!context) throw new Error('no context for a canvas');
    context.globalCompositeOperation = 'copy';
    for (let row = 0; row < height; row += most) {
      const rows = Math.min(most, height - row);
      context.drawImage(source, x, y + row, width, rows, 0, 0, width, rows);
      yield context.getImageData(0, 0, width, rows).data;
    }
  } catch (cause) {
    // Of another site, which does not let this one see it.
    const isForeign = cause instanceof DOMException && cause.name === 'SecurityError';
    throw new WgvaeError(isForeign ? 'input' : 'canvas', `the browser does not give the picture's pixels: ${messageOf(cause)}`, { cause });
  }
}

/**
 * @param {ImageData} image
 * @param {Part} part
 * @returns {Iterable<Uint8ClampedArray>}
 */
export function* stripsOfData({ data, width: stride }, { x, y, width, height }) {
  const most = rowsOfStrip(width);
  for (let row = 0; row < height; row += most) {
    const rows = Math.min(most, height - row);
    const strip = new Uint8ClampedArray(4 * width * rows);
    for (let each = 0; each < rows; each += 1) {
      const from = 4 * ((y + row + each) * stride + x);
      strip.set(/** @type {Uint8ClampedArray} */ (data).subarray(from, from + 4 * width), 4 * width * each);
    }
    yield strip;
  }
}

/** @param {number} width */
function rowsOfStrip(width) {
  return Math.max(1, Math.floor(STRIP / width));
}
