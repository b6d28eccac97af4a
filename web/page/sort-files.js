// @ts-check
// Sorting of several files: by the user's choice, by name, and by first bytes.

import { WgvaeError } from '../src/index.js';
import { axesOf, shapesIn } from './header.js';

/**
 * First bytes of pictures that all or most browsers decode; a dot is any byte. The browser's type
 * tells others.
 */
const PICTURES = [/^\x89PNG/s, /^\xff\xd8\xff/s, /^RIFF....WEBP/s, /^GIF8/s, /^BM/s, /^....ftyp(avif|avis|heic|heix|mif1)/s];

/** Names of models, and of checkpoints that must be converted: opening these tells how. */
const MODELS = /\.(safetensors|sft|ckpt|pth?|bin|pkl|gguf)$/i;

/** First bytes of videos: MP4 and its relatives, WebM and Matroska. */
const VIDEOS = [/^....ftyp/s, /^\x1a\x45\xdf\xa3/s];

/**
 * @param {File[]} files
 * @param {'model' | 'input'} [kind] their kind, if it is known: an input is latents, a picture, a
 * video, or several pictures
 * @returns {Promise<{ model?: import('./news.js').ModelChoice, input?:
 * import('./news.js').InputChoice }>}
 */
export async function sortFiles(files, kind) {
  const config = files.find((file) => file.name.endsWith('config.json'));
  const [weights, pictures, others] = [/** @type {File[]} */ ([]), /** @type {File[]} */ ([]), /** @type {File[]} */ ([])];
  const chosen = /** @type {File[]} */ ([]);
  for (const file of files) {
    if (file === config || file.name.endsWith('.index.json')) continue;
    if (kind !== 'model' && (await isPicture(file))) pictures.push(file);
    else if (kind === 'input' || (kind === undefined && ((await holdsLatents(file)) || (await isVideo(file))))) chosen.push(file);
    else if (kind === 'model' || (await mayBeModel(file))) weights.push(file);
    else others.push(file);
  }
  if (config && weights.length === 0) throw new WgvaeError('input', 'a config.json alone is no model: choose it together with its .safetensors files');
  if (chosen.length > 0 && chosen.length + pictures.length > 1) {
    throw new WgvaeError('input', `several files to decode or encode: ${[...chosen, ...pictures].map(({ name }) => name).join(', ')}: choose one of them, or only pictures`);
  }
  const input = chosen.length > 0 ? chosen : pictures.sort((one, other) => one.name.localeCompare(other.name, 'en', { numeric: true }));
  if (weights.length === 0 && input.length === 0 && others.length > 0) throw new WgvaeError('format', `${others[0].name}: neither a model nor latents, and no picture and no video that this browser shows`);
  if (weights.length === 0 && input.length === 0) throw new WgvaeError('input', 'there was no .safetensors, .latent or .npy file and no picture and no video among these');
  return {
    ...(weights.length > 0 && { model: { files: preferWhole(weights), config } }),
    ...(input.length > 0 && { input: { files: input } }),
  };
}

/**
 * Prefers whole files: folders often hold a model twice, whole and as .fp16.
 * @param {File[]} weights
 */
function preferWhole(weights) {
  const whole = weights.filter((file) => !/\.fp16[.-]/.test(file.name));
  return whole.length > 0 ? whole : weights;
}

/**
 * Returns the kind of an input: latents of pictures or of a clip, a picture, or pictures of a clip.
 * @param {File[]} files
 */
export async function kindOf(files) {
  if (files.length > 1) return 'footage';
  const [file] = files;
  if (await isPicture(file)) return 'picture';
  if (await isVideo(file)) return 'footage';
  return (await axesOf(file))?.length === 5 ? 'clip' : 'latents';
}

/** @param {File} file */
async function isPicture(file) {
  if (/^image\//.test(file.type)) return true;
  const start = await firstBytes(file);
  return PICTURES.some((pattern) => pattern.test(start));
}

/** @param {File} file */
async function isVideo(file) {
  if (/^video\//.test(file.type)) return true;
  const start = await firstBytes(file);
  return VIDEOS.some((pattern) => pattern.test(start)) && !PICTURES.some((pattern) => pattern.test(start));
}

/** Returns the first bytes as letters. @param {File} file */
async function firstBytes(file) {
  try {
    return String.fromCharCode(...new Uint8Array(await file.slice(0, 12).arrayBuffer()));
  } catch {
    // Opening it reports why.
    return '';
  }
}

/**
 * Returns false for files of other kinds. Taken as a model, such a file would replace the one that
 * is open, and everything opened after it would fail, too.
 * @param {File} file
 */
async function mayBeModel(file) {
  return MODELS.test(file.name) || (await shapesIn(file)) !== undefined;
}

/** @param {File} file */
async function holdsLatents(file) {
  if (/\.(npy|latent)$/.test(file.name)) return true;
  const shapes = await shapesIn(file);
  return shapes !== undefined && Object.keys(shapes).length <= 4;
}
