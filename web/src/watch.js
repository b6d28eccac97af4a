// @ts-check
// An instance of the wasm module, watched. Rust's own errors are values; whatever else ends a call,
// a panic, a failed allocation or an exception that nobody expected, has cut it off in the middle
// of its work. From then on the instance counts as broken: what waits for it ends, and nothing in
// it is called again.

import { orAborted } from './queue.js';

/**
 * What a call of a broken instance gives: nothing of a picture's, and nothing that the glue
 * stumbles over. @type {readonly never[]}
 */
const NOTHING = Object.freeze([]);

/**
 * What an instance exports, with its functions watched.
 * @template {object} T
 * @param {T} exports
 * @param {AbortController} breaking aborted with the error when a call breaks the instance
 * @param {(cause: unknown) => Error} describe makes that error of what ended the call
 * @returns {T}
 */
export function watchCalls(exports, breaking, describe) {
  const { signal } = breaking;
  /** @param {(...parameters: unknown[]) => unknown} call */
  const watched = (call) => (/** @type {unknown[]} */ ...parameters) => {
    // Listeners of the browser's may still call, and so may whoever tidies up.
    if (signal.aborted) return NOTHING;
    try {
      const result = call(...parameters);
      return result instanceof Promise ? orAborted(result, signal) : result;
    } catch (cause) {
      breaking.abort(describe(cause));
      throw signal.reason;
    }
  };
  const entries = Object.entries(exports).map(([name, value]) => [name, typeof value === 'function' ? watched(value) : value]);
  return Object.fromEntries(entries);
}
