// @ts-check
// Checks of callers' options. A caller who writes `fp16` for `f16` gets an error that lists the
// valid words.

import { isCount } from './counts.js';
import { mismatch } from './errors.js';
import { kindOf } from './sources.js';

/**
 * A test of a value, and a description of valid values.
 * @typedef {[(value: any) => boolean, string]} Check
 */

/** @type {(...choices: string[]) => Check} */
export const oneOf = (...choices) => [(value) => choices.includes(value), `one of ${choices.join(', ')}`];

/** @type {Check} */
export const TEXT = [(value) => typeof value === 'string', 'text'];

/** @type {Check} */
export const WHOLE = [isCount, 'a whole number'];

/** @type {Check} */
export const FLAG = [(value) => typeof value === 'boolean', 'true or false'];

/** Checks for the options of every function that takes a model. @type {Record<string, Check>} */
export const OF_MODELS = {
  family: TEXT,
  precision: oneOf('auto', 'f32', 'f16', 'fast'),
  unscaled: FLAG,
  clips: FLAG,
  memoryBudget: WHOLE,
  leastMemory: FLAG,
  parking: oneOf('auto', 'on', 'off'),
  powerPreference: oneOf('high-performance', 'low-power'),
  defaultLimits: FLAG,
};

/**
 * Throws unless `options` is an object.
 * @param {unknown} options
 */
export function checkObject(options) {
  if (typeof options !== 'object' || options === null) throw mismatch('input', 'options', 'an object', typeof options === 'string' ? `"${options}"` : kindOf(options));
}

/**
 * Throws if a given option fails its check.
 * @param {object} options
 * @param {Record<string, Check | undefined>} checks
 */
export function checkOptions(options, checks) {
  checkObject(options);
  for (const [name, value] of Object.entries(options)) {
    const [isRight, expected] = (value !== undefined && Object.hasOwn(checks, name) && checks[name]) || [];
    if (isRight && !isRight(value)) throw mismatch('input', name, `${expected}`, found(value));
  }
}

/** @param {unknown} value */
function found(value) {
  if (typeof value === 'string') return `"${value}"`;
  return typeof value === 'number' || typeof value === 'boolean' ? `${value}` : kindOf(value);
}
