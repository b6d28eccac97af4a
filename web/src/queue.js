// @ts-check
// A queue that runs one task at a time.

/**
 * Runs tasks one after the other, in the order of the calls. A task that fails does not stop the
 * next ones.
 */
export class Queue {
  /** @type {Promise<unknown>} */
  #last = Promise.resolve();

  /**
   * Runs `task` after all tasks before it. An abort rejects at once; a task that is already running
   * still ends before the next begins.
   * @template T
   * @param {() => Promise<T>} task
   * @param {AbortSignal} signal
   * @returns {Promise<T>}
   */
  run(task, signal) {
    const turn = this.#last.then(() => {
      signal.throwIfAborted();
      return task();
    });
    this.#last = turn.catch(() => {});
    return orAborted(turn, signal);
  }

  /** Resolves when all tasks so far are done. */
  async idle() {
    await this.#last;
  }
}

/**
 * Returns `promise`, which rejects with the signal's reason as soon as it is aborted.
 * @template T
 * @param {Promise<T>} promise
 * @param {AbortSignal} signal
 * @returns {Promise<T>}
 */
export function orAborted(promise, signal) {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/**
 * Returns a signal that aborts with either.
 * @param {AbortSignal | undefined} first
 * @param {AbortSignal} second
 */
export function either(first, second) {
  return first ? AbortSignal.any([first, second]) : second;
}
