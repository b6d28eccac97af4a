// @ts-check
// Facts that the module knows without a model or a device.

import { startWasm } from './wasm.js';

/** @param {import('./index.js').WasmSources} [source] */
export async function families(source) {
  return (await startWasm(source)).families();
}

/** @param {import('./index.js').WasmSources} [source] */
export async function version(source) {
  return (await startWasm(source)).version();
}
