// @ts-check
// One task at a time, in the order of asking.

/** Runs tasks one after the other. A task that fails does not stop those behind it. */
export class Queue {
  /** @type {Promise<unknown>} */
  #last = Promise.resolve();

  /**
   * Runs `task` when those before it are over. An abort rejects at once; a task that is running by
   * then still ends before the next begins.
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

  /** Resolves when everything asked so far is over. */
  async idle() {
    await this.#last;
  }
}

/**
 * `promise`, or the signal's reason as soon as it is aborted.
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
