// @ts-check
// Checks of numbers among callers' options. The module gets them as JSON, where NaN and Infinity
// become null: a budget would become no budget.

import { kindOf, mismatch } from './errors.js';

/** @param {unknown} value */
export function isCount(value) {
  return Number.isSafeInteger(value) && /** @type {number} */ (value) >= 0;
}

/**
 * Throws unless every option is undefined or a whole number of 32 bits, as the module takes them.
 * @param {Record<string, number | undefined>} options
 */
export function checkSmallCounts(options) {
  checkCounts(options);
  for (const [name, value = 0] of Object.entries(options)) {
    if (value >= 2 ** 32) throw mismatch('input', name, 'less than 2 ** 32', `${value}`);
  }
}

/**
 * Throws unless every option is undefined or a whole number.
 * @param {Record<string, unknown>} options
 */
export function checkCounts(options) {
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && !isCount(value)) throw mismatch('input', name, 'a whole number', typeof value === 'number' ? `${value}` : kindOf(value));
  }
}
