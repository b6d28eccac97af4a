// @ts-check
// The wasm module: compiled once and started once for any number of models, and started again after
// it broke.

import { makeInstance } from '../pkg/wgvae.js';
import { WgvaeError, messageOf } from './errors.js';
import { watchCalls } from './watch.js';

/**
 * The running module. `broken` is aborted when this instance breaks, with the error for all its
 * calls.
 * @typedef {import('../pkg/wgvae.js').Wasm & { broken: AbortSignal }} Wasm
 */

/** @type {Promise<WebAssembly.Module> | undefined} */
let compiled;

/** @type {Promise<Wasm> | undefined} */
let started;

/**
 * Starts the module, or returns the running one. After a failure or a break, the next call starts
 * it again.
 * @param {import('./index.js').WasmSource} [source] the .wasm, if not the package's own
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
  compiled ??= compile(source).catch((error) => {
    compiled = undefined;
    throw error;
  });
  const module = await compiled;
  const breaking = new AbortController();
  let panic = '';
  const describe = (/** @type {unknown} */ cause) => {
    started = undefined;
    const what = panic || messageOf(cause);
    return new WgvaeError('internal', `the wasm module broke, by a bug or for want of memory, and another decoder starts it again: ${what}`, { cause });
  };
  const instance = makeInstance((exports) => watchCalls(exports, breaking, describe));
  try {
    await instance.init({ module_or_path: module });
  } catch (cause) {
    throw unusable(cause);
  }
  instance.onPanic((/** @type {string} */ text) => { panic = text.replaceAll('\n', ' '); });
  return { ...instance, broken: breaking.signal };
}

/**
 * Returns the compiled module, so that another instance needs no second download.
 * @param {import('./index.js').WasmSource} [source]
 * @returns {Promise<WebAssembly.Module>}
 */
async function compile(source) {
  if (source instanceof WebAssembly.Module) return source;
  try {
    if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return await WebAssembly.compile(source);
    // Bundlers recognise this form, and include the file.
    const where = source ?? new URL('../pkg/wgvae_bg.wasm', import.meta.url);
    const bytes = await readFile(where);
    if (bytes) return await WebAssembly.compile(bytes);
    const response = where instanceof Response ? where : await fetch(where);
    if (!response.ok) throw refused(response);
    const isTyped = /^application\/wasm\b/.test(response.headers.get('Content-Type') ?? '');
    // Compiles while downloading, if the server sends the right type.
    return await (isTyped ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer()));
  } catch (cause) {
    if (cause instanceof WgvaeError) throw cause;
    if (cause instanceof WebAssembly.CompileError) throw unusable(cause);
    throw new WgvaeError('network', `the wasm module could not be fetched: ${messageOf(cause)}`, { cause });
  }
}

/**
 * Reads a local file, which Node's fetch does not. Node's module is loaded in a way that bundlers
 * do not follow.
 * @param {URL | string | Request | Response} where
 * @returns {Promise<BufferSource> | undefined}
 */
function readFile(where) {
  const isFile = where instanceof URL && where.protocol === 'file:';
  return isFile ? globalThis.process?.getBuiltinModule?.('node:fs').promises.readFile(where) : undefined;
}

/** @param {Response} response */
function refused({ status, statusText, url }) {
  const found = `${status} ${statusText}`.trim();
  return new WgvaeError('http', `the wasm module ${url}: expected status 200, found ${found}`, { expected: 'status 200', found, status });
}

/** @param {unknown} cause */
function unusable(cause) {
  const advice = 'where the page has a Content-Security-Policy, its script-src needs \'wasm-unsafe-eval\'';
  return new WgvaeError('wasm', `the browser refuses the wasm module: ${messageOf(cause)}; ${advice}`, { cause });
}
