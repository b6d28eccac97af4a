// @ts-check
// Decoding of latents to one picture, or encoding of a picture and decoding of the result.

import { LARGEST_CANVAS } from '../src/host-canvas.js';
import { transfer, WgvaeError } from '../src/worker.js';
import { ask } from './ask.js';
import { checkComparable, Psnr } from './psnr.js';
import { tell } from './tell.js';

/** @typedef {import('./news.js').Decoder} Decoder */
/** @typedef {import('./news.js').Vae} Vae */
/** @typedef {import('./news.js').Report} Report */

/**
 * Decodes a picture.
 * @param {Decoder} decoder
 * @param {{ file: File, name: string, size: import('./news.js').Size }} latents `size`: of the
 * picture
 * @param {Omit<import('../src/index.js').DecodeOptions, 'output' | 'canvas'>} options
 * @returns {Promise<(Report | undefined)[]>}
 */
export async function decodePicture(decoder, { file, name, size }, options) {
  checkSides(size, decoder);
  const bitmap = await decoder.decode(file, options);
  options.signal?.throwIfAborted();
  tell({ type: 'picture', bitmap, name });
  return [decoder.report];
}

/**
 * Encodes a picture and decodes the resulting latents.
 * @param {Vae} vae
 * @param {{ file: File, name: string }} picture
 * @param {{ memoryBudget: number | undefined, signal: AbortSignal, onProgress: (progress:
 * import('./news.js').Progress) => void, onDecode: () => void }} options
 * `onDecode` is called after the encode
 * @returns {Promise<(Report | undefined)[]>}
 */
export async function encodeAndDecodePicture(vae, { file, name }, { onDecode, ...options }) {
  checkComparable(vae.info);
  const latents = await vae.encode(file, options);
  const encoded = vae.report;
  tell({ type: 'latents', name, latents });
  onDecode();
  const image = await vae.decode(latents, { output: 'image-data', ...options });
  const decoded = vae.report;
  const size = { width: image.width, height: image.height };
  const { bitmap, squares } = await ask('compareWithOriginal', file, vae.info, transfer(image, [image.data.buffer]));
  options.signal.throwIfAborted();
  tell({ type: 'picture', bitmap, name, psnr: new Psnr().add(squares, size).value });
  return [encoded, decoded];
}

/**
 * Throws if a side exceeds the largest texture: Chromium leaves such canvases blank.
 * @param {import('./news.js').Size} size of the picture
 * @param {Decoder} decoder
 */
function checkSides({ width, height }, { limits: { maxTextureDimension2D: most = LARGEST_CANVAS } }) {
  const facts = { expected: `at most ${most} pixels a side`, found: `${width}x${height}` };
  if (Math.max(width, height) <= most) return;
  throw new WgvaeError('canvas', `this picture is too large to be shown: expected ${facts.expected} on this device, found ${facts.found}`, facts);
}
