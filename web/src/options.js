// @ts-check
// What options of callers can be: whoever writes `fp16` for `f16` shall read which words there are.

import { isCount } from './counts.js';
import { mismatch } from './errors.js';
import { kindOf } from './sources.js';

/**
 * Whether a value is right, and what it should be. @typedef {[(value: any) => boolean, string]}
 * Check
 */

/** @type {(...choices: string[]) => Check} */
export const oneOf = (...choices) => [(value) => choices.includes(value), `one of ${choices.join(', ')}`];

/** @type {Check} */
export const TEXT = [(value) => typeof value === 'string', 'text'];

/** @type {Check} */
export const WHOLE = [isCount, 'a whole number'];

/** @type {Check} */
export const FLAG = [(value) => typeof value === 'boolean', 'true or false'];

/** Those of every function that takes a model. @type {Record<string, Check>} */
export const OF_MODELS = {
  family: TEXT,
  precision: oneOf('auto', 'f32', 'f16', 'fast'),
  unscaled: FLAG,
  clips: FLAG,
  memoryBudget: WHOLE,
  parking: oneOf('auto', 'on', 'off'),
  powerPreference: oneOf('high-performance', 'low-power'),
  defaultLimits: FLAG,
};

/**
 * Fails for what is no object.
 * @param {unknown} options
 */
export function checkObject(options) {
  if (typeof options !== 'object' || options === null) throw mismatch('input', 'options', 'an object', typeof options === 'string' ? `"${options}"` : kindOf(options));
}

/**
 * Fails for options that are not what `checks` say, as far as they are there.
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
