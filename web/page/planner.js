// @ts-check
// Plans for the sliders, without a model, with the chosen budget and without one. They run in a
// worker of their own, so that plans and decodes do not wait for each other.

import { planFor } from '../src/worker.js';
import { hostWorker } from './host-worker.js';

/** @typedef {import('../src/index.js').Plan} Plan */

/**
 * Inputs of a plan. `budget` is in bytes.
 * @typedef {{ family: string, direction: 'decode' | 'encode', width: number, height: number,
 * precision: 'f16' | 'f32' | 'fast', budget: number | undefined }} Wish
 */

/**
 * A plan. `plan` keeps the budget, or is the plan for `smallest` bytes if none keeps it; `whole`
 * has no budget.
 * @typedef {{ wish: Wish, plan: Plan, whole: Plan, smallest?: number }} Answer
 */

export class Planner {
  #worker = hostWorker('plans');
  /**
   * The last plan without a budget: dragging the budget does not change it.
   * @type {{ of: string, plan: Plan } | undefined}
   */
  #last;

  /**
   * @param {Wish} wish
   * @returns {Promise<Answer>}
   */
  async answer(wish) {
    const { budget, ...others } = wish;
    // Output in memory, as on the command line.
    const made = others.direction === 'encode' ? others : { ...others, output: /** @type {const} */ ('image-data') };
    const of = JSON.stringify(made);
    const options = { ...made, worker: this.#worker };
    if (this.#last?.of !== of) this.#last = { of, plan: await planFor(options) };
    const whole = this.#last.plan;
    if (budget === undefined || budget >= whole.predicted_peak_bytes) return { wish, plan: whole, whole };
    try {
      return { wish, plan: await planFor({ ...options, memoryBudget: budget }), whole };
    } catch (/** @type {any} */ error) {
      if (error.code !== 'budget' || error.smallest === undefined) throw error;
      return { wish, plan: await planFor({ ...options, memoryBudget: error.smallest }), whole, smallest: error.smallest };
    }
  }
}
