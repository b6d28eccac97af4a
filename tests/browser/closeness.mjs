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

/**
 * Returns max |found - wanted| / max |wanted| of a clip, which may be in parts.
 * @param {Float32Array[]} found frames or latents, each [c, h, w]
 * @param {import('./safetensors.mjs').Tensor} wanted [1, c, t, h, w]
 */
export function errorOfClip(found, { shape: [, channels, count, height, width], data }) {
  assert.equal(found.length, count);
  const plane = height * width;
  const all = new Float32Array(data.length);
  found.forEach((frame, index) => {
    assert.equal(frame.length, channels * plane);
    for (let channel = 0; channel < channels; channel += 1) all.set(frame.subarray(channel * plane, (channel + 1) * plane), (channel * count + index) * plane);
  });
  return relativeError(all, data);
}
