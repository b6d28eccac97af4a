// @ts-check
// What a caller gives one after the other: arrays, generators, streams.

import { mismatch } from './errors.js';
import { orAborted } from './queue.js';
import { kindOf } from './sources.js';

/** @param {unknown} value @returns {value is Iterable<unknown> | AsyncIterable<unknown>} */
export function isIterable(value) {
  // A text and an array of numbers are, too, but of nothing that is a picture or latents.
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return false;
  return Symbol.asyncIterator in value || Symbol.iterator in value;
}

/** Values of an iterable, until it ends or nobody goes on. */
export class Values {
  #iterator;
  #signal;
  /** Whether it has ended, or failed. */
  #isOver = false;

  /**
   * @param {unknown} iterable
   * @param {AbortSignal} signal
   * @param {string} what they are
   */
  constructor(iterable, signal, what) {
    if (!isIterable(iterable)) throw mismatch('input', what, 'an array, a generator or another iterable', kindOf(iterable));
    const values = /** @type {any} */ (iterable);
    /** @type {AsyncIterator<any> | Iterator<any>} */
    this.#iterator = (values[Symbol.asyncIterator] ?? values[Symbol.iterator]).call(values);
    this.#signal = signal;
  }

  /** The next one, or its end. @returns {Promise<{ done?: boolean, value?: any }>} */
  next() {
    return orAborted(this.#next(), this.#signal);
  }

  async #next() {
    if (this.#isOver) return { done: true };
    try {
      const { done, value } = await this.#iterator.next();
      this.#isOver = Boolean(done);
      // Arrays may hold promises.
      return done ? { done } : { value: await value };
    } catch (error) {
      this.#isOver = true;
      throw error;
    }
  }

  /** Tells whoever makes them that nobody goes on. */
  async free() {
    if (this.#isOver) return;
    this.#isOver = true;
    try {
      await this.#iterator.return?.();
    } catch (error) {
      // Theirs, and no error of what was done with the values.
      reportError(error);
    }
  }
}
