// @ts-check
// Size of a picture before it is encoded: its own, or a requested one, by the rules of `wgvae
// encode --resize`.

import { mismatch } from './errors.js';
import { oneOf } from './options.js';

/** @typedef {{ width: number, height: number }} Size */

/** Longest side to request, pixels: as long as those of JPEG files. */
const LONGEST = 65_535;

/** @type {import('./options.js').Check} */
const SIDE = [(value) => Number.isInteger(value) && value > 0 && value <= LONGEST, `1 to ${LONGEST} pixels`];

/**
 * Requested size. A missing side follows from the picture's proportions.
 * @typedef {Pick<import('./index.js').EncodeOptions, 'width' | 'height' | 'fit'>} Request
 */

/** Options that request a size. @type {import('./options.js').Checks} */
export const OF_SIZES = { width: SIDE, height: SIDE, fit: oneOf('cover', 'contain', 'fill') };

/** Throws if there is a fit without a size. @param {Request} request */
export function checkRequest({ fit, ...sides }) {
  if (fit !== undefined && !isResize(sides)) throw mismatch('input', 'fit', 'a width or a height beside it', 'neither');
}

/** True if a size is requested. @param {Request} request */
export function isResize({ width, height }) {
  return width !== undefined || height !== undefined;
}

/**
 * Returns the size of the whole picture after the resize, and the part of it to encode, whose sides
 * are multiples of `factor`.
 * @param {Size} whole
 * @param {Request} request
 * @param {number} factor pixels
 * @returns {{ scaled: Size, part: import('./pixels.js').Part }}
 */
export function fitted(whole, request, factor) {
  const { width = Infinity, height = Infinity, fit = 'cover' } = request;
  const isExact = width < Infinity && height < Infinity && fit !== 'contain';
  const wanted = !isResize(request) ? whole : isExact ? { width, height } : contained(whole, { width, height });
  const size = { width: wanted.width - (wanted.width % factor), height: wanted.height - (wanted.height % factor) };
  if (size.width === 0 || size.height === 0) throw mismatch('input', 'picture', `at least ${factor}x${factor} pixels`, `${wanted.width}x${wanted.height}`);
  // Without a request the picture keeps its size, and only its borders are left out.
  const scaled = !isResize(request) ? whole : isExact && fit === 'cover' ? covering(whole, size) : size;
  return { scaled, part: { x: middle(scaled.width, size.width), y: middle(scaled.height, size.height), ...size } };
}

/**
 * Returns the smallest size with the picture's proportions that covers `target`, rounded down as
 * diffusers does.
 * @param {Size} whole
 * @param {Size} target
 */
function covering(whole, target) {
  if (isWider(target, whole)) return { width: target.width, height: Math.floor((whole.height * target.width) / whole.width) };
  return { width: Math.floor((whole.width * target.height) / whole.height), height: target.height };
}

/**
 * Returns the largest size with the picture's proportions within `target`, rounded as in PIL's
 * ImageOps.contain. PIL rounds halves to even, which makes no other multiple of a model's factor.
 * @param {Size} whole
 * @param {Size} target
 */
function contained(whole, target) {
  if (isWider(whole, target)) return { width: target.width, height: Math.round((whole.height / whole.width) * target.width) };
  return { width: Math.round((whole.width / whole.height) * target.height), height: target.height };
}

/**
 * @param {Size} left
 * @param {Size} right
 */
function isWider(left, right) {
  return left.width * right.height > right.width * left.height;
}

/**
 * Returns the first of the middle `side` pixels of `from`, as diffusers does.
 * @param {number} from
 * @param {number} side
 */
function middle(from, side) {
  return Math.floor(from / 2) - Math.floor(side / 2);
}
