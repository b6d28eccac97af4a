// @ts-check
// A GPU device, and what the module makes of it: one of our own, or the caller's.

import { mismatch, WgvaeError } from './errors.js';
import { rememberedKernels } from './tuned.js';

/** @typedef {import('./wasm.js').Wasm} Wasm */
/** @typedef {import('./index.js').DeviceOptions} DeviceOptions */

/**
 * `isOurs`: nobody else uses it. @typedef {{ gpu: import('../pkg/wgvae.js').Gpu, device: GPUDevice,
 * isOurs: boolean }} Opened
 */

/** Whose kernels a device gets, by name. */
const KERNELS = ['tuned', 'rules'];

/** Why there is none, and what to do about it. */
function withoutWebGpu() {
  if ('Deno' in globalThis) return 'this Deno shows no WebGPU (navigator.gpu): update it, or start an older one with --unstable-webgpu';
  if (globalThis.process?.versions) return 'there is no WebGPU (navigator.gpu): Node has none of its own; give that of the package webgpu as `gpu`';
  return 'this browser has no WebGPU (navigator.gpu), or the page is not served over https or from localhost';
}

/** Fails where there is no WebGPU, or one that is too old. @param {DeviceOptions} options */
export function checkBrowser({ gpu = globalThis.navigator?.gpu }) {
  if (!gpu) {
    throw new WgvaeError('no-webgpu', withoutWebGpu());
  }
  // The module asks every adapter for it. Chrome and Edge have it since 127. What Node has of Dawn
  // keeps no attributes there.
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
 * Gives a device up. Not through the module, which may be broken.
 * @param {Opened} opened
 */
export function closeGpu({ gpu, device, isOurs }) {
  if (isOurs) device.destroy();
  gpu.free();
}

/**
 * Fails for what names no kernels.
 * @param {import('./index.js').ModelOptions['kernels']} kernels
 */
export function checkKernels(kernels = 'tuned') {
  const isThere = typeof kernels === 'object' ? kernels !== null : KERNELS.includes(kernels);
  if (!isThere) throw mismatch('input', 'kernels', `${KERNELS.join(', ')} or what \`tune\` has found`, `${kernels}`);
}

/**
 * The kernels for models on `gpu`: the caller's, those that were measured there, or the rules'.
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
    // Somebody has changed the file: the rules' will do, and the next measurement replaces it.
  }
}
