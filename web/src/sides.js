// @ts-check
// Widths and heights, pixels.

import { mismatch } from './errors.js';

/**
 * Largest side that the module can count, in 32 bits. It rejects sides that are too large for a
 * plan itself.
 */
const MOST = 2 ** 32 - 1;

/**
 * Throws unless the values are sides of a picture, or of the frames of a clip.
 * @param {Record<string, number>} sides
 */
export function checkSides(sides) {
  for (const [side, pixels] of Object.entries(sides)) {
    if (!(pixels > 0 && pixels <= MOST && Number.isInteger(pixels))) throw mismatch('input', `${side} of the picture`, `1 to ${MOST} pixels`, `${pixels}`);
  }
}

/**
 * Returns the size of the latents that decode to a picture of this size.
 * @param {import('./canvas.js').Size} size
 * @param {number} scale pixels per latent
 * @returns {import('./canvas.js').Size}
 */
export function latentsOf({ width, height }, scale) {
  checkSides({ width, height });
  for (const [side, pixels] of Object.entries({ width, height })) {
    if (pixels % scale !== 0) throw mismatch('input', `${side} of the picture`, `a multiple of ${scale} pixels`, `${pixels}`);
  }
  return { width: width / scale, height: height / scale };
}
