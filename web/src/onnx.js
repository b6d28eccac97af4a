// @ts-check
// Values of tensors of onnxruntime-web (onnxruntime.ai/docs/api/js/interfaces/Tensor.html) and of
// transformers.js, which contain one (huggingface.co/docs/transformers.js/api/utils/tensor), on the
// CPU or elsewhere.

import { messageOf, mismatch } from './errors.js';

/** @typedef {import('./index.js').OnnxTensor} OnnxTensor */
/**
 * Values of a tensor, and the scale of latents if the caller has added it to the tensor.
 * @typedef {{ data: any, shape: readonly number[], unscaled?: boolean }} Values
 */

/** Locations whose `data` is available at once. Some objects like tensors have no location. */
const IN_MEMORY = ['cpu', 'cpu-pinned', undefined];

/** @param {unknown} value @returns {value is OnnxTensor} */
export function isTensor(value) {
  return typeof value === 'object' && value !== null && 'dims' in value;
}

/**
 * Returns the buffer of an f32 tensor on the GPU; undefined for any other.
 * @param {OnnxTensor} tensor
 * @returns {unknown}
 */
export function bufferOf(tensor) {
  if (tensor.location !== 'gpu-buffer' || tensor.type !== 'float32') return undefined;
  return (tensor.ort_tensor ?? tensor).gpuBuffer;
}

/**
 * Returns the values of a tensor of floats. A tensor on a GPU, of WebNN or in a texture fetches
 * them itself, and has them in memory from then on.
 * @param {OnnxTensor} tensor
 * @param {string} what its name in errors
 * @returns {Promise<Values>}
 */
export async function valuesOf(tensor, what) {
  const { dims, type, location } = tensor;
  if (type !== 'float32' && type !== 'float16') throw mismatch('input', what, 'a tensor of float32 or float16', `one of ${type}`);
  const there = valuesInMemory(tensor);
  if (there) return there;
  const inside = tensor.ort_tensor ?? tensor;
  try {
    if (!inside.getData) throw new Error('it has no getData()');
    return { data: await inside.getData(), shape: dims, ...statedBy(tensor) };
  } catch (cause) {
    throw mismatch('input', what, 'a tensor that gives its data', `one in "${location}" that does not: ${messageOf(cause)}`, cause);
  }
}

/**
 * Returns the values at once; undefined if they are not in memory, or are no floats.
 * @param {OnnxTensor} tensor
 * @returns {Values | undefined}
 */
export function valuesInMemory(tensor) {
  const { dims, type, location } = tensor;
  if (!IN_MEMORY.includes(location) || (type !== 'float32' && type !== 'float16')) return undefined;
  try {
    return { data: tensor.data, shape: dims, ...statedBy(tensor) };
  } catch {
    // The tensor was disposed of: reading its data throws.
    return undefined;
  }
}

/** @param {any} tensor */
function statedBy({ unscaled }) {
  return unscaled === undefined ? {} : { unscaled };
}
