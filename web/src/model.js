// @ts-check
// The opened files of a model. They are read again when weights have to be loaded a second time.

import { HubModel } from './hub.js';
import { modelNamed } from './hub-name.js';
import { Access, openSource, readText } from './sources.js';
import { mismatch } from './errors.js';

/** @typedef {import('./wasm.js').Wasm} Wasm */
/** @typedef {import('./sources.js').Source} Source */
/** @typedef {import('./read-ahead.js').Range & { source: number }} Read */
/**
 * Directions for which a model's weights are needed.
 * @typedef {'decode' | 'encode' | 'both'} Directions
 */

/** An opened checkpoint and the sources that it reads from. */
export class Model {
  /**
   * @param {import('../pkg/wgvae.js').Checkpoint} checkpoint
   * @param {CountedSource[]} sources
   */
  constructor(checkpoint, sources) {
    this.checkpoint = checkpoint;
    this.sources = sources;
    /** Reads of a load of the weights, in order. @type {Read[]} */
    this.reads = checkpoint.reads();
  }

  /**
   * Prepares the sources for a load of the weights. `onBytes` receives the bytes read, their total,
   * and the bytes that came over the network.
   * @param {(done: number, total: number, downloaded: number) => void} onBytes
   */
  beginLoad(onBytes) {
    const total = this.reads.reduce((sum, read) => sum + read.length, 0);
    let done = 0;
    this.sources.forEach((source, index) => {
      source.expect(readsOf(this.reads, index));
      source.onRead = (bytes) => onBytes((done += bytes), total, this.sources.reduce((sum, { downloaded }) => sum + downloaded, 0));
    });
  }

  /** Releases the sources' buffers and requests. They open again by themselves. */
  endLoad() {
    for (const source of this.sources) {
      source.onRead = () => {};
      source.release();
    }
  }

  free() {
    this.endLoad();
    this.checkpoint.free();
  }
}

/**
 * Returns the reads of one source.
 * @param {Read[]} reads
 * @param {number} source
 */
export function readsOf(reads, source) {
  return reads.filter((read) => read.source === source);
}

/**
 * Opens the files and reads their headers.
 * @param {Wasm} wasm
 * @param {Pick<import('./index.js').ModelOptions, 'model' | 'config' | 'family' | 'clips' |
 * 'previewRate' | 'border'>} options
 * @param {Directions} directions
 * @param {Access} access
 */
export async function openModel(wasm, options, directions, access) {
  const { text, sources, family } = await openFiles(options, access);
  try {
    const counted = sources.map((source) => new CountedSource(source));
    const checkpoint = await wasm.Checkpoint.open(counted, text, family, directions, options.clips ?? false, options.previewRate ?? false, options.border);
    const message = checkpoint.info().assumed;
    if (message) access.notify({ code: 'assumed', message });
    return new Model(checkpoint, counted);
  } catch (error) {
    for (const source of sources) source.release?.();
    throw error;
  }
}

/**
 * Opens the files.
 * @param {Pick<import('./index.js').ModelOptions, 'model' | 'config' | 'family'>} options
 * @param {Access} access
 * @returns {Promise<{ text: string | undefined, sources: Source[], commit: string | undefined,
 * family: string | undefined }>} `text` of config.json; `commit` of the hub's; `family`: the
 * caller's, or that of a short name
 */
export async function openFiles({ model: given, config, family }, access) {
  const named = typeof given === 'string' ? modelNamed(given) : undefined;
  const model = named?.model ?? given;
  const found = model instanceof HubModel ? await model.find(access) : undefined;
  const inputs = Array.isArray(model) ? model : [model];
  if (inputs.length === 0) throw mismatch('input', 'model', 'at least one file', 'none');
  const opening = found
    ? found.weights.map((file) => file.open())
    : inputs.map((input, index) => openSource(input, access, { what: inputs.length > 1 ? `model ${index + 1}` : 'model' }));
  try {
    const reading = config === undefined ? found?.config?.text() : readText(config, access, 'config');
    const [text, ...sources] = await Promise.all([reading, ...opening]);
    return { text, sources, commit: found?.commit, family: family ?? named?.family };
  } catch (error) {
    // Also releases sources that open only now; the error does not wait for them.
    for (const source of opening) source.then((opened) => opened.release?.(), () => {});
    throw error;
  }
}

/** A source that reports how much of it is read. */
class CountedSource {
  #source;
  /** @type {(bytes: number) => void} */
  onRead = () => {};

  /** @param {Source} source */
  constructor(source) {
    this.#source = source;
    this.name = source.name;
    this.length = source.length;
  }

  get downloaded() {
    return this.#source.downloaded ?? 0;
  }

  /**
   * @param {number} offset
   * @param {number} length
   */
  async read(offset, length) {
    const bytes = await this.#source.read(offset, length);
    this.onRead(length);
    return bytes;
  }

  /** @param {import('./read-ahead.js').Range[]} reads */
  expect(reads) {
    this.#source.expect?.(reads);
  }

  release() {
    this.#source.release?.();
  }
}
