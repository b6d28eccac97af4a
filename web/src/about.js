// @ts-check
// Facts that the module knows without a model or a device.

import { checkValue, OF_MODELS } from './options.js';
import { startWasm } from './wasm.js';

/** @param {import('./index.js').WasmSources} [source] */
export async function families(source) {
  return (await start(source)).families();
}

/** @param {import('./index.js').WasmSources} [source] */
export async function version(source) {
  return (await start(source)).version();
}

/** @param {import('./index.js').WasmSources | null} [source] */
async function start(source = null) {
  checkValue('wasm', source, OF_MODELS.wasm);
  return startWasm(source ?? undefined);
}
