// @ts-check
// The wasm modules, one for WebGPU and two for the CPU, with one thread and with several: each
// compiled once and started once for any number of models, and started again after it broke.

import { makeInstance } from '../pkg/wgvae.js';
import { parseUrl } from './address.js';
import { corsAdvice } from './answers.js';
import { WgvaeError, messageOf } from './errors.js';
import { canFuse, fuse } from './fusing.js';
import { isA, isUrl } from './realms.js';
import { sharedMemory, startThreads } from './threads.js';
import { Waits } from './waits.js';
import { areNamed, isBytes, isModule } from './wasm-sources.js';
import { watchCalls } from './watch.js';

/** @typedef {'webgpu' | 'cpu'} Kind what a module computes with */
/** @typedef {Kind | 'threads'} Name `threads` is the module for the CPU with several threads */

/**
 * A running module. `broken` is aborted when this instance breaks, with the error for all its
 * calls. The modules for the CPU lack functions that measure GPUs or need neither a device nor
 * weights.
 * @typedef {import('../pkg/wgvae.js').Wasm & { broken: AbortSignal, kind: Kind }} Wasm
 */

/** @type {Map<string, Promise<WebAssembly.Module>>} */
const compiled = new Map();

/** Running modules by their name and number of threads. @type {Map<string, Promise<Wasm>>} */
const started = new Map();

/**
 * Starts a module, or returns the running one. After a failure or a break, the next call starts it
 * again.
 * @param {import('./index.js').WasmSources} [sources] the .wasm, if not the package's own
 * @param {Kind} [kind]
 * @param {number} [threads] on the CPU
 * @returns {Promise<Wasm>}
 */
export function startWasm(sources, kind = 'webgpu', threads = 1) {
  const name = kind === 'cpu' && threads > 1 ? 'threads' : kind;
  return once(started, `${name} ${threads}`, (key) => start(sourceOf(sources, name), name, threads, key));
}

/**
 * Returns what was made for `key`, or makes it. After a failure, the next call makes it again.
 * @template T
 * @param {Map<string, Promise<T>>} made
 * @param {string} key
 * @param {(key: string) => Promise<T>} make
 * @returns {Promise<T>}
 */
function once(made, key, make) {
  const known = made.get(key);
  if (known) return known;
  const making = make(key).catch((error) => {
    made.delete(key);
    throw error;
  });
  made.set(key, making);
  return making;
}

/**
 * Returns the source of one module. A source by itself is that of the module for WebGPU.
 * @param {import('./index.js').WasmSources | undefined} sources
 * @param {Name} name
 * @returns {import('./index.js').WasmSource | undefined}
 */
function sourceOf(sources, name) {
  if (areNamed(sources)) return sources[name];
  return name === 'webgpu' ? (sources ?? undefined) : undefined;
}

/**
 * True if the caller's sources have one for this module, or leave it to the package.
 * @param {import('./index.js').WasmSources} sources
 * @param {Name} name
 */
export function hasSource(sources, name) {
  if (!areNamed(sources)) return name === 'webgpu';
  return sources[name] !== undefined || Object.values(sources).every((source) => source === undefined);
}

/**
 * Returns the JavaScript half of a module. Those of the CPU are fetched only where they are used.
 * @param {Name} name
 * @returns {Promise<typeof makeInstance>}
 */
async function makerOf(name) {
  if (name === 'webgpu') return makeInstance;
  try {
    const script = await (name === 'cpu' ? import('../pkg/wgvae_cpu.js') : import('../pkg/wgvae_cpu_threads.js'));
    return /** @type {any} */ (script).makeInstance;
  } catch (cause) {
    throw new WgvaeError('network', `the script of the wasm module for the CPU could not be fetched: ${messageOf(cause)}`, { cause });
  }
}

/**
 * @param {import('./index.js').WasmSource | undefined} source
 * @param {Name} name
 * @param {number} threads
 * @param {string} key among the running modules
 * @returns {Promise<Wasm>}
 */
async function start(source, name, threads, key) {
  const [module, make] = await Promise.all([once(compiled, name, () => compile(source, name)), makerOf(name)]);
  const breaking = new AbortController();
  let panic = '';
  const describe = (/** @type {unknown} */ cause) => {
    started.delete(key);
    const what = panic || messageOf(cause);
    return new WgvaeError('internal', `the wasm module broke, by a bug or for want of memory, and another decoder starts it again: ${what}`, { cause });
  };
  const memory = name === 'threads' ? sharedMemory() : undefined;
  const waits = new Waits();
  const instance = make((exports) => watchCalls(exports, breaking, describe, () => waits.check()), waits);
  try {
    await instance.init(/** @type {any} */ ({ module_or_path: module, memory }));
  } catch (cause) {
    throw unusable(cause);
  }
  instance.onPanic((/** @type {string} */ text) => { panic = text.replaceAll('\n', ' '); });
  if (memory) await startThreads(/** @type {any} */ (instance), { module, memory }, threads, breaking.signal);
  return { ...instance, broken: breaking.signal, kind: name === 'webgpu' ? name : 'cpu' };
}

/**
 * Returns the address of the package's own module. Bundlers recognise this form, and include the
 * file.
 * @param {Name} name
 */
function addressOf(name) {
  if (name === 'webgpu') return new URL('../pkg/wgvae_bg.wasm', import.meta.url);
  return name === 'cpu' ? new URL('../pkg/wgvae_cpu_bg.wasm', import.meta.url) : new URL('../pkg/wgvae_cpu_threads_bg.wasm', import.meta.url);
}

/**
 * Returns the compiled module, so that another instance needs no second download.
 * @param {import('./index.js').WasmSource | undefined} source
 * @param {Name} name
 * @returns {Promise<WebAssembly.Module>}
 */
async function compile(source, name) {
  if (isModule(source)) return source;
  const where = typeof source === 'string' ? parseUrl(source) : (source ?? addressOf(name));
  try {
    const fuses = name !== 'webgpu' && canFuse();
    const compileBytes = (/** @type {BufferSource} */ bytes) => WebAssembly.compile(fuses ? fuse(bytes) : bytes);
    if (isBytes(where)) return await compileBytes(where);
    const bytes = await readFile(where);
    if (bytes) return await compileBytes(bytes);
    const response = isA(where, 'Response') ? /** @type {any} */ (where) : await fetch(/** @type {any} */ (where));
    if (!response.ok) throw refused(response);
    const isTyped = /^application\/wasm\b/.test(response.headers.get('Content-Type') ?? '');
    // Compiles while downloading, if the server sends the right type and nothing is to be changed.
    return await (isTyped && !fuses ? WebAssembly.compileStreaming(response) : compileBytes(await response.arrayBuffer()));
  } catch (cause) {
    if (cause instanceof WgvaeError) throw cause;
    if (cause instanceof WebAssembly.CompileError || isBytes(where)) throw unusable(cause);
    throw new WgvaeError('network', `the wasm module could not be fetched: ${messageOf(cause)}${corsAdvice(addressIn(where))}`, { cause });
  }
}

/** @param {URL | Request | Response} where */
function addressIn(where) {
  return isUrl(where) ? where.href : where.url;
}

/**
 * Reads a local file, which Node's fetch does not. Node's module is loaded in a way that bundlers
 * do not follow.
 * @param {URL | Request | Response} where
 * @returns {Promise<BufferSource> | undefined}
 */
function readFile(where) {
  return isUrl(where) && where.protocol === 'file:' ? globalThis.process?.getBuiltinModule?.('node:fs').promises.readFile(where) : undefined;
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
