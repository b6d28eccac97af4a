// @ts-check
// Inspection of a model by the headers of its files, and the size of its download. It needs no
// device and reads no weights.

import { wgvaeError } from './errors.js';
import { guarded } from './listener.js';
import { openFiles, readsOf } from './model.js';
import { checkOptions, OF_MODELS } from './options.js';
import { either, orAborted } from './queue.js';
import { Access, remembering } from './sources.js';
import { startWasm } from './wasm.js';

/** @typedef {import('./sources.js').Source} Source */

/**
 * @param {import('./index.js').InspectOptions} options
 * @returns {Promise<import('./index.js').Inspection>}
 */
export async function inspect(options) {
  checkOptions(options, OF_MODELS);
  const callers = options.signal ?? new AbortController().signal;
  callers.throwIfAborted();
  try {
    const wasm = await orAborted(startWasm(options.wasm), callers);
    const signal = either(callers, wasm.broken);
    return await orAborted(look(wasm, options, signal), signal);
  } catch (error) {
    throw wgvaeError(error);
  }
}

/**
 * @param {import('./wasm.js').Wasm} wasm
 * @param {import('./index.js').InspectOptions} options
 * @param {AbortSignal} signal
 */
async function look(wasm, options, signal) {
  const access = new Access(signal, guarded(options.onNotice), options.cache ?? false, options.fetch);
  const { text, sources, commit, family } = await openFiles(options, access);
  const headers = sources.map(remembering);
  const open = async (/** @type {string} */ direction) => {
    try {
      const checkpoint = await wasm.Checkpoint.open(headers, text, family, direction, options.clips ?? false, options.previewRate ?? false, options.border);
      const [info, reads] = [checkpoint.info(), checkpoint.reads()];
      checkpoint.free();
      return { info, facts: await factsOf(reads, sources) };
    } catch (/** @type {any} */ error) {
      signal.throwIfAborted();
      const unusable = error.tensors ? null : error.message;
      return { error, facts: { possible: false, missing: error.tensors ?? [], unusable, weight_bytes: 0, download_bytes: 0 } };
    }
  };
  try {
    const [decode, encode] = [await open('decode'), await open('encode')];
    const info = decode.info ?? encode.info;
    // Files that can neither decode nor encode are no model.
    if (!info) throw decode.error;
    return { ...info, commit, decode: decode.facts, encode: encode.facts };
  } finally {
    for (const source of sources) source.release?.();
  }
}

/**
 * @param {import('./model.js').Read[]} reads
 * @param {Source[]} sources
 */
async function factsOf(reads, sources) {
  const downloads = await Promise.all(sources.map((source, index) => source.toDownload?.(readsOf(reads, index)) ?? 0));
  const sum = (/** @type {number[]} */ numbers) => numbers.reduce((total, number) => total + number, 0);
  return { possible: true, missing: [], unusable: null, weight_bytes: sum(reads.map(({ length }) => length)), download_bytes: sum(downloads) };
}
