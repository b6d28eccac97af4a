// @ts-check
// Temporary folders for a reader. A page that is closed cannot remove its own, so each folder has a
// Web Lock of its name: the browser releases the lock with the page, and a folder without a lock is
// abandoned.

import { folderNames, openFolder, removeFolder } from './files.js';

const PREFIX = 'stream-';

/**
 * Creates a folder, in use until it is removed. Returns undefined if the browser stores no files.
 * @returns {Promise<{ folder: FileSystemDirectoryHandle, remove(): Promise<void> } | undefined>}
 */
export async function openTemporary() {
  // Without a secure context there is neither storage nor this function.
  if (!crypto.randomUUID) return undefined;
  const name = `${PREFIX}${crypto.randomUUID()}`;
  // Locks before there is a folder, so that it never seems abandoned.
  const unlock = await lock(name);
  const folder = await openFolder(name, true);
  if (folder) return { folder, remove: () => removeFolder(name).finally(unlock) };
  unlock();
  return undefined;
}

/**
 * Runs `task` for each abandoned folder. Without locks, abandoned folders cannot be told from
 * others.
 * @param {(name: string) => Promise<void>} task
 */
export async function forEachAbandoned(task) {
  const locks = globalThis.navigator?.locks;
  if (!locks) return;
  for (const name of await folderNames()) {
    if (name.startsWith(PREFIX)) await locks.request(name, { ifAvailable: true }, (lock) => (lock ? task(name) : undefined));
  }
}

/**
 * Takes the lock `name`, and resolves with a function that releases it.
 * @param {string} name
 * @returns {Promise<() => void>}
 */
function lock(name) {
  return new Promise((resolve) => {
    const isHeld = () => new Promise((/** @type {(value: void) => void} */ unlock) => resolve(unlock));
    // Pages without permission for locks do without.
    Promise.resolve(globalThis.navigator?.locks?.request(name, isHeld)).then(() => resolve(() => {}), () => resolve(() => {}));
  });
}
