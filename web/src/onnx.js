// @ts-check
// Tensors of onnxruntime-web (onnxruntime.ai/docs/api/js/interfaces/Tensor.html) and those of
// transformers.js, which have one inside (huggingface.co/docs/transformers.js/api/utils/tensor):
// what is in them, wherever it lies.

import { messageOf, mismatch } from './errors.js';

/** @typedef {import('./index.js').OnnxTensor} OnnxTensor */

/** Where `data` is there at once. Not everything that looks like a tensor says. */
const IN_MEMORY = ['cpu', 'cpu-pinned', undefined];

/** @param {unknown} value @returns {value is OnnxTensor} */
export function isTensor(value) {
  return typeof value === 'object' && value !== null && 'dims' in value;
}

/**
 * The buffer of a tensor of f32 on the GPU; undefined for any other.
 * @param {OnnxTensor} tensor
 * @returns {unknown}
 */
export function bufferOf(tensor) {
  if (tensor.location !== 'gpu-buffer' || tensor.type !== 'float32') return undefined;
  return (tensor.ort_tensor ?? tensor).gpuBuffer;
}

/**
 * What is in a tensor of floats. From a GPU, from WebNN or a texture it is fetched by the tensor
 * itself, which has it in memory from then on.
 * @param {OnnxTensor} tensor
 * @param {string} what it is
 * @returns {Promise<{ data: any, shape: readonly number[] }>}
 */
export async function valuesOf(tensor, what) {
  const { dims, type, location } = tensor;
  if (type !== 'float32' && type !== 'float16') throw mismatch('input', what, 'a tensor of float32 or float16', `one of ${type}`);
  const there = valuesInMemory(tensor);
  if (there) return there;
  const inside = tensor.ort_tensor ?? tensor;
  try {
    if (!inside.getData) throw new Error('it has no getData()');
    return { data: await inside.getData(), shape: dims };
  } catch (cause) {
    throw mismatch('input', what, 'a tensor that gives its data', `one in "${location}" that does not: ${messageOf(cause)}`, cause);
  }
}

/**
 * The same, at once; undefined where they are not in memory, or are no floats.
 * @param {OnnxTensor} tensor
 * @returns {{ data: any, shape: readonly number[] } | undefined}
 */
export function valuesInMemory(tensor) {
  const { dims, type, location } = tensor;
  if (!IN_MEMORY.includes(location) || (type !== 'float32' && type !== 'float16')) return undefined;
  try {
    return { data: tensor.data, shape: dims };
  } catch {
    // It was disposed of: asking it for its data says so.
    return undefined;
  }
}
