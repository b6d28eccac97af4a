// @ts-check
// One bar for everything that is under way, from the load of the model to the last row. It never
// goes back: a stage takes its share of what is left of the bar when it begins.

import { element } from './elements.js';

/**
 * Part of the work. `later` stands for a decode whose stages are not known yet.
 * @typedef {'load' | 'compile' | 'encode' | 'decode' | 'later'} Stage
 */

/** Usual times of the stages, compared with each other. @type {Record<Stage, number>} */
const WEIGHTS = { load: 3, compile: 3, encode: 4, decode: 4, later: 7 };

/** Time and part of a stage before which its rate is only a guess, milliseconds. */
const UNSURE = { time: 1500, part: 0.1 };

/**
 * Returns the stages of operations in order. Those after the first are announced when they begin,
 * because each compiles shaders, and so do later parts of a clip.
 * @param {('encode' | 'decode')[]} operations
 * @returns {Stage[]}
 */
export function stagesOf([first, ...others]) {
  return ['compile', first, ...others.map(() => /** @type {const} */ ('later'))];
}

export class Bar {
  #bar = element('progress', HTMLProgressElement);
  /** The current stage, and those after it. @type {Stage[]} */
  #stages = [];
  /** Shown part of the whole. */
  #at = 0;
  /** Part of the whole, and time, at which the current stage began. */
  #from = { at: 0, time: 0 };

  /**
   * Begins new work, at the left end.
   * @param {Stage[]} stages
   */
  begin(stages) {
    this.#at = 0;
    this.#bar.removeAttribute('value');
    this.expect(stages);
    this.show(true);
  }

  /**
   * Replaces the stages to come.
   * @param {Stage[]} stages
   */
  expect(stages) {
    this.#stages = stages;
    this.#from = { at: this.#at, time: performance.now() };
  }

  /**
   * Moves the bar. Returns the seconds left, once they can be told: of a load only its own, because
   * its rate is that of a network or a disk, and otherwise of all stages.
   * @param {Stage} stage
   * @param {number} part done of the stage
   */
  move(stage, part) {
    const index = this.#stages.indexOf(stage);
    if (index < 0) return undefined;
    if (index > 0) this.expect(this.#stages.slice(index));
    const weights = this.#stages.map((name) => WEIGHTS[name]);
    const all = weights.reduce((sum, weight) => sum + weight, 0);
    this.#at = Math.max(this.#at, this.#from.at + (1 - this.#from.at) * (weights[0] / all) * part);
    this.#bar.value = this.#at;
    const time = performance.now() - this.#from.time;
    if (time < UNSURE.time || part < UNSURE.part) return undefined;
    const left = stage === 'load' ? 1 - part : all / weights[0] - part;
    return (time / 1000 / part) * left;
  }

  /** @param {boolean} isThere */
  show(isThere) {
    this.#bar.classList.toggle('is-there', isThere);
  }
}
