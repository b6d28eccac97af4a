// @ts-check
// Comparison with the tiles of other tools: decodes a picture whole and in tiles, and compares
// both.

import { transfer, WgvaeError } from '../src/worker.js';
import { ask } from './ask.js';
import { Psnr } from './psnr.js';
import { tell } from './tell.js';

/** @typedef {import('./news.js').Decoder} Decoder */
/** @typedef {import('./news.js').Tiles} Tiles */

/**
 * Sides of tiles are multiples of this, pixels. In every model, that is a whole number of latents.
 */
const MULTIPLE = 64;

/**
 * @param {Decoder} decoder
 * @param {{ file: File, name: string, size: import('./news.js').Size }} latents `size`: of the
 * picture
 * @param {Tiles} tiles
 * @param {{ memoryBudget: number | undefined, index: number, signal: AbortSignal,
 * onProgress: (progress: import('./news.js').Progress) => void }} options
 */
export async function compareTiles(decoder, { file, name, size }, tiles, options) {
  const output = /** @type {const} */ ('image-data');
  const { tileSize, count } = await tilesFor(decoder, size, tiles, options.memoryBudget);
  // Two decodes, one after the other.
  const half = (/** @type {number} */ done) => ({ ...options, output, onProgress: (/** @type {import('./news.js').Progress} */ progress) => options.onProgress({ ...progress, parts: { done, total: 2 } }) });
  const exact = await decoder.decode(file, half(0));
  const whole = figuresOf(decoder);
  const { tiling } = tiles;
  const tiled = await decoder.decode(file, { ...half(1), tiling, tileSize });
  const parts = figuresOf(decoder);
  const [left, right] = [exact, tiled].map((image) => transfer(image, [image.data.buffer]));
  const { squares, ...compared } = await ask('comparePictures', left, right);
  options.signal.throwIfAborted();
  tell({ type: 'comparison', name, comparison: { ...compared, psnr: new Psnr().add(squares, size).value, tiling, tileSize, count, whole, parts } });
}

/**
 * Returns size and number of the tiles: the tool's own size, or half the picture if that would give
 * a single tile.
 * @param {Decoder} decoder
 * @param {import('./news.js').Size} size
 * @param {Tiles} tiles
 * @param {number | undefined} memoryBudget
 */
async function tilesFor(decoder, { width, height }, { tiling, tileSize }, memoryBudget) {
  const counted = async (/** @type {number | undefined} */ side) => (await decoder.plan({ width, height, memoryBudget, output: 'image-data', tiling, tileSize: side })).tiles ?? 1;
  // The whole picture, with the norms of a smaller one.
  if (tiling === 'estimate') return { tileSize, count: 1 };
  const asked = await counted(tileSize);
  if (asked > 1) return { tileSize, count: asked };
  const half = Math.floor(Math.max(width, height) / 2 / MULTIPLE) * MULTIPLE;
  if (tileSize !== undefined || half === 0) {
    throw new WgvaeError('input', `this picture of ${width}x${height} pixels is a single tile: expected a smaller tile, or a larger picture`);
  }
  return { tileSize: half, count: await counted(half) };
}

/** @param {Decoder} decoder */
function figuresOf({ report }) {
  return { seconds: report?.seconds ?? 0, peak: report?.measured_peak_bytes ?? 0 };
}
