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
    const leave = whenAborted(signal, abort);
    promise.then(resolve, reject).finally(leave);
  });
}

/**
 * Functions that wait for an abort, by signal: each signal has one listener for all of them, as
 * Node takes many listeners for a leak.
 * @type {WeakMap<AbortSignal, Set<() => void>>}
 */
const waiting = new WeakMap();

/** @param {Event} event */
function callAll({ target }) {
  const signal = /** @type {AbortSignal} */ (target);
  const calls = waiting.get(signal);
  waiting.delete(signal);
  calls?.forEach((call) => call());
}

/**
 * Calls `call` when the signal is aborted, unless the returned function is called before.
 * @param {AbortSignal} signal
 * @param {() => void} call
 */
export function whenAborted(signal, call) {
  const calls = waiting.get(signal) ?? new Set();
  waiting.set(signal, calls.add(call));
  // A listener that is there already is not added again.
  signal.addEventListener('abort', callAll, { once: true });
  return () => {
    calls.delete(call);
    if (calls.size === 0) signal.removeEventListener('abort', callAll);
  };
}

/**
 * Returns a signal that aborts with either, for the reason of the first to abort.
 * @param {AbortSignal | undefined} first
 * @param {AbortSignal} second
 */
export function either(first, second) {
  if (!first) return second;
  // Browsers have WebAssembly's SIMD for longer than this function.
  if ('any' in AbortSignal) return AbortSignal.any([first, second]);
  const both = new AbortController();
  const [aborted] = [first, second].filter((signal) => signal.aborted);
  if (aborted) both.abort(aborted.reason);
  else follow(both, [first, second]);
  return both.signal;
}

/**
 * Aborts the controller with the first of the signals.
 * @param {AbortController} controller
 * @param {AbortSignal[]} signals
 */
function follow(controller, signals) {
  const leaves = signals.map((signal) => whenAborted(signal, () => {
    for (const leave of leaves) leave();
    controller.abort(signal.reason);
  }));
}
