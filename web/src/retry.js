// @ts-check
// A second and a third try for what fails by chance: a model is fetched in many requests, and one hiccup must not cost the load.

import { WgvaeError } from './errors.js';
import { orAborted } from './queue.js';

/** Milliseconds before the second try and before the third. */
const WAITS = [300, 1000];

/** Answers of servers that are busy or being restarted. */
const PASSING = [429, 500, 502, 503, 504];

/**
 * Does `task`, and again if it fails in a way that may pass. An abort ends the wait at once.
 * @template T
 * @param {() => Promise<T>} task
 * @param {AbortSignal} signal
 * @returns {Promise<T>} or the error of the last try
 */
export async function withRetries(task, signal) {
  for (const wait of WAITS) {
    try {
      return await task();
    } catch (error) {
      if (!mayPass(error)) throw error;
    }
    await orAborted(new Promise((resolve) => setTimeout(resolve, wait)), signal);
  }
  return task();
}

/**
 * Whether the next try may do better: nobody answered, the answer broke off, or the server says that it has trouble now.
 * @param {unknown} error
 */
function mayPass(error) {
  if (!(error instanceof WgvaeError)) return false;
  const { code, status } = /** @type {WgvaeError & { status?: number }} */ (error);
  return code === 'network' || code === 'truncated' || PASSING.includes(status ?? 0);
}
