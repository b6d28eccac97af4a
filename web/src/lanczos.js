// @ts-check
// Lanczos resizing of RGBA levels, equal to the bit to that of `wgvae encode --resize`, which is
// PIL's `Image.resize(size, Image.LANCZOS)` up to Pillow 12.2: first across, then down, with levels
// rounded and clipped in between. Browsers resize each in its own way. This file needs only whole
// numbers and + - * /, whose results are the same in every browser; those of Math.sin are not.

import { WgvaeError } from './errors.js';

/** Lobes of the filter on each side. */
const LOBES = 3;

/** One in units of a weight. Sums of so many levels stay exact in 53 bits. */
const ONE = 2 ** 22;

/** Pi in two parts. Small multiples of the first are exact. */
const [PI_HIGH, PI_LOW] = [3.14159265346825122833, 1.21542010130123844986e-10];

/** Last power of a sine's series that changes a bit, for angles up to half of pi. */
const LAST_POWER = 25;

/**
 * Inputs of one output: input `first` times the first weight, and so on.
 * @typedef {{ first: number, weights: Float64Array }} Taps
 */

/** A resize that takes the picture strip by strip, and makes the wanted part of the result. */
export class Lanczos {
  #columns;
  #rows;
  #hasAlpha;
  /** The needed rows, resized across. */
  #across;
  #filled = 0;
  /** Rectangle of the picture that the part needs. @type {import('./pixels.js').Part} */
  source;

  /**
   * @param {{ width: number, height: number }} whole picture
   * @param {{ width: number, height: number }} scaled size of the whole picture afterwards
   * @param {import('./pixels.js').Part} part of the resized picture
   * @param {boolean} hasAlpha true if colours must be multiplied by alpha meanwhile; else alpha is
   * without a meaning
   */
  constructor(whole, scaled, part, hasAlpha) {
    this.#columns = tapsOf(whole.width, scaled.width, part.x, part.width);
    this.#rows = tapsOf(whole.height, scaled.height, part.y, part.height);
    this.#hasAlpha = hasAlpha;
    const [[x, width], [y, height]] = [spanOf(this.#columns), spanOf(this.#rows)];
    this.source = { x, y, width, height };
    this.#across = newLevels(4 * part.width * height);
  }

  /**
   * Takes the next rows of `source`, and changes them.
   * @param {Uint8ClampedArray} strip
   */
  add(strip) {
    if (this.#hasAlpha) multiplyByAlpha(strip);
    const { x, width } = this.source;
    for (let row = 0; row < strip.length; row += 4 * width) {
      for (const { first, weights } of this.#columns) {
        const begin = row + 4 * (first - x);
        let [red, green, blue, alpha] = [ONE / 2, ONE / 2, ONE / 2, ONE / 2];
        for (let tap = 0; tap < weights.length; tap += 1) {
          const at = begin + 4 * tap;
          const weight = weights[tap];
          red += weight * strip[at];
          green += weight * strip[at + 1];
          blue += weight * strip[at + 2];
          alpha += weight * strip[at + 3];
        }
        for (const sum of [red, green, blue, alpha]) this.#across[this.#filled++] = Math.floor(sum / ONE);
      }
    }
  }

  /** Returns the levels of the part, once all rows are added. */
  finish() {
    const row = 4 * this.#columns.length;
    if (this.#filled < this.#across.length) throw new WgvaeError('canvas', `the browser gave ${this.#filled / row} of ${this.source.height} rows of the picture`);
    const resized = newLevels(row * this.#rows.length);
    const sums = new Float64Array(row);
    this.#rows.forEach(({ first, weights }, index) => {
      sums.fill(ONE / 2);
      weights.forEach((weight, tap) => {
        const begin = row * (first - this.source.y + tap);
        for (let at = 0; at < row; at += 1) sums[at] += weight * this.#across[begin + at];
      });
      for (let at = 0; at < row; at += 1) resized[row * index + at] = Math.floor(sums[at] / ONE);
    });
    if (this.#hasAlpha) divideByAlpha(resized);
    return resized;
  }
}

/** @param {number} count */
function newLevels(count) {
  try {
    return new Uint8ClampedArray(count);
  } catch (cause) {
    throw new WgvaeError('host-memory', `a resized picture: no memory for ${count} bytes`, { needed: count, cause });
  }
}

/** Rounds to the nearest level, as PIL does. @param {Uint8ClampedArray} levels */
function multiplyByAlpha(levels) {
  for (let at = 0; at < levels.length; at += 4) {
    for (let color = at; color < at + 3; color += 1) levels[color] = Math.floor((levels[color] * levels[at + 3] + 127) / 255);
  }
}

/**
 * Rounds down and clips, as PIL does. Colours of alpha 0 stay.
 * @param {Uint8ClampedArray} levels
 */
function divideByAlpha(levels) {
  for (let at = 0; at < levels.length; at += 4) {
    const alpha = levels[at + 3];
    for (let color = at; alpha > 0 && color < at + 3; color += 1) levels[color] = Math.floor((255 * levels[color]) / alpha);
  }
}

/**
 * Returns the first input of all taps, and the number of inputs from there to the last.
 * @param {Taps[]} taps
 */
function spanOf(taps) {
  const { first } = taps[0];
  const last = taps[taps.length - 1];
  return [first, last.first + last.weights.length - first];
}

/**
 * Computes the taps of `count` outputs from `begin` on, of `to` outputs from `from` inputs. If the
 * side shrinks, the filter widens by the same factor.
 * @param {number} from
 * @param {number} to
 * @param {number} begin
 * @param {number} count
 * @returns {Taps[]}
 */
function tapsOf(from, to, begin, count) {
  const scale = from / to;
  const stretch = Math.max(scale, 1);
  const support = LOBES * stretch;
  return Array.from({ length: count }, (_, index) => {
    const centre = (begin + index + 0.5) * scale;
    const first = Math.trunc(Math.max(centre - support + 0.5, 0));
    const end = Math.min(Math.trunc(centre + support + 0.5), from);
    // Multiplying by the inverse, as PIL does, instead of dividing: the last bit decides whether a
    // weight at the filter's edge is zero.
    const weights = Float64Array.from({ length: end - first }, (_, tap) => lanczos((first + tap - centre + 0.5) * (1 / stretch)));
    const sum = weights.reduce((all, weight) => all + weight, 0);
    return { first, weights: weights.map((weight) => Math.trunc((weight / sum) * ONE + (weight < 0 ? -0.5 : 0.5))) };
  });
}

/** @param {number} x */
function lanczos(x) {
  return x >= -LOBES && x < LOBES ? sinc(x) * sinc(x / LOBES) : 0;
}

/** @param {number} x */
function sinc(x) {
  return x === 0 ? 1 : sine(x * Math.PI) / (x * Math.PI);
}

/**
 * Computes the sine of an angle of a few turns by its series.
 * @param {number} angle
 */
function sine(angle) {
  const halfTurns = Math.round(angle / Math.PI);
  const rest = angle - halfTurns * PI_HIGH - halfTurns * PI_LOW;
  let series = 0;
  for (let power = LAST_POWER; power > 1; power -= 2) series = ((1 + series) * -(rest * rest)) / (power * (power - 1));
  return (halfTurns % 2 === 0 ? 1 : -1) * rest * (1 + series);
}
