// @ts-check
// Waits of Rust's futures in the module with threads, in place of `Atomics.waitAsync`, which older
// browsers lack. wasm-bindgen would start a worker from a blob there for each wait, and where a
// Content-Security-Policy forbids that, the wait would never end.

/**
 * Values that futures wait for. Only one thread runs futures, so they change only while it calls
 * the module: `check` comes after each call.
 */
export class Waits {
  /** @type {Set<{ array: Int32Array, index: number, value: number, resolve: () => void }>} */
  #pending = new Set();

  /**
   * Returns a promise that resolves after the value at `index` has changed, in the form of
   * `Atomics.waitAsync`.
   * @param {Int32Array} array
   * @param {number} index
   * @param {number} value
   */
  waitAsync = (array, index, value) => {
    /** @type {Promise<void>} */
    const promise = new Promise((resolve) => this.#pending.add({ array, index, value, resolve }));
    return { async: true, value: promise };
  };

  check() {
    for (const wait of this.#pending) {
      if (Atomics.load(wait.array, wait.index) === wait.value) continue;
      this.#pending.delete(wait);
      wait.resolve();
    }
  }
}
