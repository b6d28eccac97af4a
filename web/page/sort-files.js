// @ts-check
// Which of several files is what: by what the user said, by its name, and by the header of a .safetensors file.

import { WgvaeError } from '../src/index.js';

/** Headers of models are shorter; what is longer is no header. */
const LONGEST_HEADER = 8 << 20;

/**
 * @param {File[]} files
 * @param {'model' | 'latents'} [kind] what they are, if it is known
 * @returns {Promise<{ model?: import('./protocol.js').ModelChoice, latents?: import('./protocol.js').LatentsChoice }>}
 */
export async function sortFiles(files, kind) {
  const config = files.find((file) => file.name.endsWith('config.json'));
  const weights = [];
  let latents;
  for (const file of files) {
    if (file === config || file.name.endsWith('.index.json')) continue;
    if (kind === 'latents' || (kind === undefined && (await holdsLatents(file)))) latents = file;
    else weights.push(file);
  }
  if (config && weights.length === 0) throw new WgvaeError('input', 'a config.json alone is no model: choose it together with its .safetensors files');
  if (weights.length === 0 && !latents) throw new WgvaeError('input', 'there was no .safetensors, .latent or .npy file among these');
  return {
    ...(weights.length > 0 && { model: { files: preferWhole(weights), config } }),
    ...(latents && { latents: { file: latents } }),
  };
}

/**
 * Folders often hold a model twice, whole and as .fp16.: one of them is enough.
 * @param {File[]} weights
 */
function preferWhole(weights) {
  const whole = weights.filter((file) => !/\.fp16[.-]/.test(file.name));
  return whole.length > 0 ? whole : weights;
}

/** @param {File} file */
async function holdsLatents(file) {
  if (/\.(npy|latent)$/.test(file.name)) return true;
  try {
    const length = Number(new DataView(await file.slice(0, 8).arrayBuffer()).getBigUint64(0, true));
    if (!(length <= LONGEST_HEADER)) return false;
    const header = JSON.parse(await file.slice(8, 8 + length).text());
    return Object.keys(header).filter((name) => name !== '__metadata__').length <= 4;
  } catch {
    // Not a file that anything can be made of; opening it says why.
    return false;
  }
}
