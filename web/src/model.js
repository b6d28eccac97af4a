// @ts-check
// The model's files, opened: what is read again when weights have to be loaded a second time.

import { Access, openSource, readText } from './sources.js';
import { mismatch } from './errors.js';

/** @typedef {import('./wasm.js').Wasm} Wasm */
/** @typedef {import('./sources.js').Source} Source */
/** @typedef {import('./read-ahead.js').Range & { source: number }} Read */
/** What a model's weights are wanted for. @typedef {'decode' | 'encode' | 'both'} Directions */

/** An opened checkpoint and the sources that it reads from. */
export class Model {
  /**
   * @param {import('../pkg/wgvae.js').Checkpoint} checkpoint
   * @param {CountedSource[]} sources
   */
  constructor(checkpoint, sources) {
    this.checkpoint = checkpoint;
    this.sources = sources;
    /** What a load of the weights reads, in order. @type {Read[]} */
    this.reads = checkpoint.reads();
  }

  /**
   * Gets the sources ready for a load of the weights. `onBytes` hears how many bytes have been read, and of how many.
   * @param {(done: number, total: number) => void} onBytes
   */
  beginLoad(onBytes) {
    const total = this.reads.reduce((sum, read) => sum + read.length, 0);
    let done = 0;
    this.sources.forEach((source, index) => {
      source.expect(this.reads.filter((read) => read.source === index));
      source.onRead = (bytes) => onBytes((done += bytes), total);
    });
  }

  /** Lets go of what the sources hold. They open again by themselves. */
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
 * Opens the files and reads their headers.
 * @param {Wasm} wasm
 * @param {Pick<import('./index.js').ModelOptions, 'model' | 'config' | 'family' | 'clips'>} options
 * @param {Directions} directions
 * @param {Access} access
 */
export async function openModel(wasm, { model, config, family, clips = false }, directions, access) {
  const inputs = Array.isArray(model) ? model : [model];
  if (inputs.length === 0) throw mismatch('input', 'model', 'at least one file', 'none');
  const opening = inputs.map((input, index) => openSource(input, access, { what: inputs.length > 1 ? `model ${index + 1}` : 'model' }));
  try {
    const [text, ...opened] = await Promise.all([config === undefined ? undefined : readText(config, access, 'config'), ...opening]);
    const sources = opened.map((source) => new CountedSource(source));
    return new Model(await wasm.Checkpoint.open(sources, text, family, directions, clips), sources);
  } catch (error) {
    // Those that open only now, too; the failure does not wait for them.
    for (const source of opening) source.then((opened) => opened.release?.(), () => {});
    throw error;
  }
}

/** A source that tells how much is read of it. */
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
