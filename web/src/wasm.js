// @ts-check
// The wasm modules, one for WebGPU and one for the CPU: each compiled once and started once for any
// number of models, and started again after it broke.

import { makeInstance } from '../pkg/wgvae.js';
import { parseUrl } from './address.js';
import { corsAdvice } from './answers.js';
import { WgvaeError, messageOf } from './errors.js';
import { watchCalls } from './watch.js';

/** @typedef {'webgpu' | 'cpu'} Kind what a module computes with */

/**
 * A running module. `broken` is aborted when this instance breaks, with the error for all its
 * calls. Both modules have the same functions, but for those that open and measure devices.
 * @typedef {import('../pkg/wgvae.js').Wasm & { broken: AbortSignal, kind: Kind }} Wasm
 */

/** @type {Map<Kind, Promise<WebAssembly.Module>>} */
const compiled = new Map();

/** @type {Map<Kind, Promise<Wasm>>} */
const started = new Map();

/**
 * Starts a module, or returns the running one. After a failure or a break, the next call starts it
 * again.
 * @param {import('./index.js').WasmSources} [sources] the .wasm, if not the package's own
 * @param {Kind} [kind]
 * @returns {Promise<Wasm>}
 */
export function startWasm(sources, kind = 'webgpu') {
  return once(started, kind, () => start(sourceOf(sources, kind), kind));
}

/**
 * Returns what was made for `kind`, or makes it. After a failure, the next call makes it again.
 * @template T
 * @param {Map<Kind, Promise<T>>} made
 * @param {Kind} kind
 * @param {() => Promise<T>} make
 * @returns {Promise<T>}
 */
function once(made, kind, make) {
  const known = made.get(kind);
  if (known) return known;
  const making = make().catch((error) => {
    made.delete(kind);
    throw error;
  });
  made.set(kind, making);
  return making;
}

/**
 * Returns the source of one module. A source by itself is that of the module for WebGPU.
 * @param {import('./index.js').WasmSources | undefined} sources
 * @param {Kind} kind
 * @returns {import('./index.js').WasmSource | undefined}
 */
function sourceOf(sources, kind) {
  if (areNamed(sources)) return sources[kind];
  return kind === 'webgpu' ? (sources ?? undefined) : undefined;
}

/**
 * True for sources that say for which module each is: a plain object.
 * @param {import('./index.js').WasmSources | undefined} sources
 * @returns {sources is { webgpu?: import('./index.js').WasmSource, cpu?:
 * import('./index.js').WasmSource }}
 */
function areNamed(sources) {
  return typeof sources === 'object' && sources !== null && Object.getPrototypeOf(sources) === Object.prototype;
}

/**
 * True if the caller's sources have one for this module, or leave it to the package.
 * @param {import('./index.js').WasmSources} sources
 * @param {Kind} kind
 */
export function hasSource(sources, kind) {
  return areNamed(sources) ? sources[kind] !== undefined || sources.webgpu === undefined : kind === 'webgpu';
}

/**
 * Returns the JavaScript half of a module. That of the CPU is fetched only where it is used.
 * @param {Kind} kind
 * @returns {Promise<typeof makeInstance>}
 */
async function makerOf(kind) {
  if (kind === 'webgpu') return makeInstance;
  try {
    return /** @type {any} */ (await import('../pkg/wgvae_cpu.js')).makeInstance;
  } catch (cause) {
    throw new WgvaeError('network', `the script of the wasm module for the CPU could not be fetched: ${messageOf(cause)}`, { cause });
  }
}

/**
 * @param {import('./index.js').WasmSource | undefined} source
 * @param {Kind} kind
 * @returns {Promise<Wasm>}
 */
async function start(source, kind) {
  const [module, make] = await Promise.all([once(compiled, kind, () => compile(source, kind)), makerOf(kind)]);
  const breaking = new AbortController();
  let panic = '';
  const describe = (/** @type {unknown} */ cause) => {
    started.delete(kind);
    const what = panic || messageOf(cause);
    return new WgvaeError('internal', `the wasm module broke, by a bug or for want of memory, and another decoder starts it again: ${what}`, { cause });
  };
  const instance = make((exports) => watchCalls(exports, breaking, describe));
  try {
    await instance.init({ module_or_path: module });
  } catch (cause) {
    throw unusable(cause);
  }
  instance.onPanic((/** @type {string} */ text) => { panic = text.replaceAll('\n', ' '); });
  return { ...instance, broken: breaking.signal, kind };
}

/**
 * Returns the address of the package's own module. Bundlers recognise this form, and include the
 * file.
 * @param {Kind} kind
 */
function addressOf(kind) {
  return kind === 'webgpu' ? new URL('../pkg/wgvae_bg.wasm', import.meta.url) : new URL('../pkg/wgvae_cpu_bg.wasm', import.meta.url);
}

/**
 * Returns the compiled module, so that another instance needs no second download.
 * @param {import('./index.js').WasmSource | undefined} source
 * @param {Kind} kind
 * @returns {Promise<WebAssembly.Module>}
 */
async function compile(source, kind) {
  if (source instanceof WebAssembly.Module) return source;
  const where = typeof source === 'string' ? parseUrl(source) : (source ?? addressOf(kind));
  try {
    if (isBytes(where)) return await WebAssembly.compile(where);
    const bytes = await readFile(where);
    if (bytes) return await WebAssembly.compile(bytes);
    const response = where instanceof Response ? where : await fetch(where);
    if (!response.ok) throw refused(response);
    const isTyped = /^application\/wasm\b/.test(response.headers.get('Content-Type') ?? '');
    // Compiles while downloading, if the server sends the right type.
    return await (isTyped ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer()));
  } catch (cause) {
    if (cause instanceof WgvaeError) throw cause;
    if (cause instanceof WebAssembly.CompileError || isBytes(where)) throw unusable(cause);
    throw new WgvaeError('network', `the wasm module could not be fetched: ${messageOf(cause)}${corsAdvice(addressIn(where))}`, { cause });
  }
}

/** @param {unknown} where @returns {where is BufferSource} */
function isBytes(where) {
  return where instanceof ArrayBuffer || ArrayBuffer.isView(where);
}

/** @param {URL | Request | Response} where */
function addressIn(where) {
  return where instanceof URL ? where.href : where.url;
}

/**
 * Reads a local file, which Node's fetch does not. Node's module is loaded in a way that bundlers
 * do not follow.
 * @param {URL | Request | Response} where
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
