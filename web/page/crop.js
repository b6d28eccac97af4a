// @ts-check
// The part of a picture that is encoded, cropped as in the package.

import { WgvaeError } from '../src/errors.js';

/**
 * Returns the middle of the picture, with sides that are multiples of `factor`.
 * @param {import('./news.js').Size} size
 * @param {number} factor pixels
 */
export function middle({ width, height }, factor) {
  const [columns, rows] = [width, height].map((side) => side - (side % factor));
  if (columns > 0 && rows > 0) return { x: (width >> 1) - (columns >> 1), y: (height >> 1) - (rows >> 1), width: columns, height: rows };
  throw new WgvaeError('input', `this picture is too small for the model: expected at least ${factor}x${factor} pixels, found ${width}x${height}`);
}
