// @ts-check
// Checks of callers' options. A caller who writes `fp16` for `f16`, or `budget` for `memoryBudget`,
// gets an error that lists the valid words and says which is the nearest.

import { kindOf, mismatch } from './errors.js';
import { hintOf } from './nearest.js';
import { areSources } from './wasm-sources.js';

/**
 * A test of a value, a description of valid values, and the valid words where there are few.
 * @typedef {[isRight: (value: any) => boolean, expected: string, choices?: readonly string[]]}
 * Check
 */

/** @type {(...choices: string[]) => Check} */
export const oneOf = (...choices) => [(value) => choices.includes(value), `one of ${choices.join(', ')}`, choices];

/** @type {Check} */
export const TEXT = [(value) => typeof value === 'string', 'text'];

/**
 * A whole number. The module would get NaN and Infinity as null, and a budget would become none.
 * @type {Check}
 */
export const WHOLE = [isCount, 'a whole number'];

/** A number as the module takes most. @type {Check} */
export const SMALL = [(value) => isCount(value) && value < 2 ** 32, 'a whole number below 2 ** 32'];

/** @type {Check} */
const THREADS = [(value) => isCount(value) && value > 0 && value < 256, 'a whole number from 1 to 255'];

/** @type {Check} */
export const FLAG = [(value) => typeof value === 'boolean', 'true or false'];

/** @type {Check} */
export const LISTENER = [(value) => value === null || typeof value === 'function', 'a function'];

/** @type {Check} */
export const SIGNAL = [(value) => value === null || typeof value?.throwIfAborted === 'function', 'an AbortSignal'];

/** The number is checked where it is used. @type {Check} */
const CACHE = [(value) => typeof value === 'boolean' || (typeof value === 'object' && Object.keys(value ?? {}).every((name) => name === 'limit')), 'true, false or { limit }'];

/**
 * Checks by name for the options of one function. Options whose value is checked where it is used
 * have none here.
 * @typedef {Record<string, Check | undefined>} Checks
 */

/** Options of every function that takes a model. @type {Checks} */
export const OF_MODELS = {
  model: undefined,
  config: undefined,
  family: TEXT,
  precision: oneOf('auto', 'f32', 'f16', 'fast'),
  unscaled: FLAG,
  clips: FLAG,
  previewRate: FLAG,
  border: oneOf('zeros', 'reflect', 'replicate', 'circular'),
  memoryBudget: WHOLE,
  leastMemory: FLAG,
  parking: oneOf('auto', 'on', 'off'),
  powerPreference: oneOf('high-performance', 'low-power'),
  defaultLimits: FLAG,
  device: undefined,
  threads: THREADS,
  gpu: undefined,
  kernels: undefined,
  cache: CACHE,
  fetch: LISTENER,
  wasm: [areSources, 'an address, a request, a response, bytes or a compiled module, or these as { webgpu, cpu, threads }'],
  onProgress: LISTENER,
  onNotice: LISTENER,
  signal: SIGNAL,
};

/**
 * Returns the checks of some of these options.
 * @param {(keyof typeof OF_MODELS)[]} names
 * @returns {Checks}
 */
export function pick(...names) {
  return Object.fromEntries(names.map((name) => [name, OF_MODELS[name]]));
}

/** @param {unknown} value */
export function isCount(value) {
  return Number.isSafeInteger(value) && /** @type {number} */ (value) >= 0;
}

/**
 * Throws unless `options` is an object.
 * @param {unknown} options
 */
export function checkObject(options) {
  if (typeof options !== 'object' || options === null) throw mismatch('input', 'options', 'an object', typeof options === 'string' ? `"${options}"` : kindOf(options));
}

/**
 * Throws if a given option is unknown, or fails its check.
 * @param {object} options
 * @param {Checks} checks
 */
export function checkOptions(options, checks) {
  checkObject(options);
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue;
    const names = Object.keys(checks);
    if (!names.includes(name)) throw mismatch('input', name, `one of ${names.join(', ')}`, `an option "${name}"${hintOf(name, names)}`);
    checkValue(name, value, checks[name]);
  }
}

/**
 * Throws if the value of an option fails its check.
 * @param {string} name
 * @param {unknown} value
 * @param {Check} [check]
 */
export function checkValue(name, value, check) {
  const [isRight, expected, choices = []] = check ?? [];
  if (isRight && !isRight(value)) throw mismatch('input', name, `${expected}`, `${found(value)}${hintOf(value, choices)}`);
}

/** @param {unknown} value */
function found(value) {
  if (typeof value === 'string') return `"${value}"`;
  return typeof value === 'number' || typeof value === 'boolean' ? `${value}` : kindOf(value);
}
