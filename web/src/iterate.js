// @ts-check
// Values that a caller gives one after the other: arrays, generators, streams.

import { mismatch } from './errors.js';
import { orAborted } from './queue.js';
import { kindOf } from './sources.js';

/** @param {unknown} value @returns {value is Iterable<unknown> | AsyncIterable<unknown>} */
export function isIterable(value) {
  // Texts and arrays of numbers are iterable, too, but do not hold pictures or latents.
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return false;
  return Symbol.asyncIterator in value || Symbol.iterator in value || isStream(value);
}

/** @param {any} value @returns {value is ReadableStream<any>} */
function isStream(value) {
  return typeof value?.getReader === 'function';
}

/**
 * Returns the iterable of a caller's values. Values of a stream belong to its reader, which closes
 * them; those of other iterables stay the caller's.
 * @param {any} values
 * @returns {Iterable<any> | AsyncIterable<any>}
 */
export function valuesIn(values) {
  return isStream(values) ? closing(read(values)) : values;
}

/**
 * Reads a stream. Not all browsers can iterate over one.
 * @param {ReadableStream<any>} stream
 */
async function* read(stream) {
  const reader = stream.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    await reader.cancel();
  }
}

/**
 * Yields values, and closes each that can be closed once the next is requested.
 * @param {AsyncIterable<any>} values
 */
export async function* closing(values) {
  for await (const value of values) {
    try {
      yield value;
    } finally {
      value?.close?.();
    }
  }
}

/** Values of an iterable, until it ends or the reader stops. */
export class Values {
  #iterator;
  #signal;
  /** True after the end, or a failure. */
  #isOver = false;

  /**
   * @param {unknown} iterable
   * @param {AbortSignal} signal
   * @param {string} what the values are, for errors
   */
  constructor(iterable, signal, what) {
    if (!isIterable(iterable)) throw mismatch('input', what, 'an array, a generator, a stream or another iterable', kindOf(iterable));
    const values = /** @type {any} */ (valuesIn(iterable));
    /** @type {AsyncIterator<any> | Iterator<any>} */
    this.#iterator = (values[Symbol.asyncIterator] ?? values[Symbol.iterator]).call(values);
    this.#signal = signal;
  }

  /** Returns the next value, or the end. @returns {Promise<{ done?: boolean, value?: any }>} */
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

  /** Tells the iterable that the reader stops. */
  async free() {
    if (this.#isOver) return;
    this.#isOver = true;
    try {
      await this.#iterator.return?.();
    } catch (error) {
      // The error belongs to the iterable, and not to the work on its values.
      reportError(error);
    }
  }
}
