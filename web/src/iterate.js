// @ts-check
// Values that a caller gives one after the other: arrays, generators, streams.

import { kindOf, mismatch, reportAside } from './errors.js';
import { orAborted } from './queue.js';

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

/** @typedef {{ next(): any, return?(value?: any): unknown }} Steps an iterator */

/**
 * Returns the iterator of a caller's values. Values of a stream belong to its reader, which closes
 * them; those of other iterables stay the caller's.
 * @param {any} values
 * @param {string} what the values are, for errors
 * @returns {Steps}
 */
function iteratorOf(values, what) {
  if (!isIterable(values)) throw mismatch('input', what, 'an array, a generator, a stream or another iterable', kindOf(values));
  if (isStream(values)) return closing(read(values, what));
  return /** @type {any} */ (values)[Symbol.asyncIterator]?.() ?? /** @type {any} */ (values)[Symbol.iterator]();
}

/**
 * Returns an iterator of a stream, as not all browsers have one. Unlike a generator it cancels the
 * stream at once, also while it waits for a value.
 * @param {ReadableStream<any>} stream
 * @param {string} what
 * @returns {Steps}
 */
function read(stream, what) {
  if (stream.locked) throw mismatch('input', what, 'a stream that nobody else reads', 'a locked one');
  const reader = stream.getReader();
  return { next: () => reader.read(), return: () => reader.cancel() };
}

/**
 * Returns an iterator that closes each value that can be closed, once the next is requested.
 * @param {Steps} values
 * @returns {Steps & AsyncIterable<any>}
 */
export function closing(values) {
  /** @type {any} */
  let held;
  let isLeft = false;
  const close = () => {
    held?.close?.();
    held = undefined;
  };
  return {
    async next() {
      close();
      const next = await values.next();
      held = next.value;
      // Nobody uses a value that comes after the end.
      if (isLeft) close();
      return next;
    },
    return() {
      isLeft = true;
      close();
      return values.return?.();
    },
    [Symbol.asyncIterator]() {
      return /** @type {any} */ (this);
    },
  };
}

/**
 * Ends an iterable that nobody has begun to read.
 * @param {any} values
 */
function endUnread(values) {
  if (isStream(values)) return values.locked ? undefined : values.cancel();
  // Only a generator, or another iterator, has something to end: arrays and sets do not.
  return typeof values?.next === 'function' ? values.return?.() : undefined;
}

/** Values of an iterable, which is opened for the first of them, until it ends or the reader stops. */
export class Values {
  #iterable;
  #what;
  /** @type {Steps | undefined} */
  #iterator;
  /** True after the end, or a failure. */
  #isOver = false;

  /**
   * @param {unknown} iterable
   * @param {string} what the values are, for errors
   */
  constructor(iterable, what) {
    this.#iterable = iterable;
    this.#what = what;
  }

  /** Number of values of an array; undefined for other iterables. */
  get count() {
    return Array.isArray(this.#iterable) ? this.#iterable.length : undefined;
  }

  /**
   * Returns the next value, or the end.
   * @param {AbortSignal} signal
   * @returns {Promise<{ done?: boolean, value?: any }>}
   */
  next(signal) {
    return orAborted(this.#next(), signal);
  }

  async #next() {
    if (this.#isOver) return { done: true };
    try {
      this.#iterator ??= iteratorOf(this.#iterable, this.#what);
      const { done, value } = await this.#iterator.next();
      if (done) this.#isOver = true;
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
      await (this.#iterator ? this.#iterator.return?.() : endUnread(this.#iterable));
    } catch (error) {
      // The error belongs to the iterable, and not to the work on its values.
      reportAside(error);
    }
  }
}
