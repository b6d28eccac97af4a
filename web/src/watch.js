// @ts-check
// Supervision of an instance of the wasm module. Rust's own errors are values. Anything else that
// ends a call (a panic, a failed allocation, an unexpected exception) has interrupted it in the
// middle of its work. From then on the instance counts as broken: waiting calls end, and nothing in
// it is called again.

import { orAborted } from './queue.js';

/**
 * Result of a call into a broken instance: no data, but a value that the glue can handle.
 * @type {readonly never[]}
 */
const NOTHING = Object.freeze([]);

/** Part of the names of exports that run Rust's closures, mostly from the event loop. */
const CALLED_BACK = '__closures__';

/**
 * Returns the exports of an instance, with its functions supervised.
 * @template {object} T
 * @param {T} exports
 * @param {AbortController} breaking aborted with that error when a call breaks the instance
 * @param {(cause: unknown) => Error} describe makes the error from the cause that ended the call
 * @param {() => void} after called after each call
 * @returns {T}
 */
export function watchCalls(exports, breaking, describe, after) {
  const { signal } = breaking;
  /**
   * @param {string} name
   * @param {(...parameters: unknown[]) => unknown} call
   */
  const watched = (name, call) => (/** @type {unknown[]} */ ...parameters) => {
    // Listeners of the browser, and code that frees objects, may still call.
    if (signal.aborted) return NOTHING;
    try {
      const result = call(...parameters);
      after();
      return result instanceof Promise ? orAborted(result, signal) : result;
    } catch (cause) {
      breaking.abort(describe(cause));
      if (!name.includes(CALLED_BACK)) throw signal.reason;
      // Whoever waits hears of it by the signal. An error that nobody catches would end Node.
      console.error(`${cause}`);
      return NOTHING;
    }
  };
  const entries = Object.entries(exports).map(([name, value]) => [name, typeof value === 'function' ? watched(name, value) : value]);
  return Object.fromEntries(entries);
}
