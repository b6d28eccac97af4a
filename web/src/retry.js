// @ts-check
// A second and a third try for what fails by chance: a model is fetched in many requests, and one
// hiccup must not cost the load.

import { WgvaeError } from './errors.js';
import { orAborted } from './queue.js';

/** Seconds before the second try and before the third, where the server names none. */
const WAITS = [0.3, 1];

/** Seconds that a server may ask for. Longer is the caller's to decide. */
const LONGEST_WAIT = 120;

/** Answers of servers that are busy or being restarted. */
const PASSING = [429, 500, 502, 503, 504];

/**
 * Does `task`, and again if it fails in a way that may pass. An abort ends the wait at once.
 * @template T
 * @param {() => Promise<T>} task
 * @param {AbortSignal} signal
 * @param {import('./cache.js').Notify} notify hears of waits that the server asks for
 * @returns {Promise<T>} or the error of the last try
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
 * Whether the next try may do better: nobody answered, the answer broke off, or the server says
 * that it has trouble now.
 * @param {unknown} error
 */
export function mayPass(error) {
  if (!(error instanceof WgvaeError)) return false;
  const { code, status } = /** @type {WgvaeError & { status?: number }} */ (error);
  return code === 'network' || code === 'truncated' || PASSING.includes(status ?? 0);
}

/**
 * The seconds from `now` that a Retry-After says, as a number or as a date.
 * @param {string | null} header
 * @param {number} now milliseconds
 * @returns {number | undefined} undefined where it says nothing that can be understood
 */
export function secondsToWait(header, now) {
  if (header === null) return undefined;
  if (/^\d+$/.test(header.trim())) return Number(header);
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - now) / 1000);
}
