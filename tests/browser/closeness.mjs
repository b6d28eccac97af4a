// @ts-check
// Distance of values from the expected ones.

import assert from 'node:assert/strict';

/**
 * Returns max |found - wanted| / max |wanted|; infinite if any value is not a number.
 * @param {Float32Array} found
 * @param {Float32Array} wanted
 */
export function relativeError(found, wanted) {
  assert.equal(found.length, wanted.length);
  const largest = wanted.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const error = found.reduce((most, value, index) => Math.max(most, Math.abs(value - wanted[index])), 0) / largest;
  return Number.isNaN(error) ? Infinity : error;
}
