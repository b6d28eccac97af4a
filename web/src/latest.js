// @ts-check
// Calls of which only the latest counts, such as previews of a picture in the making.

import { WgvaeError } from './errors.js';
import { either } from './queue.js';

/** Longest side of a preview, pixels. */
export const MAX_SIDE = 512;

/** Ends each call when the next one begins. */
export class Latest {
  /** @type {AbortController | undefined} */
  #last;

  /**
   * Returns the signal of a new call, which also aborts with the caller's, and ends the call before
   * it.
   * @param {AbortSignal} [callers]
   */
  begin(callers) {
    this.#last?.abort(replaced());
    this.#last = new AbortController();
    return either(callers, this.#last.signal);
  }
}

/** Returns the reason of an abort by a newer call: an error of the package with an abort's name. */
function replaced() {
  return Object.assign(new WgvaeError('replaced', 'a newer preview, or a newer decode with `replace`, began'), { name: 'AbortError' });
}
