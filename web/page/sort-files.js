// @ts-check
// Which of several files is what: by what the user said, by its name, and by how it begins.

import { WgvaeError } from '../src/index.js';

/** Headers of models are shorter; what is longer is no header. */
const LONGEST_HEADER = 8 << 20;

/** First bytes of the pictures that all browsers decode, or most; a dot is any byte. Others are known by what the browser says of their type. */
const PICTURES = [/^\x89PNG/s, /^\xff\xd8\xff/s, /^RIFF....WEBP/s, /^GIF8/s, /^BM/s, /^....ftyp(avif|avis|heic|heix|mif1)/s];

/**
 * @param {File[]} files
 * @param {'model' | 'input'} [kind] what they are, if it is known: an input is latents or a picture
 * @returns {Promise<{ model?: import('./protocol.js').ModelChoice, input?: import('./protocol.js').InputChoice }>}
 */
export async function sortFiles(files, kind) {
  const config = files.find((file) => file.name.endsWith('config.json'));
  const weights = [];
  let chosen;
  for (const file of files) {
    if (file === config || file.name.endsWith('.index.json')) continue;
    if (kind === 'input' || (kind === undefined && ((await holdsLatents(file)) || (await isPicture(file))))) chosen = file;
    else weights.push(file);
  }
  if (config && weights.length === 0) throw new WgvaeError('input', 'a config.json alone is no model: choose it together with its .safetensors files');
  if (weights.length === 0 && !chosen) throw new WgvaeError('input', 'there was no .safetensors, .latent or .npy file and no picture among these');
  return {
    ...(weights.length > 0 && { model: { files: preferWhole(weights), config } }),
    ...(chosen && { input: { file: chosen } }),
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
export async function isPicture(file) {
  if (/^image\//.test(file.type)) return true;
  try {
    const start = String.fromCharCode(...new Uint8Array(await file.slice(0, 12).arrayBuffer()));
    return PICTURES.some((pattern) => pattern.test(start));
  } catch {
    // As below.
    return false;
  }
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
