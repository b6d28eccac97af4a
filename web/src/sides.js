// @ts-check
// Widths and heights, pixels.

import { mismatch } from './errors.js';

/** The module counts in 32 bits. What is too large of that it refuses by itself. */
const MOST = 2 ** 32 - 1;

/**
 * Fails unless they are sides of a picture, or of the frames of a clip.
 * @param {Record<string, number>} sides
 */
export function checkSides(sides) {
  for (const [side, pixels] of Object.entries(sides)) {
    if (!(pixels > 0 && pixels <= MOST && Number.isInteger(pixels))) throw mismatch('input', `${side} of the picture`, `1 to ${MOST} pixels`, `${pixels}`);
  }
}

/**
 * The latents that decode to a picture of these sides.
 * @param {import('./canvas.js').Size} size
 * @param {number} scale pixels for each latent
 * @returns {import('./canvas.js').Size}
 */
export function latentsOf({ width, height }, scale) {
  checkSides({ width, height });
  for (const [side, pixels] of Object.entries({ width, height })) {
    if (pixels % scale !== 0) throw mismatch('input', `${side} of the picture`, `a multiple of ${scale} pixels`, `${pixels}`);
  }
  return { width: width / scale, height: height / scale };
}
