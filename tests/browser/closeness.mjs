// @ts-check
// How far values are from those that were wanted.

import assert from 'node:assert/strict';

/**
 * max |found - wanted| / max |wanted|; infinite for anything that is not a number.
 * @param {Float32Array} found
 * @param {Float32Array} wanted
 */
export function relativeError(found, wanted) {
  assert.equal(found.length, wanted.length);
  const largest = wanted.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const error = found.reduce((most, value, index) => Math.max(most, Math.abs(value - wanted[index])), 0) / largest;
  return Number.isNaN(error) ? Infinity : error;
}
