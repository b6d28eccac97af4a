// @ts-check
// Callers' arrays of numbers, and their shapes.

import { kindOf, mismatch } from './errors.js';
import { isA } from './realms.js';

/**
 * Returns the number of values in `[n, c, h, w]` or `[c, h, w]`, or in latents `[n, c, layers, h,
 * w]`.
 * @param {readonly number[]} shape
 * @param {string} what name of the tensor in errors
 */
export function elements(shape, what) {
  const [most, expected] = what === 'latents' ? [5, '[n, c, h, w], [c, h, w] or [n, c, layers, h, w]'] : [4, '[n, c, h, w] or [c, h, w]'];
  const isShape = Array.isArray(shape) && shape.length >= 3 && shape.length <= most && shape.every((side) => Number.isInteger(side) && side > 0);
  if (!isShape) {
    const found = Array.isArray(shape) ? `[${shape.map((side) => (typeof side === 'number' ? side : kindOf(side)))}]` : kindOf(shape);
    throw mismatch('input', `shape of the ${what}`, expected, found);
  }
  return shape.reduce((product, side) => product * side, 1);
}

/**
 * Returns the values of a caller's array as floats. Throws unless they are as many as the shape
 * says.
 * @param {unknown} data
 * @param {readonly number[]} shape
 * @param {string} what its name in errors
 */
export function checkedFloats(data, shape, what) {
  const floats = toFloats(data);
  if (!floats) throw mismatch('input', what, 'a Float32Array, a Float16Array or a Uint16Array of half floats', kindOf(data));
  const expected = elements(shape, what);
  if (floats.length !== expected) throw mismatch('input', what, `${expected} values for the shape [${shape}]`, `${floats.length}`);
  return floats;
}

/**
 * @param {unknown} data
 * @returns {Float32Array | undefined}
 */
export function toFloats(data) {
  const array = /** @type {any} */ (data);
  if (data instanceof Float32Array) return data;
  // Some browsers with WebGPU lack Float16Array.
  if (isA(data, 'Float32Array', 'Float16Array')) return Float32Array.from(array);
  return isA(data, 'Uint16Array') ? halvesToFloats(array) : undefined;
}

/**
 * Converts IEEE 754 half floats, given by their bits, to single floats.
 * @param {Uint16Array} halves
 */
export function halvesToFloats(halves) {
  const floats = new Float32Array(halves.length);
  const bits = new Uint32Array(floats.buffer);
  for (let index = 0; index < halves.length; index += 1) {
    const half = halves[index];
    const sign = (half & 0x8000) << 16;
    const exponent = (half >> 10) & 0x1f;
    const fraction = half & 0x3ff;
    if (exponent === 0) {
      // Zero and subnormals: the fraction counts 2^-24ths.
      floats[index] = (sign ? -1 : 1) * fraction * 2 ** -24;
    } else {
      const wide = exponent === 0x1f ? 0xff : exponent + 112;
      bits[index] = sign | (wide << 23) | (fraction << 13);
    }
  }
  return floats;
}
