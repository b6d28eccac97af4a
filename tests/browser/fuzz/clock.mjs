// @ts-check
// Time that passes only when nothing else happens: waits cost nothing, and a promise that never
// settles is noticed at once.

/** Longest time of a case, milliseconds. */
const LONGEST = 3_600_000;

const realImmediate = setImmediate;

/** A clock in place of `setTimeout`. */
export class Clock {
  now = 0;
  #order = 0;
  /** @type {{ at: number, order: number, task: () => void }[]} */
  #timers = [];

  /** Replaces the global timers, for one case. */
  install() {
    const target = /** @type {any} */ (globalThis);
    target.setTimeout = (/** @type {(...values: unknown[]) => void} */ task, delay = 0, /** @type {unknown[]} */ ...values) => {
      const timer = { at: this.now + Number(delay), order: (this.#order += 1), task: () => task(...values) };
      this.#timers.push(timer);
      return timer;
    };
    target.clearTimeout = (/** @type {any} */ timer) => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** @param {number} milliseconds @returns {Promise<void>} */
  wait(milliseconds) {
    return new Promise((resolve) => setTimeout(resolve, milliseconds));
  }

  /**
   * Runs everything until `promise` is settled. Returns false if nothing is left that could settle
   * it.
   * @param {Promise<unknown>} promise
   */
  async runUntil(promise) {
    let isSettled = false;
    promise.then(() => { isSettled = true; }, () => { isSettled = true; });
    for (;;) {
      await everythingAtHand();
      if (isSettled) return true;
      if (!this.#advance()) return false;
    }
  }

  /** Runs everything that is still to come. */
  async runOut() {
    do await everythingAtHand();
    while (this.#advance());
  }

  /** Moves to the next timer. Returns false if there is none. */
  #advance() {
    this.#timers.sort((a, b) => a.at - b.at || a.order - b.order);
    const timer = this.#timers.shift();
    if (!timer || timer.at > LONGEST) return false;
    this.now = Math.max(this.now, timer.at);
    timer.task();
    return true;
  }
}

/**
 * Runs everything that needs no time: the stand-ins for the browser settle their promises without
 * leaving JavaScript.
 */
function everythingAtHand() {
  return new Promise((resolve) => realImmediate(resolve));
}
