// @ts-check
// Conversion of every kind of latents that a caller may have to the wasm module's. Shapes are [n,
// c, h, w], [c, h, w] or, in memory and in files, [n, c, layers, h, w].

import { kindOf, mismatch } from './errors.js';
import { bufferOf, isTensor, valuesOf } from './onnx.js';
import { checkValue, FLAG } from './options.js';
import { isBlob, isMemory, isUrl } from './realms.js';
import { openSource } from './sources.js';
import { checkedFloats, elements } from './tensors.js';

/** Bytes of the first request, enough for a latent file of usual size. */
export const HEAD_BYTES = 1 << 20;

/** @typedef {import('./wasm.js').Wasm} Wasm */

/**
 * @param {Wasm} wasm
 * @param {import('./index.js').LatentsInput} input
 * @param {import('./sources.js').Access} access
 * @returns {Promise<import('../pkg/wgvae.js').Latents>}
 */
export async function openLatents(wasm, input, access) {
  if (isFile(input) || isMemory(input)) {
    const source = await openSource(input, access, { what: 'latents', headBytes: HEAD_BYTES });
    try {
      return await wasm.Latents.fromFile(source);
    } finally {
      source.release?.();
    }
  }
  if (typeof input !== 'object' || input === null) throw mismatch('input', 'latents', 'a file, a tensor or a GPU buffer', kindOf(input));
  checkStated(input);
  if (isTensor(input)) return stated(await fromTensor(wasm, input), input);
  if ('buffer' in input) return stated(fromBuffer(wasm, input), input);
  if ('data' in input) return stated(fromArray(wasm, input.data, input.shape), input);
  throw mismatch('input', 'latents', '{ data, shape }, { buffer, shape }, a tensor or a file', kindOf(input));
}

/**
 * Marks latents as the VAE's own or as scaled, if `input` says which.
 * @param {import('../pkg/wgvae.js').Latents} latents
 * @param {{ unscaled?: boolean }} input
 */
export function stated(latents, { unscaled }) {
  return unscaled === undefined ? latents : latents.stated(unscaled);
}

/** @param {{ unscaled?: unknown }} input */
export function checkStated({ unscaled }) {
  if (unscaled !== undefined) checkValue('unscaled of the latents', unscaled, FLAG);
}

/**
 * True if the latents are in a file, which cannot change while it is read.
 * @param {import('./index.js').LatentsInput} input
 * @returns {input is string | URL | Blob}
 */
export function isFile(input) {
  return typeof input === 'string' || isUrl(input) || isBlob(input);
}

/**
 * True if the latents are lost with their device.
 * @param {import('./index.js').LatentsInput} input
 */
export function areOnGpu(input) {
  if (typeof input !== 'object' || input === null || isMemory(input)) return false;
  return 'location' in input ? input.location === 'gpu-buffer' : 'buffer' in input;
}

/**
 * @param {Wasm} wasm
 * @param {import('./index.js').OnnxTensor} tensor
 */
async function fromTensor(wasm, tensor) {
  const buffer = bufferOf(tensor);
  if (buffer) return fromBuffer(wasm, { buffer: /** @type {GPUBuffer} */ (buffer), shape: tensor.dims });
  const { data, shape } = await valuesOf(tensor, 'latents');
  return fromArray(wasm, data, shape);
}

/**
 * @param {Wasm} wasm
 * @param {{ buffer: GPUBuffer, shape: readonly number[], offset?: number }} latents
 */
function fromBuffer(wasm, { buffer, shape, offset = 0 }) {
  const bytes = 4 * elements(shape, 'latents');
  // No instanceof: the buffer may come from another frame.
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
  const floats = checkedFloats(data, shape, 'latents');
  return wasm.Latents.fromArray(floats, Uint32Array.from(shape));
}
