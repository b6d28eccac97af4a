// @ts-check
// Stored results of `tune` by device: a small file for each in OPFS.

import { nameFor, openFolder, readFile, writeFile } from './files.js';

const FOLDER = 'tuned';

/**
 * Returns the kernels stored for the device with this key. Undefined if there are none, or if the
 * browser stores no files.
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
    // The file was cut off, or removed meanwhile.
    return undefined;
  }
}

/**
 * Stores the kernels. Returns true if that succeeded: there was room, and the browser stores files.
 * @param {string} key
 * @param {import('./index.js').Kernels} kernels
 */
export async function rememberKernels(key, kernels) {
  const folder = await openFolder(FOLDER, true);
  if (!folder) return false;
  return writeFile(folder, await nameFor(key), JSON.stringify({ key, kernels })).then(() => true, () => false);
}
