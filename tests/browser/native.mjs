// @ts-check
// The native command line, for comparison.

import { execFile } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { readSafetensors, writeSafetensors } from './safetensors.mjs';
import { ROOT } from './session.mjs';

/** The program that `cargo xtask test` and `test-browser` build. */
export const WGVAE = process.env.WGVAE_CLI ?? join(ROOT, 'target', 'release', 'wgvae');

/**
 * Command before a program, and the driver for it, if `cargo xtask` has a newer one than the
 * system.
 */
const RUNNER = (process.env.WGVAE_RUNNER ?? '').split(' ').filter(Boolean);
const DRIVER = process.env.WGVAE_DRIVER;

/**
 * Runs a program on the newest CPU driver available, or on a GPU. Returns its output.
 * @param {string} program
 * @param {string[]} parameters
 */
export async function runOnDriver(program, parameters) {
  const [first, ...others] = [...RUNNER, program, ...parameters];
  return runPlainly(first, others, DRIVER ? { VK_DRIVER_FILES: DRIVER } : {});
}

/**
 * Runs a program on the system's driver. Returns its output.
 * @param {string} program
 * @param {string[]} parameters
 * @param {Record<string, string>} [env] additional variables
 */
export async function runPlainly(program, parameters, env = {}) {
  return (await promisify(execFile)(program, parameters, { env: { ...process.env, ...env }, maxBuffer: 1 << 26 })).stdout;
}

/**
 * Decodes the model in `folder` into the file `output` beside it.
 * @param {string} folder
 * @param {string} output file name, ending in .png or .npy
 * @param {'f32' | 'f16'} precision
 * @param {string[]} more parameters
 */
export async function decodeNatively(folder, output, precision, ...more) {
  const latents = join(folder, 'latents.safetensors');
  const file = join(folder, output);
  await promisify(execFile)(WGVAE, ['decode', '--device', 'gpu', '--model', folder, '--latents', latents, '--precision', precision, '-o', file, ...more]);
  return file;
}

/**
 * Samples latents of a clip with the model in `folder`, in f32.
 * @param {string} folder
 * @param {import('./safetensors.mjs').Tensor} pixels [1, 3, t, h, w]
 * @param {number} seed
 */
export async function sampleNatively(folder, pixels, seed) {
  const [image, file] = ['pixels.safetensors', 'sampled.safetensors'].map((name) => join(folder, name));
  await writeFile(image, writeSafetensors([['image', pixels]]));
  const model = join(folder, 'both.safetensors');
  await promisify(execFile)(WGVAE, ['encode', '--device', 'gpu', '--model', model, '--image', image, '--precision', 'f32', '--sample', '--seed', `${seed}`, '-o', file]);
  return readSafetensors(await readFile(file)).tensor('latents');
}

/** Lists the memory reports in the repository. */
export async function reportFiles() {
  const folder = join(ROOT, 'results');
  const names = (await readdir(folder)).filter((name) => name.endsWith('.json'));
  return names.map((name) => join(folder, name));
}

/**
 * Returns the result of `wgvae plan`.
 * @param {string[]} parameters
 * @returns {Promise<any>}
 */
export async function planNatively(...parameters) {
  const { stdout } = await promisify(execFile)(WGVAE, ['plan', '--json', ...parameters]);
  return JSON.parse(stdout);
}
