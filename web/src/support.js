// @ts-check
// Abilities of this browser or runtime, told without a model, a device or a download.

import { findAdapter } from './device.js';
import { messageOf } from './errors.js';

/**
 * A module with one function that uses SIMD, as the module for the CPU does: `i8x16.splat` of 0,
 * and `i8x16.popcnt`. Its first 8 bytes are a module by themselves.
 */
const WITH_SIMD = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11);
const EMPTY = WITH_SIMD.slice(0, 8);

/**
 * Never rejects: a reason takes the place of an error.
 * @param {import('./index.js').SupportOptions} [options]
 * @returns {Promise<import('./index.js').Support>}
 */
export async function isSupported(options) {
  const wasm = refusal(EMPTY);
  if (wasm) return { webgpu: false, f16: false, cpu: false, reason: `WebAssembly cannot run: ${wasm}` };
  // The module for the CPU comes by `import()`, which service workers may not call.
  const cpu = refusal(WITH_SIMD) === undefined && !('ServiceWorkerGlobalScope' in globalThis);
  try {
    const { adapter, lack } = await findAdapter(options ?? {});
    if (adapter) return { webgpu: true, f16: adapter.features.has('shader-f16'), cpu };
    return { webgpu: false, f16: false, cpu, reason: lack?.message };
  } catch (error) {
    return { webgpu: false, f16: false, cpu, reason: messageOf(error) };
  }
}

/**
 * Returns the reason why a module cannot be compiled: an old browser, or a
 * Content-Security-Policy.
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
function refusal(bytes) {
  try {
    new WebAssembly.Module(bytes);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}
