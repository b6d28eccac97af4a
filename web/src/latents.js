// @ts-check
// Every kind of latents that a caller may have, as the wasm module's. Shapes are [n, c, h, w] or [c, h, w].

import { mismatch } from './errors.js';
import { kindOf, openSource } from './sources.js';

/** A latent file of usual size comes with the first request. */
const HEAD_BYTES = 1 << 20;

/** @typedef {import('./wasm.js').Wasm} Wasm */

/**
 * @param {Wasm} wasm
 * @param {import('./index.js').LatentsInput} input
 * @param {import('./sources.js').Access} access
 * @returns {Promise<import('../pkg/wgvae.js').Latents>}
 */
export async function openLatents(wasm, input, access) {
  if (isFile(input) || input instanceof ArrayBuffer || input instanceof Uint8Array) {
    const source = await openSource(input, access, { what: 'latents', headBytes: HEAD_BYTES });
    try {
      return await wasm.Latents.fromFile(source);
    } finally {
      source.release?.();
    }
  }
  if (typeof input !== 'object' || input === null) throw mismatch('input', 'latents', 'a file, a tensor or a GPU buffer', kindOf(input));
  if ('dims' in input) return fromTensor(wasm, input);
  if ('buffer' in input) return fromBuffer(wasm, input);
  if ('data' in input) return fromArray(wasm, input.data, input.shape);
  throw mismatch('input', 'latents', '{ data, shape }, { buffer, shape }, a tensor or a file', kindOf(input));
}

/**
 * Whether the latents are in a file, which cannot change under the hands of its reader.
 * @param {import('./index.js').LatentsInput} input
 * @returns {input is string | URL | Blob}
 */
export function isFile(input) {
  return typeof input === 'string' || input instanceof URL || input instanceof Blob;
}

/**
 * Whether the latents are gone when their device is.
 * @param {import('./index.js').LatentsInput} input
 */
export function areOnGpu(input) {
  if (typeof input !== 'object' || input === null || input instanceof Uint8Array) return false;
  return 'location' in input ? input.location === 'gpu-buffer' : 'buffer' in input;
}

/**
 * A tensor of onnxruntime-web, in its memory or on its device.
 * @param {Wasm} wasm
 * @param {import('./index.js').OnnxTensor} tensor
 */
function fromTensor(wasm, tensor) {
  const { dims, type, location } = tensor;
  if (type !== 'float32' && type !== 'float16') throw mismatch('input', 'latents', 'a tensor of float32 or float16', `one of ${type}`);
  if (location !== 'gpu-buffer') return fromArray(wasm, tensor.data, dims);
  if (type !== 'float32') throw mismatch('input', 'latents', 'float32 in a tensor on the GPU', `${type}: add a Cast to the graph`);
  return fromBuffer(wasm, { buffer: /** @type {GPUBuffer} */ (tensor.gpuBuffer), shape: dims });
}

/**
 * @param {Wasm} wasm
 * @param {{ buffer: GPUBuffer, shape: readonly number[], offset?: number }} latents
 */
function fromBuffer(wasm, { buffer, shape, offset = 0 }) {
  const bytes = 4 * elements(shape);
  // Not by instanceof: it may be of another frame.
  if (typeof buffer?.size !== 'number') throw mismatch('input', 'buffer of the latents', 'a GPUBuffer', kindOf(buffer));
  if (!Number.isSafeInteger(offset) || offset % 4 !== 0 || offset < 0) {
    throw mismatch('input', 'offset of the latents', 'a multiple of 4 bytes', typeof offset === 'number' ? `${offset}` : kindOf(offset));
  }
  if (!(offset + bytes <= buffer.size)) {
    throw mismatch('input', 'latents', `a buffer of at least ${offset + bytes} bytes for [${shape}] from ${offset}`, `${buffer.size} bytes`);
  }
  return wasm.Latents.onGpu(buffer, offset, Uint32Array.from(shape));
}

/**
 * @param {Wasm} wasm
 * @param {unknown} data
 * @param {readonly number[]} shape
 */
function fromArray(wasm, data, shape) {
  const floats = toFloats(data);
  if (!floats) throw mismatch('input', 'latents', 'a Float32Array, a Float16Array or a Uint16Array of half floats', kindOf(data));
  const expected = elements(shape);
  if (floats.length !== expected) throw mismatch('input', 'latents', `${expected} values for the shape [${shape}]`, `${floats.length}`);
  return wasm.Latents.fromArray(floats, Uint32Array.from(shape));
}

/** @param {readonly number[]} shape */
function elements(shape) {
  const isShape = Array.isArray(shape) && (shape.length === 3 || shape.length === 4) && shape.every((side) => Number.isInteger(side) && side > 0);
  if (!isShape) {
    const found = Array.isArray(shape) ? `[${shape.map((side) => (typeof side === 'number' ? side : kindOf(side)))}]` : kindOf(shape);
    throw mismatch('input', 'shape of the latents', '[n, c, h, w] or [c, h, w]', found);
  }
  return shape.reduce((product, side) => product * side, 1);
}

/**
 * @param {unknown} data
 * @returns {Float32Array | undefined}
 */
function toFloats(data) {
  if (data instanceof Float32Array) return data;
  // Not in every browser that has WebGPU.
  const halves = /** @type {any} */ (globalThis).Float16Array;
  if (halves && data instanceof halves) return Float32Array.from(/** @type {any} */ (data));
  return data instanceof Uint16Array ? halvesToFloats(data) : undefined;
}

/**
 * IEEE 754 half floats, given by their bits, as single floats.
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
