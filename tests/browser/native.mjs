// @ts-check
// The native command line, to compare with.

import { execFile } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { readSafetensors, writeSafetensors } from './safetensors.mjs';
import { ROOT } from './session.mjs';

/** Built by `cargo xtask test` and `test-browser`. */
const WGVAE = process.env.WGVAE_CLI ?? join(ROOT, 'target', 'release', 'wgvae');

/**
 * Decodes the model in `folder` into the file `output` beside it.
 * @param {string} folder
 * @param {string} output its ending says what: .png, .npy
 * @param {'f32' | 'f16'} precision
 * @param {string[]} more parameters
 */
export async function decodeNatively(folder, output, precision, ...more) {
  const latents = join(folder, 'latents.safetensors');
  const file = join(folder, output);
  await promisify(execFile)(WGVAE, ['decode', '--model', folder, '--latents', latents, '--precision', precision, '-o', file, ...more]);
  return file;
}

/**
 * Latents that are drawn of a clip by the model in `folder`, in f32.
 * @param {string} folder
 * @param {import('./safetensors.mjs').Tensor} pixels [1, 3, t, h, w]
 * @param {number} seed
 */
export async function sampleNatively(folder, pixels, seed) {
  const [image, file] = ['pixels.safetensors', 'sampled.safetensors'].map((name) => join(folder, name));
  await writeFile(image, writeSafetensors([['image', pixels]]));
  const model = join(folder, 'both.safetensors');
  await promisify(execFile)(WGVAE, ['encode', '--model', model, '--image', image, '--precision', 'f32', '--sample', '--seed', `${seed}`, '-o', file]);
  return readSafetensors(await readFile(file)).tensor('latents');
}

/** The memory reports that come with the repository. */
export async function reportFiles() {
  const folder = join(ROOT, 'results');
  const names = (await readdir(folder)).filter((name) => name.endsWith('.json'));
  return names.map((name) => join(folder, name));
}

/**
 * Writes those reports as one page.
 * @param {string} file .html
 */
export async function writeReport(file) {
  await promisify(execFile)(WGVAE, ['memory', '--merge', ...(await reportFiles()), '--html', file]);
}

/**
 * What `wgvae plan` says.
 * @param {string[]} parameters
 * @returns {Promise<any>}
 */
export async function planNatively(...parameters) {
  const { stdout } = await promisify(execFile)(WGVAE, ['plan', '--json', ...parameters]);
  return JSON.parse(stdout);
}
