// @ts-check
// What the worker does with one picture: latents to a picture, or a picture to latents and back.

import { WgvaeError } from '../src/index.js';
import { Psnr } from './psnr.js';
import { tell } from './tell.js';

/** @typedef {import('../src/index.js').Decoder} Decoder */
/** @typedef {import('../src/index.js').Vae} Vae */
/** @typedef {import('./protocol.js').Report} Report */

/**
 * Decodes a picture.
 * @param {Decoder} decoder
 * @param {{ file: File, name: string, size: import('./protocol.js').Size }} latents `size`: of the picture
 * @param {import('../src/index.js').DecodeOptions} options
 * @returns {Promise<(Report | undefined)[]>}
 */
export async function decodePicture(decoder, { file, name, size }, options) {
  checkSides(size, decoder.device);
  const bitmap = await decoder.decode(file, options);
  tell({ type: 'picture', bitmap, name }, [bitmap]);
  return [decoder.report];
}

/**
 * Encodes a picture and decodes what comes of it.
 * @param {Vae} vae
 * @param {{ file: File, name: string, original: import('./original.js').Original }} picture
 * @param {{ memoryBudget: number | undefined, signal: AbortSignal, onDecode: () => void }} options `onDecode` hears when it is encoded
 * @returns {Promise<(Report | undefined)[]>}
 */
export async function encodeAndDecodePicture(vae, { file, name, original }, { onDecode, ...options }) {
  const latents = await vae.encode(file, options);
  const encoded = vae.report;
  onDecode();
  const image = await vae.decode(latents, { output: 'image-data', ...options });
  const psnr = new Psnr().add(original.pixels(vae.info.pixels_per_latent).data, image.data).value;
  const bitmap = await createImageBitmap(image);
  tell({ type: 'picture', bitmap, name, psnr }, [bitmap]);
  return [encoded, vae.report];
}

/**
 * Canvases that are wider or higher than a texture stay blank in Chromium.
 * @param {import('./protocol.js').Size} size of the picture
 * @param {GPUDevice} device
 */
function checkSides({ width, height }, { limits }) {
  const facts = { expected: `at most ${limits.maxTextureDimension2D} pixels a side`, found: `${width}x${height}` };
  if (Math.max(width, height) <= limits.maxTextureDimension2D) return;
  throw new WgvaeError('canvas', `this picture is too large to be shown: expected ${facts.expected} on this device, found ${facts.found}`, facts);
}
