// @ts-check
// Latents in every form that a caller may have: latents.js.

import assert from 'node:assert/strict';

import { areOnGpu, openLatents } from '../../../../web/src/latents.js';
import { halvesToFloats } from '../../../../web/src/tensors.js';
import { Access } from '../../../../web/src/sources.js';
import { checkError } from '../outcome.mjs';
import { anything } from './text.mjs';

/** @typedef {import('../world.mjs').World} World */
/** @typedef {import('../random.mjs').Random} Random */

/** A stand-in for the wasm module that returns its input. */
const wasm = /** @type {any} */ ({
  Latents: {
    fromFile: async (/** @type {any} */ source) => ({ floats: undefined, bytes: await source.read(0, source.length) }),
    fromArray: (/** @type {Float32Array} */ floats, /** @type {Uint32Array} */ shape) => ({ floats, shape }),
    onGpu: (/** @type {any} */ buffer, /** @type {number} */ offset, /** @type {Uint32Array} */ shape) => ({ buffer, offset, shape }),
  },
});

/** @param {Random} random */
function someShape(random) {
  const axis = () => random.pick([0, 1, 2, 3, -1, 1.5, NaN, 2 ** 32, 2 ** 53, '2', null, undefined]);
  const small = () => random.between(1, 3);
  return random.pick([
    anything(random),
    Array.from({ length: random.below(6) }, axis),
    Array.from({ length: random.between(3, 4) }, small),
    Array.from({ length: random.between(3, 4) }, small),
    Uint32Array.from([1, 2, 3]),
  ]);
}

/** @param {Random} random @param {any} shape */
function someData(random, shape) {
  const count = Array.isArray(shape) ? shape.reduce((product, side) => product * side, 1) : 6;
  const length = Number.isInteger(count) && count >= 0 && count < 1000 && random.chance(0.8) ? count : random.below(20);
  const bits = Uint16Array.from({ length }, () => random.below(65536));
  return random.pick([Float32Array.from(bits), bits, new Float64Array(length), Array.from(bits), anything(random)]);
}

/** @param {Random} random */
function someBuffer(random) {
  return random.pick([anything(random), { size: random.below(200) }, { size: random.pick([NaN, -1, '8', undefined, 1e18]) }]);
}

/** @param {World} world */
export async function latentsOfAnyKind({ random, clock }) {
  const shape = someShape(random);
  const data = someData(random, shape);
  const buffer = someBuffer(random);
  const type = random.pick(['float32', 'float16', 'int64', undefined]);
  const input = random.pick([
    anything(random),
    { data, shape },
    { buffer, shape, offset: random.pick([undefined, 0, 4, 2, -4, 1e20, NaN, '4', null]) },
    { dims: shape, type, location: random.pick(['cpu', 'gpu-buffer', undefined]), data, gpuBuffer: buffer },
  ]);
  // cases/text.mjs covers addresses.
  if (typeof input === 'string' || input instanceof URL) return;
  areOnGpu(input);
  const found = openLatents(wasm, input, new Access(new AbortController().signal, () => {}, false)).then((value) => ({ value }), (error) => ({ error }));
  assert.ok(await clock.runUntil(found), 'latents never open');
  const outcome = await found;
  if ('error' in outcome) return checkError(outcome.error);
  const { floats, bytes, buffer: taken, offset, shape: extents } = /** @type {any} */ (outcome.value);
  if (bytes) return assert.equal(bytes.length, input.byteLength);
  const elements = extents.reduce((/** @type {number} */ product, /** @type {number} */ side) => product * side, 1);
  assert.ok([3, 4].includes(extents.length) && elements > 0, `a shape [${extents}]`);
  if (taken) assert.ok(Number.isInteger(offset) && offset >= 0 && offset % 4 === 0 && offset + 4 * elements <= taken.size, 'a part of the buffer');
  else assert.ok(floats instanceof Float32Array && floats.length === elements, `${floats.length} values of ${elements}`);
}

/** Compares half floats with their definition. @param {World} world */
export async function halves({ random }) {
  const bits = Uint16Array.from({ length: 64 }, () => random.below(65536));
  halvesToFloats(bits).forEach((value, index) => {
    const half = /** @type {number} */ (bits[index]);
    const [sign, exponent, fraction] = [half >> 15 ? -1 : 1, (half >> 10) & 31, half & 1023];
    const magnitude = exponent === 31 ? (fraction ? NaN : Infinity) : exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15);
    assert.ok(Object.is(value, sign * magnitude) || (Number.isNaN(value) && Number.isNaN(magnitude)), `${half.toString(16)} is ${value}`);
  });
}
