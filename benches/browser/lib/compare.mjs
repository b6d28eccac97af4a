// @ts-check
// Distance of two pictures.

/**
 * @typedef {object} Distance
 * @property {number} levels largest difference after rounding to 8 bits
 * @property {number} relative largest difference over the reference's largest value
 */

/**
 * Returns the distance of two pictures of about -1..1; a value that is not finite is infinitely
 * far.
 * @param {Float32Array} found
 * @param {Float32Array} reference
 * @returns {Distance}
 */
export function distance(found, reference) {
  if (found.length !== reference.length) {
    throw new Error(`pictures: expected ${reference.length} values, found ${found.length}`);
  }
  let levels = 0;
  let difference = 0;
  let largest = 0;
  for (let i = 0; i < found.length; i++) {
    if (!Number.isFinite(found[i])) return { levels: Infinity, relative: Infinity };
    levels = Math.max(levels, Math.abs(level(found[i]) - level(reference[i])));
    difference = Math.max(difference, Math.abs(found[i] - reference[i]));
    largest = Math.max(largest, Math.abs(reference[i]));
  }
  return { levels, relative: difference / largest };
}

/** @param {number} value clamped to -1..1 */
const level = (value) => Math.round((Math.min(1, Math.max(-1, value)) + 1) * 127.5);

/** @param {number[]} values at least one */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
