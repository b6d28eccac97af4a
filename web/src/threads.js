// @ts-check
// Threads of the module for the CPU: how many there may be, and the workers that run them.

import { messageOf, mismatch, WgvaeError } from './errors.js';

/**
 * The methods used here of a web worker or a Node worker.
 * @typedef {{ postMessage: (message: unknown) => void, terminate: () => unknown, unref?: () => void
 * }} Port
 */

/** The parts of the module that a thread needs. */
/** @typedef {{ module: WebAssembly.Module, memory: WebAssembly.Memory }} Parts */

/**
 * Firefox, in version 153 of which one in a hundred calls of `new Worker` by a worker did not
 * return.
 */
const FREEZES = /\bFirefox\//;

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
  if (FREEZES.test(globalThis.navigator?.userAgent ?? '')) return 'Firefox may freeze a worker that starts workers';
  // A page's own thread may not wait for others.
  if ('document' in globalThis) return places;
  if (!(globalThis.crossOriginIsolated ?? 'SharedArrayBuffer' in globalThis)) return places;
  return undefined;
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
 * @param {Parts} parts
 * @param {number} count
 * @param {AbortSignal} signal
 */
export async function startThreads(instance, parts, count, signal) {
  instance.Device.cores(count).free();
  /** @type {Port[]} */
  const workers = [];
  const end = () => workers.forEach((worker) => worker.terminate());
  signal.addEventListener('abort', end);
  try {
    await Promise.all(Array.from({ length: count }, () => startThread(parts, workers)));
    // They do not keep a process of Node from ending.
    for (const worker of workers) worker.unref?.();
  } catch (error) {
    end();
    throw new WgvaeError('internal', `a thread did not start: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Starts a worker for a thread. Resolves when its instance of the module is there.
 * @param {Parts} parts
 * @param {Port[]} workers to which the worker is added
 * @returns {Promise<void>}
 */
function startThread(parts, workers) {
  return new Promise((resolve, reject) => {
    const worker = open((problem) => (problem ? reject(problem) : resolve()));
    workers.push(worker);
    worker.postMessage(parts);
  });
}

/**
 * Starts a worker.
 * @param {(problem: string) => void} hear gets its answer, which is empty or a problem
 * @returns {Port}
 */
function open(hear) {
  const native = globalThis.process?.getBuiltinModule?.('node:worker_threads');
  return native ? openNative(native, hear) : openWeb(hear);
}

/** @param {(problem: string) => void} hear */
function openWeb(hear) {
  const worker = webWorker();
  worker.onmessage = ({ data }) => hear(data);
  worker.onerror = (event) => {
    event.preventDefault();
    hear(event.message ?? 'its script could not be loaded');
  };
  return worker;
}

/**
 * Returns a new worker. Browsers start workers only from the page's own origin: for a package from
 * another one, such as a CDN, a blob imports the script.
 */
function webWorker() {
  const own = import.meta.url;
  const { protocol, origin } = new URL(own);
  // Bundlers recognise this form, and include the file. Some put a file of theirs for `own`.
  if (!protocol.startsWith('http') || origin === globalThis.origin) return new Worker(new URL('../src/thread.js', import.meta.url), { type: 'module', name: 'wgvae thread' });
  const script = `import ${JSON.stringify(own.replace(/[^/]*\/[^/]*$/, 'src/thread.js'))};`;
  const url = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
  // The address has done its work once the script runs or fails.
  const worker = new Worker(url, { type: 'module', name: 'wgvae thread' });
  for (const event of ['message', 'error']) worker.addEventListener(event, () => URL.revokeObjectURL(url), { once: true });
  return worker;
}

/**
 * @param {typeof import('node:worker_threads')} native
 * @param {(problem: string) => void} hear
 */
function openNative({ Worker }, hear) {
  // Workers reject some options of the process, so they get none.
  const worker = new Worker(new URL('../src/thread.js', import.meta.url), { execArgv: [] });
  worker.on('message', hear);
  worker.on('error', (error) => hear(messageOf(error)));
  worker.on('exit', (code) => hear(`it ended with code ${code}`));
  return worker;
}
