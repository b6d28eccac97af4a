// @ts-check
// Choice of a model's weights among the files in a folder, as on the command line
// (src/io/weight_files.rs).

import { WgvaeError } from './errors.js';

/** Name of weight files in diffusers' folders, without the ending. */
const STEM = 'diffusion_pytorch_model';

/** Endings of the index of shards, and of weight files. diffusers looks for the index first. */
const PLAIN = ['.safetensors.index.json', '.safetensors'];
const FP16 = ['.fp16.safetensors.index.json', '.safetensors.index.fp16.json', '.fp16.safetensors'];

/**
 * Returns the weight files or the index to open, of a folder with files `names`.
 * @param {string} folder for errors
 * @param {string[]} names
 * @param {'fp16'} [variant] default: the plain files, or fp16 if there are no others
 */
export function weightFiles(folder, names, variant) {
  const fail = (/** @type {string} */ problem) => new WgvaeError('format', `${folder}: ${problem}`);
  const standard = (variant ? FP16 : [...PLAIN, ...FP16]).map((ending) => STEM + ending).find((name) => names.includes(name));
  if (standard) return [standard];
  if (variant) throw fail(`no ${STEM}.fp16.safetensors in this folder`);
  const weights = names.filter((name) => /.\.safetensors$/i.test(name)).sort();
  const [first, second] = weights;
  if (weights.length === 1) return weights;
  // The two halves of one model, such as TAESD's.
  if (weights.length === 2 && second.includes('encoder') && second.replaceAll('encoder', 'decoder') === first) return [second, first];
  if (second) throw fail(`${weights.length} .safetensors files and none is ${STEM}.safetensors: name one of them (${first}, ${second}, ...)`);
  const pickle = names.find((name) => /.\.(bin|ckpt|pt|pth)$/i.test(name));
  throw fail(pickle ? `${pickle} is a Python pickle, which can run code when opened: convert it to .safetensors` : 'no .safetensors file in this folder');
}

/**
 * Returns the shards that an index lists, each once. Throws if one lies outside the index's folder.
 * @param {string} file for errors
 * @param {string} text
 */
export function shardNames(file, text) {
  let index;
  try {
    index = JSON.parse(text);
  } catch {
    // The check below reports it.
  }
  const names = [...new Set(Object.values(index?.weight_map ?? {}))].sort();
  const isPlain = (/** @type {unknown} */ name) => typeof name === 'string' && !/[/\\]|^\.{0,2}$/.test(name);
  if (names.length === 0 || !names.every(isPlain)) throw new WgvaeError('format', `${file}: no index of shards that are files beside it`);
  return /** @type {string[]} */ (names);
}
