// @ts-check
// Plans for the page without a model: with the budget that is asked for, and without any.

import { planFor } from '../src/index.js';

/** @typedef {import('../src/index.js').Plan} Plan */

/**
 * `budget` is in bytes.
 * @typedef {{ family: string, direction: 'decode' | 'encode', width: number, height: number, precision: 'f16' | 'f32', budget: number | undefined }} Wish
 */

/**
 * `plan` keeps the budget, or, where none was found that does, `smallest`, bytes; `whole` has no budget. Or what is wrong.
 * @typedef {{ wish: Wish, plan: Plan, whole: Plan, smallest?: number } | { wish: Wish, error: string }} Answer
 */

/** The last plan without a budget: a budget that is dragged leaves it as it is. @type {{ of: string, plan: Plan } | undefined} */
let last;

self.onmessage = async ({ data: wish }) => self.postMessage(await answer(wish));

/**
 * @param {Wish} wish
 * @returns {Promise<Answer>}
 */
async function answer(wish) {
  const { budget, ...others } = wish;
  // In memory, as the command line's.
  const options = others.direction === 'encode' ? others : { ...others, output: /** @type {const} */ ('image-data') };
  try {
    const of = JSON.stringify(options);
    if (last?.of !== of) last = { of, plan: await planFor(options) };
    const whole = last.plan;
    if (budget === undefined || budget >= whole.predicted_peak_bytes) return { wish, plan: whole, whole };
    try {
      return { wish, plan: await planFor({ ...options, memoryBudget: budget }), whole };
    } catch (/** @type {any} */ error) {
      if (error.code !== 'budget' || error.smallest === undefined) throw error;
      return { wish, plan: await planFor({ ...options, memoryBudget: error.smallest }), whole, smallest: error.smallest };
    }
  } catch (error) {
    return { wish, error: error instanceof Error ? error.message : String(error) };
  }
}
