// @ts-check
// Plans of decodes and encodes, by a model that is loaded or that need not exist.

import { budgetOf, fitting, planError } from './module-memory.js';
import { checkSides, latentsOf } from './sides.js';

/**
 * Plans a job for pictures or frames of `width` by `height` pixels.
 * @param {import('../pkg/wgvae.js').Planner} planner
 * @param {{ scale: number, isOnCpu: boolean }} facts `scale`: pixels of a decoded picture per
 * latent
 * @param {{ direction: 'decode' | 'encode', frames?: 'clip', width: number, height: number,
 * memoryBudget?: number } & Record<string, unknown>} job with options of the module
 * @returns {any}
 */
export function planned(planner, { scale, isOnCpu }, { width, height, ...job }) {
  const size = { width, height };
  if (job.direction === 'encode') checkSides(size);
  const input = job.direction === 'encode' ? size : latentsOf(size, scale);
  try {
    return fitting(isOnCpu, planner.plan({ ...job, ...input, memoryBudget: budgetOf(isOnCpu, job.memoryBudget) }));
  } catch (error) {
    throw planError(isOnCpu, error);
  }
}
