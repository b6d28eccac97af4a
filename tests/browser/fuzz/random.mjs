// @ts-check
// Reproducible randomness: everything in a case follows from its seed.

/** Numbers from a seed (mulberry32). */
export class Random {
  #state;

  /** @param {number} seed */
  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /** Returns a whole number of 32 bits. */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  /** Returns a whole number from 0 to `count` - 1. @param {number} count */
  below(count) {
    return this.next() % count;
  }

  /**
   * Returns a whole number between both, inclusive.
   * @param {number} least
   * @param {number} most
   */
  between(least, most) {
    return least + this.below(most - least + 1);
  }

  /** Returns true with this probability. @param {number} probability */
  chance(probability) {
    return this.next() < probability * 2 ** 32;
  }

  /** @template T @param {readonly T[]} choices @returns {T} */
  pick(choices) {
    return /** @type {T} */ (choices[this.below(choices.length)]);
  }

  /** @param {number} length */
  bytes(length) {
    const words = new Uint32Array(Math.ceil(length / 4));
    for (let index = 0; index < words.length; index += 1) words[index] = this.next();
    return new Uint8Array(words.buffer, 0, length);
  }
}
