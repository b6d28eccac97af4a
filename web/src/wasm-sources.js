// @ts-check
// Places of the .wasm modules, as callers give them.

import { isA } from './realms.js';

/** Modules that a caller may give a place for. */
const NAMES = ['webgpu', 'cpu', 'threads'];

/**
 * True for sources that say for which module each is: a plain object.
 * @param {import('./index.js').WasmSources | undefined} sources
 * @returns {sources is { [name in import('./wasm.js').Name]?: import('./index.js').WasmSource }}
 */
export function areNamed(sources) {
  return Object.prototype.toString.call(sources) === '[object Object]';
}

/** @param {unknown} where @returns {where is BufferSource} */
export function isBytes(where) {
  return isA(where, 'ArrayBuffer') || ArrayBuffer.isView(where);
}

/** @param {unknown} where @returns {where is WebAssembly.Module} */
export function isModule(where) {
  return isA(where, 'WebAssembly.Module');
}

/** True for a source, or for named ones. @param {any} value */
export function areSources(value) {
  if (!areNamed(value)) return isSource(value);
  return Object.entries(value).every(([name, source]) => NAMES.includes(name) && isSource(source));
}

/** True for the place of a module, or for none. @param {unknown} value */
function isSource(value) {
  return value === undefined || value === null || typeof value === 'string' || isBytes(value) || isModule(value) || isA(value, 'URL', 'Request', 'Response');
}
