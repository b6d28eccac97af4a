// @ts-check
// A GPU device and the module's object for it: one of our own, or the caller's.

import { mismatch, WgvaeError } from './errors.js';
import { rememberedKernels } from './tuned.js';

/** @typedef {import('./wasm.js').Wasm} Wasm */
/** @typedef {import('./index.js').DeviceOptions} DeviceOptions */

/**
 * An opened device. `isOurs`: true if we requested it, and may destroy it.
 * @typedef {{ gpu: import('../pkg/wgvae.js').Gpu, device: GPUDevice, isOurs: boolean }} Opened
 */

/** Choices of kernels by name. */
const KERNELS = ['tuned', 'rules'];

/** Returns the reason why WebGPU is missing, and what to do about it. */
function withoutWebGpu() {
  if ('Deno' in globalThis) return 'this Deno shows no WebGPU (navigator.gpu): update it, or start an older one with --unstable-webgpu';
  if (globalThis.process?.versions) return 'there is no WebGPU (navigator.gpu): Node has none of its own; give that of the package webgpu as `gpu`';
  return 'this browser has no WebGPU (navigator.gpu), or the page is not served over https or from localhost';
}

/** Throws if there is no WebGPU, or one that is too old. @param {DeviceOptions} options */
export function checkBrowser({ gpu = globalThis.navigator?.gpu }) {
  if (!gpu) {
    throw new WgvaeError('no-webgpu', withoutWebGpu());
  }
  // The module reads `info` of every adapter. Chrome and Edge have it since 127. In Node, Dawn's
  // class has no attributes on its prototype.
  if (globalThis.GPUAdapter && 'features' in GPUAdapter.prototype && !('info' in GPUAdapter.prototype)) {
    throw mismatch('no-webgpu', 'WebGPU of this browser', 'one with GPUAdapter.info', 'an older one');
  }
}

/**
 * @param {Wasm} wasm
 * @param {DeviceOptions} options
 * @returns {Promise<Opened>}
 */
export async function openGpu(wasm, { device, powerPreference, defaultLimits, gpu: given = navigator.gpu }) {
  if (device) return { gpu: await wasm.Gpu.adopt(given, device), device, isOurs: false };
  const gpu = await wasm.Gpu.request(given, { powerPreference: powerPreference ?? 'high-performance', defaultLimits: defaultLimits ?? false });
  return { gpu, device: gpu.device(), isOurs: true };
}

/**
 * Frees a device. It does not call the module, which may be broken, to destroy it.
 * @param {Opened} opened
 */
export function closeGpu({ gpu, device, isOurs }) {
  if (isOurs) device.destroy();
  gpu.free();
}

/**
 * Throws if `kernels` names no kernels.
 * @param {import('./index.js').ModelOptions['kernels']} kernels
 */
export function checkKernels(kernels = 'tuned') {
  const isThere = typeof kernels === 'object' ? kernels !== null : KERNELS.includes(kernels);
  if (!isThere) throw mismatch('input', 'kernels', `${KERNELS.join(', ')} or what \`tune\` has found`, `${kernels}`);
}

/**
 * Sets the kernels for models on `gpu`: the caller's, the measured ones, or the rules'.
 * @param {Opened['gpu']} gpu
 * @param {import('./index.js').ModelOptions['kernels']} kernels
 */
export async function takeKernels(gpu, kernels = 'tuned') {
  if (typeof kernels === 'object') return gpu.takeKernels(kernels);
  const remembered = kernels === 'tuned' ? await rememberedKernels(gpu.tuningKey()) : undefined;
  if (!remembered) return;
  try {
    gpu.takeKernels(remembered);
  } catch {
    // The file was changed by hand: use the rules' kernels. The next measurement replaces it.
  }
}
