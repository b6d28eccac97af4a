// @ts-check
// Places of the .wasm modules, as callers give them.

/** Modules that a caller may give a place for. */
const NAMES = ['webgpu', 'cpu', 'threads'];

/** Kinds of places that are objects, by their tags, which are the same in every frame. */
const TAGS = ['URL', 'Request', 'Response', 'WebAssembly.Module'].map((kind) => `[object ${kind}]`);

/**
 * True for sources that say for which module each is: a plain object.
 * @param {import('./index.js').WasmSources | undefined} sources
 * @returns {sources is { [name in import('./wasm.js').Name]?: import('./index.js').WasmSource }}
 */
export function areNamed(sources) {
  return typeof sources === 'object' && sources !== null && Object.getPrototypeOf(sources) === Object.prototype;
}

/** @param {unknown} where @returns {where is BufferSource} */
export function isBytes(where) {
  return where instanceof ArrayBuffer || ArrayBuffer.isView(where);
}

/** True for a source, or for named ones. @param {any} value */
export function areSources(value) {
  if (!areNamed(value)) return isSource(value);
  return Object.entries(value).every(([name, source]) => NAMES.includes(name) && isSource(source));
}

/** True for the place of a module, or for none. @param {unknown} value */
function isSource(value) {
  return value === undefined || value === null || typeof value === 'string' || isBytes(value) || TAGS.includes(Object.prototype.toString.call(value));
}
