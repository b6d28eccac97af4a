// @ts-check
// The kernels that were measured to be fastest, by device: a small file for each in OPFS.

import { nameFor, openFolder, readFile, writeFile } from './files.js';

const FOLDER = 'tuned';

/**
 * What was measured on the device that `key` tells from others. Undefined where nothing was, and
 * where the browser keeps no files.
 * @param {string} key
 * @returns {Promise<import('./index.js').Kernels | undefined>}
 */
export async function rememberedKernels(key) {
  const folder = await openFolder(FOLDER, false);
  const file = folder && (await readFile(folder, await nameFor(key)));
  try {
    const found = JSON.parse((await file?.text()) ?? 'null');
    return found?.key === key && typeof found.kernels === 'object' ? (found.kernels ?? undefined) : undefined;
  } catch {
    // Cut off, or cleared meanwhile.
    return undefined;
  }
}

/**
 * Whether they are kept for the next time: where there is room, and the browser keeps files.
 * @param {string} key
 * @param {import('./index.js').Kernels} kernels
 */
export async function rememberKernels(key, kernels) {
  const folder = await openFolder(FOLDER, true);
  if (!folder) return false;
  return writeFile(folder, await nameFor(key), JSON.stringify({ key, kernels })).then(() => true, () => false);
}
