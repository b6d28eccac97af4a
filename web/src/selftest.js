// @ts-check
// Test that every set of kernels computes on this adapter what another implementation computed.

import { checkBrowser } from './device.js';
import { mismatch, wgvaeError } from './errors.js';
import { guarded } from './listener.js';
import { openFiles, readsOf } from './model.js';
import { checkOptions, pick } from './options.js';
import { either, orAborted } from './queue.js';
import { Access, openSource, remembering } from './sources.js';
import { startWasm } from './wasm.js';

/** @typedef {import('./index.js').SelftestOptions} SelftestOptions */

/** @type {import('./options.js').Checks} */
const OPTIONS = { ...pick('model', 'config', 'family', 'border', 'powerPreference', 'defaultLimits', 'gpu', 'device', 'cache', 'fetch', 'wasm', 'onProgress', 'onNotice', 'signal'), reference: undefined };

/**
 * @param {SelftestOptions} options
 * @returns {Promise<import('./index.js').Selftest>}
 */
export async function selftest(options) {
  checkOptions(options, OPTIONS);
  const callers = options.signal ?? new AbortController().signal;
  callers.throwIfAborted();
  try {
    checkBrowser(options);
    if (/** @type {any} */ (options).device !== undefined) throw mismatch('input', 'device', 'none, because a self-test opens devices of its own', 'one');
    const wasm = await orAborted(startWasm(options.wasm), callers);
    const signal = either(callers, wasm.broken);
    return await orAborted(run(wasm, options, signal), signal);
  } catch (error) {
    throw wgvaeError(error);
  }
}

/**
 * @param {import('./wasm.js').Wasm} wasm
 * @param {SelftestOptions} options
 * @param {AbortSignal} signal
 */
async function run(wasm, options, signal) {
  const access = new Access(signal, guarded(options.onNotice), options.cache ?? false, options.fetch);
  const { text, sources, family } = await openFiles(options, access);
  const opened = [...sources];
  const cancel = new wasm.Cancel();
  const stop = () => cancel.cancel();
  signal.addEventListener('abort', stop);
  /** @type {import('../pkg/wgvae.js').Checkpoint | undefined} */
  let checkpoint;
  try {
    const reference = await openSource(options.reference, access, { what: 'reference' });
    opened.push(reference);
    // Each set of kernels loads the weights again.
    checkpoint = await wasm.Checkpoint.open(sources.map(remembering), text, family, 'decode', false, false, options.border);
    const reads = checkpoint.reads();
    sources.forEach((source, index) => source.expect?.(readsOf(reads, index)));
    const tell = guarded(options.onProgress);
    const progress = (/** @type {number} */ done, /** @type {number} */ total) => tell({ phase: 'selftest', done, total, step: 'kernels' });
    const { powerPreference, defaultLimits = false, gpu = navigator.gpu } = options;
    return await wasm.selftest(gpu, powerPreference === 'low-power', defaultLimits, checkpoint, remembering(reference), cancel, progress);
  } finally {
    signal.removeEventListener('abort', stop);
    checkpoint?.free();
    cancel.free();
    for (const source of opened) source.release?.();
  }
}
