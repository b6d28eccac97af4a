// @ts-check
// Plans on the CPU keep to the memory of a module of WebAssembly, which has 4 GiB for everything.

import { WgvaeError, wgvaeError } from './errors.js';

/** The most bytes of a plan on the CPU. */
const MOST = 3.5 * 2 ** 30;

/**
 * Returns the budget of a plan.
 * @param {boolean} isOnCpu
 * @param {number | undefined} budget of the caller
 */
export function budgetOf(isOnCpu, budget) {
  return isOnCpu ? Math.min(budget ?? MOST, MOST) : budget;
}

/**
 * Returns an error of the module as ours: where no plan fits the module, a larger budget is of no
 * use.
 * @param {boolean} isOnCpu
 * @param {unknown} error
 */
export function planError(isOnCpu, error) {
  const own = wgvaeError(error);
  const { code, smallest } = /** @type {any} */ (own);
  return isOnCpu && code === 'budget' && smallest > MOST ? tooLarge(smallest, own) : own;
}

/**
 * Returns the plan, if it fits the module.
 * @template {{ predicted_peak_bytes: number }} P
 * @param {boolean} isOnCpu
 * @param {P} plan
 * @returns {P}
 */
export function fitting(isOnCpu, plan) {
  if (isOnCpu && plan.predicted_peak_bytes > MOST) throw tooLarge(plan.predicted_peak_bytes);
  return plan;
}

/**
 * @param {number} needed bytes
 * @param {unknown} [cause]
 */
function tooLarge(needed, cause) {
  const sizes = [needed, MOST].map((bytes) => `${Math.ceil(bytes / 2 ** 20)} MiB`);
  return new WgvaeError('too-large', `a plan on the CPU needs ${sizes[0]}, but a module of WebAssembly has ${sizes[1]} for it`, { needed, limit: MOST, cause });
}
