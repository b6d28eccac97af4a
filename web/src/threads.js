// @ts-check
// Threads of the module for the CPU: how many there may be, and the workers that run them.

import { messageOf, mismatch, WgvaeError } from './errors.js';

/**
 * The used methods of a worker of the web or of Node.
 * @typedef {{ postMessage: (message: unknown) => void, terminate: () => unknown }} Port
 */

/** Most threads that are started unasked. */
const MOST = 16;

/** Pages of 64 KiB that the module has at the start, at least as many as it asks for. */
const FIRST = 64;

/**
 * Most pages of the memory, in the order of attempts: some systems cannot reserve all addresses
 * that wasm can have.
 */
const LIMITS = [65_536, 32_768, 16_384];

/**
 * Returns the reason why the module can have only one thread here, if there is one.
 * @returns {string | undefined}
 */
function reasonForOne() {
  const places = 'only workers of pages with cross-origin isolation may have several: use wgvae/worker, and the headers Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp';
  // A page's own thread may not wait for others.
  if ('document' in globalThis) return places;
  if (!(globalThis.crossOriginIsolated ?? 'SharedArrayBuffer' in globalThis)) return places;
  // What wasm-bindgen has in its place, a worker from a blob, may be forbidden, and then hangs.
  return 'waitAsync' in Atomics ? undefined : 'this browser is too old: it has no Atomics.waitAsync';
}

/**
 * Returns the number of threads: those that the caller wants, or one for each core. Throws if the
 * caller wants several where there can be only one.
 * @param {number | undefined} wanted
 */
export function countThreads(wanted) {
  if (wanted === undefined) return reasonForOne() ? 1 : Math.min(cores(), MOST);
  const reason = wanted > 1 && reasonForOne();
  if (reason) throw mismatch('input', 'threads', `1, because ${reason}`, `${wanted}`);
  return wanted;
}

/** Node has had `navigator` only since version 21. */
function cores() {
  return globalThis.navigator?.hardwareConcurrency ?? globalThis.process?.getBuiltinModule?.('node:os').availableParallelism() ?? 1;
}

/** Returns a new memory that threads can share. */
export function sharedMemory() {
  let problem;
  for (const maximum of LIMITS) {
    try {
      return new WebAssembly.Memory({ initial: FIRST, maximum, shared: true });
    } catch (error) {
      problem = error;
    }
  }
  throw new WgvaeError('wasm', `there is no memory that threads could share: ${messageOf(problem)}`, { cause: problem });
}

/**
 * Makes the module's pool of threads and the workers that run them. They end with `signal`.
 * @param {import('../pkg/wgvae_cpu_threads.js').Wasm} instance
 * @param {WebAssembly.Module} module
 * @param {WebAssembly.Memory} memory
 * @param {number} count
 * @param {AbortSignal} signal
 */
export async function startThreads(instance, module, memory, count, signal) {
  instance.Device.cores(count).free();
  /** @type {ReturnType<typeof open>[]} */
  const workers = [];
  const end = () => workers.forEach(({ worker }) => worker.terminate());
  signal.addEventListener('abort', end);
  try {
    while (workers.length < count) workers.push(open());
    for (const { worker } of workers) worker.postMessage({ module, memory });
    await Promise.all(workers.map(({ answer }) => answer));
  } catch (error) {
    end();
    throw new WgvaeError('internal', `a thread did not start: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Starts a worker. Its `answer` comes when its instance of the module is there.
 * @returns {{ worker: Port, answer: Promise<void> }}
 */
function open() {
  const native = globalThis.process?.getBuiltinModule?.('node:worker_threads');
  return native ? openNative(native) : openWeb();
}

function openWeb() {
  const worker = webWorker();
  /** @type {Promise<void>} */
  const answer = new Promise((resolve, reject) => {
    worker.onmessage = ({ data: problem }) => (problem ? reject(problem) : resolve());
    worker.onmessageerror = () => reject('it sent nothing that could be read');
    worker.onerror = (event) => {
      event.preventDefault();
      reject(event.message ?? 'its script could not be loaded');
    };
  });
  return { worker, answer };
}

/**
 * Returns a new worker. If the package comes from another origin, such as a CDN's, a script of this
 * one imports it, because browsers start no other.
 */
function webWorker() {
  const own = import.meta.url;
  // Bundlers recognise this form, and include the file.
  if (new URL(own).origin === globalThis.origin) return new Worker(new URL('../src/thread.js', import.meta.url), { type: 'module', name: 'wgvae thread' });
  const script = `import ${JSON.stringify(own.replace(/[^/]*\/[^/]*$/, 'src/thread.js'))};`;
  return new Worker(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })), { type: 'module', name: 'wgvae thread' });
}

/**
 * Starts a worker of Node, which does not keep the process from ending.
 * @param {typeof import('node:worker_threads')} native
 */
function openNative({ Worker }) {
  // Without the options of the process, some of which are not for workers.
  const worker = new Worker(new URL('../src/thread.js', import.meta.url), { execArgv: [] });
  /** @type {Promise<void>} */
  const answer = new Promise((resolve, reject) => {
    worker.once('message', (problem) => (problem ? reject(problem) : resolve()));
    worker.once('error', reject);
    worker.once('exit', (code) => reject(`it ended with code ${code}`));
  });
  return { worker, answer: answer.finally(() => worker.unref()) };
}
