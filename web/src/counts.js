// @ts-check
// Numbers among the options of callers. The module gets them as JSON, where NaN and Infinity are
// null: nothing, and so no budget.

import { mismatch } from './errors.js';
import { kindOf } from './sources.js';

/** @param {unknown} value */
export function isCount(value) {
  return Number.isSafeInteger(value) && /** @type {number} */ (value) >= 0;
}

/**
 * Fails for what is neither left out nor a whole number.
 * @param {Record<string, unknown>} options
 */
export function checkCounts(options) {
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && !isCount(value)) throw mismatch('input', name, 'a whole number', typeof value === 'number' ? `${value}` : kindOf(value));
  }
}
