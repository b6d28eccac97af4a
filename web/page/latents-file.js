// @ts-check
// Encoded latents as a file to save.

import { safetensorsOf } from '../src/latents-file.js';

/**
 * @param {string} name of the encoded file
 * @param {import('../src/latents-file.js').Latents} latents
 */
export function latentsFile(name, latents) {
  const file = safetensorsOf(latents);
  return new File([file], `${name.replace(/\.[^.]*$/, '')}-latents.safetensors`, { type: file.type });
}
