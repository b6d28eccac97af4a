// @ts-check
// Retries of requests that fail by chance. A model is fetched in many requests, and one hiccup must
// not fail the load.

import { WgvaeError } from './errors.js';
import { orAborted } from './queue.js';

/** Seconds before the second and the third try, unless the server names a time. */
const WAITS = [0.3, 1];

/** Longest wait that a server may ask for, seconds. The caller decides about longer ones. */
const LONGEST_WAIT = 120;

/** Statuses of servers that are busy or restarting. */
const PASSING = [429, 500, 502, 503, 504];

/**
 * Runs `task`, and runs it again after a failure that may pass. An abort ends the wait at once.
 * @template T
 * @param {() => Promise<T>} task
 * @param {AbortSignal} signal
 * @param {import('./cache.js').Notify} notify listener for waits that the server asks for
 * @returns {Promise<T>} rejects with the error of the last try
 */
export async function withRetries(task, signal, notify) {
  for (const wait of WAITS) {
    let seconds = wait;
    try {
      return await task();
    } catch (error) {
      if (!mayPass(error)) throw error;
      const { retryAfter = 0, message } = /** @type {WgvaeError & { retryAfter?: number }} */ (error);
      if (retryAfter > LONGEST_WAIT) throw error;
      if (retryAfter > wait) notify({ code: 'waiting', message });
      seconds = Math.max(wait, retryAfter);
    }
    await orAborted(new Promise((resolve) => setTimeout(resolve, 1000 * seconds)), signal);
  }
  return task();
}

/**
 * True if the next try may succeed: there was no answer, it was truncated, or the server reports
 * trouble.
 * @param {unknown} error
 */
export function mayPass(error) {
  if (!(error instanceof WgvaeError)) return false;
  const { code, status } = /** @type {WgvaeError & { status?: number }} */ (error);
  return code === 'network' || code === 'truncated' || PASSING.includes(status ?? 0);
}

/**
 * Returns the seconds from `now` that a Retry-After header gives, as a number or as a date.
 * @param {string | null} header
 * @param {number} now milliseconds
 * @returns {number | undefined} undefined if the header cannot be parsed
 */
export function secondsToWait(header, now) {
  if (header === null) return undefined;
  if (/^\d+$/.test(header.trim())) return Number(header);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000);
}
