// @ts-check
// What tiles of other tools do to a picture: decoded whole and in tiles, and how the two differ.

import { WgvaeError } from '../src/index.js';
import { Psnr } from './psnr.js';
import { tell } from './tell.js';

/** @typedef {import('../src/index.js').Decoder} Decoder */
/** @typedef {import('./protocol.js').Tiles} Tiles */

/** How many times a difference is shown. */
const AMPLIFIED = 8;

/** Sides of tiles are multiples of this, which those of latents are in every model. */
const MULTIPLE = 64;

/**
 * @param {Decoder} decoder
 * @param {{ file: File, name: string, size: import('./protocol.js').Size }} latents `size`: of the picture
 * @param {Tiles} tiles
 * @param {{ memoryBudget: number | undefined, index: number, signal: AbortSignal }} options
 */
export async function compareTiles(decoder, { file, name, size }, tiles, options) {
  const output = /** @type {const} */ ('image-data');
  const { tileSize, count } = tilesFor(decoder, size, tiles, options.memoryBudget);
  const exact = await decoder.decode(file, { ...options, output });
  const whole = figuresOf(decoder);
  const { tiling } = tiles;
  const tiled = await decoder.decode(file, { ...options, output, tiling, tileSize });
  const parts = figuresOf(decoder);
  const psnr = new Psnr().add(exact.data, tiled.data).value;
  const bitmaps = await Promise.all([exact, tiled, difference(exact, tiled)].map((image) => createImageBitmap(image)));
  const [first, second, third] = bitmaps;
  const comparison = { exact: first, tiled: second, difference: third, amplified: AMPLIFIED, psnr, tiling, tileSize, count, whole, parts };
  tell({ type: 'comparison', name, comparison }, bitmaps);
}

/**
 * How large tiles are and how many: the tool's own, or, of a picture that would be a single one, half the picture.
 * @param {Decoder} decoder
 * @param {import('./protocol.js').Size} size
 * @param {Tiles} tiles
 * @param {number | undefined} memoryBudget
 */
function tilesFor(decoder, { width, height }, { tiling, tileSize }, memoryBudget) {
  const counted = (/** @type {number | undefined} */ side) => decoder.plan({ width, height, memoryBudget, output: 'image-data', tiling, tileSize: side }).tiles ?? 1;
  // The whole picture, with the norms of a smaller one.
  if (tiling === 'estimate') return { tileSize, count: 1 };
  const asked = counted(tileSize);
  if (asked > 1) return { tileSize, count: asked };
  const half = Math.floor(Math.max(width, height) / 2 / MULTIPLE) * MULTIPLE;
  if (tileSize !== undefined || half === 0) {
    throw new WgvaeError('input', `this picture of ${width}x${height} pixels is a single tile: expected a smaller tile, or a larger picture`);
  }
  return { tileSize: half, count: counted(half) };
}

/** @param {Decoder} decoder */
function figuresOf({ report }) {
  return { seconds: report?.seconds ?? 0, peak: report?.measured_peak_bytes ?? 0 };
}

/**
 * @param {ImageData} one
 * @param {ImageData} other of the same size
 */
function difference(one, other) {
  const image = new ImageData(one.width, one.height);
  // Bytes of a clamped array do not overflow.
  for (let at = 0; at < image.data.length; at += 1) image.data[at] = at % 4 === 3 ? 255 : AMPLIFIED * Math.abs(one.data[at] - other.data[at]);
  return image;
}
