// @ts-check
// Pixels of anything that can be drawn, some rows at a time, so that memory never holds the whole
// picture twice.

import { messageOf, WgvaeError } from './errors.js';

/** Pixels of one strip. */
const STRIP = 1 << 20;

/**
 * Rectangle of the picture to read.
 * @typedef {{ x: number, y: number, width: number, height: number }} Part
 */

/**
 * Yields strips by way of a canvas. It rounds the colours of partly transparent pixels, and loses
 * those of fully transparent ones.
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
    // The picture comes from another site, which does not let this one read it.
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
