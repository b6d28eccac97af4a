// @ts-check
// The device of a model and the module's object for it: a GPU device of our own, the caller's, or
// the CPU.

import { mismatch, WgvaeError } from './errors.js';
import { hintOf } from './nearest.js';
import { checkValue } from './options.js';
import { countThreads } from './threads.js';
import { rememberedKernels } from './tuned.js';
import { hasSource } from './wasm.js';

/** @typedef {import('./wasm.js').Wasm} Wasm */
/** @typedef {import('./index.js').DeviceOptions} DeviceOptions */

/** @typedef {import('./wasm.js').Kind} Kind */

/**
 * An opened device; the CPU has no `device`. `isOurs`: true if we requested it, and may destroy it.
 * @typedef {{ handle: import('../pkg/wgvae.js').Device, device: GPUDevice | undefined, isOurs:
 * boolean }} Opened
 */

/** Kinds of devices by name. */
const DEVICES = ['auto', 'webgpu', 'cpu'];

/**
 * Returns the name and the value of an option that only WebGPU can fulfil, if there is one.
 * @param {import('./index.js').ModelOptions} options
 * @returns {[name: string, value: string] | undefined}
 */
function forShaders({ precision = 'auto', defaultLimits = false, kernels }) {
  if (precision === 'fast') return ['precision', precision];
  if (defaultLimits) return ['defaultLimits', 'true'];
  return typeof kernels === 'object' && kernels !== null ? ['kernels', 'kernels of a GPU'] : undefined;
}

/**
 * True for a GPUDevice. No instanceof: it may come from another frame, or in Node from a package.
 * @param {any} value
 */
export function isDevice(value) {
  return typeof value?.createBuffer === 'function';
}

/** Choices of kernels by name. */
const KERNELS = ['tuned', 'rules'];

/** Returns the reason why WebGPU is missing, and what to do about it. */
function withoutWebGpu() {
  if ('Deno' in globalThis) return 'this Deno shows no WebGPU (navigator.gpu): update it, or start an older one with --unstable-webgpu';
  if (globalThis.process?.versions) return 'there is no WebGPU (navigator.gpu): Node has none of its own; give that of the package webgpu as `gpu`';
  return 'this browser has no WebGPU (navigator.gpu), or the page is not served over https or from localhost';
}

/**
 * Chooses the kind of device: by default WebGPU if it has an adapter, else the CPU. Throws if the
 * options exclude each other, or if they need a WebGPU that is not there.
 * @param {import('./index.js').ModelOptions} options
 * @returns {Promise<{ kind: Kind, threads?: number, without?: WgvaeError }>} `threads`: on the CPU;
 * `without`: the error that WebGPU would have given, if the CPU stands in for it
 */
export async function chooseDevice(options) {
  const device = options.device ?? 'auto';
  checkValue('device', device, [(value) => isDevice(value) || DEVICES.includes(value), `a GPUDevice, or one of ${DEVICES.join(', ')}`, DEVICES]);
  const shaders = forShaders(options);
  if (device === 'cpu') {
    if (shaders) throw mismatch('input', shaders[0], 'none that needs WebGPU, on the CPU', shaders[1]);
    return { kind: 'cpu', threads: threadsOf(options) };
  }
  if (device !== 'auto' || shaders) {
    checkBrowser(options);
    return { kind: 'webgpu' };
  }
  const { lack: without } = await findAdapter(options);
  if (!without) return { kind: 'webgpu' };
  const threads = threadsOf(options);
  // The caller has told where the module for WebGPU is, and has none for the CPU.
  if (options.wasm && !hasSource(options.wasm, threads > 1 ? 'threads' : 'cpu')) throw without;
  return { kind: 'cpu', threads, without };
}

/**
 * Returns the number of threads on the CPU.
 * @param {import('./index.js').ModelOptions} options
 */
function threadsOf({ threads, wasm }) {
  // The caller gives sources of modules, but none for threads.
  if (threads === undefined && wasm && !hasSource(wasm, 'threads')) return 1;
  return countThreads(threads);
}

/**
 * Returns an adapter, or the error for a WebGPU that is missing, too old or without one.
 * @param {Pick<DeviceOptions, 'gpu' | 'powerPreference'>} options
 * @returns {Promise<{ adapter: GPUAdapter, lack?: undefined } | { adapter?: undefined, lack:
 * WgvaeError }>}
 */
export async function findAdapter(options) {
  try {
    checkBrowser(options);
  } catch (error) {
    return { lack: /** @type {WgvaeError} */ (error) };
  }
  const gpu = options.gpu ?? navigator.gpu;
  const { powerPreference } = options;
  // An object of the caller's that is no GPU is the caller's error.
  const adapter = options.gpu ? await gpu.requestAdapter({ powerPreference }) : await gpu.requestAdapter({ powerPreference }).catch(() => null);
  if (adapter) return { adapter };
  return { lack: new WgvaeError('no-adapter', 'there is WebGPU, but it gives no GPU: a driver is missing, or graphics acceleration is turned off') };
}

/**
 * Throws if there is no WebGPU, or one that is too old.
 * @param {Pick<DeviceOptions, 'gpu'>} options
 */
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
 * Opens the device of the kind that `wasm` computes on.
 * @param {Wasm} wasm
 * @param {DeviceOptions} options
 * @returns {Promise<Opened>}
 */
export async function openDevice(wasm, { device, powerPreference, defaultLimits, gpu: given = globalThis.navigator?.gpu }) {
  if (wasm.kind === 'cpu') {
    const { Device } = /** @type {import('../pkg/wgvae_cpu.js').Wasm} */ (/** @type {unknown} */ (wasm));
    return { handle: /** @type {any} */ (Device.cores()), device: undefined, isOurs: true };
  }
  if (typeof device === 'object' && device !== null) return { handle: await wasm.Device.adopt(given, device), device, isOurs: false };
  const handle = await wasm.Device.request(given, powerPreference === 'low-power', defaultLimits ?? false);
  return { handle, device: handle.gpuDevice(), isOurs: true };
}

/**
 * Frees a device. It does not call the module, which may be broken, to destroy it.
 * @param {Opened} opened
 */
export function closeDevice({ handle, device, isOurs }) {
  if (isOurs) device?.destroy();
  handle.free();
}

/**
 * Throws if `kernels` names no kernels.
 * @param {import('./index.js').ModelOptions['kernels']} kernels
 */
export function checkKernels(kernels = 'tuned') {
  const isThere = typeof kernels === 'object' ? kernels !== null : KERNELS.includes(kernels);
  if (!isThere) throw mismatch('input', 'kernels', `${KERNELS.join(', ')} or what \`tune\` has found`, `${kernels}${hintOf(kernels, KERNELS)}`);
}

/**
 * Sets the kernels for models on the GPU of `handle`: the caller's, the measured ones, or the
 * rules'.
 * @param {Opened['handle']} handle
 * @param {import('./index.js').ModelOptions['kernels']} kernels
 */
export async function takeKernels(handle, kernels = 'tuned') {
  if (typeof kernels === 'object') return handle.takeKernels(kernels);
  const remembered = kernels === 'tuned' ? await rememberedKernels(handle.tuningKey()) : undefined;
  if (!remembered) return;
  try {
    handle.takeKernels(remembered);
  } catch {
    // The file was changed by hand: use the rules' kernels. The next measurement replaces it.
  }
}
