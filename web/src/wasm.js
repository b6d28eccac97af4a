// @ts-check
// The wasm module: compiled and started once, however many decoders there are.

import init, * as module from '../pkg/wgvae.js';
import { WgvaeError, messageOf } from './errors.js';

/** @typedef {typeof module} Wasm */

/** @type {Promise<Wasm> | undefined} */
let started;

/**
 * The module, started. A start that failed is tried again by the next call.
 * @param {import('./index.js').WasmSource} [source] where the .wasm is, if not beside the package
 * @returns {Promise<Wasm>}
 */
export function startWasm(source) {
  started ??= start(source).catch((error) => {
    started = undefined;
    throw error;
  });
  return started;
}

/**
 * @param {import('./index.js').WasmSource} [source]
 * @returns {Promise<Wasm>}
 */
async function start(source) {
  // Written like this so that bundlers see the file and take it along.
  const beside = new URL('../pkg/wgvae_bg.wasm', import.meta.url);
  try {
    await init({ module_or_path: source ?? beside });
  } catch (cause) {
    throw new WgvaeError('network', `the wasm module could not be started: ${messageOf(cause)}`, { cause });
  }
  return module;
}
