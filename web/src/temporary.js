// @ts-check
// Folders that are wanted only while somebody reads from them. A page that was closed in between
// cannot remove its own, so a Web Lock of the folder's name, which the browser lets go of with the
// page, tells which are still in use.

import { folderNames, openFolder, removeFolder } from './files.js';

const PREFIX = 'stream-';

/**
 * A new folder, in use until it is removed. Undefined where the browser keeps no files.
 * @returns {Promise<{ folder: FileSystemDirectoryHandle, remove(): Promise<void> } | undefined>}
 */
export async function openTemporary() {
  const name = `${PREFIX}${crypto.randomUUID()}`;
  // Before there is a folder: nobody shall see one that seems abandoned.
  const unlock = await lock(name);
  const folder = await openFolder(name, true);
  if (folder) return { folder, remove: () => removeFolder(name).finally(unlock) };
  unlock();
  return undefined;
}

/**
 * Does `task` for each folder that nobody uses any more. Without locks nothing tells which those
 * are.
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
 * Takes the lock `name`, and resolves with what lets go of it.
 * @param {string} name
 * @returns {Promise<() => void>}
 */
function lock(name) {
  return new Promise((resolve) => {
    const isHeld = () => new Promise((/** @type {(value: void) => void} */ unlock) => resolve(unlock));
    // Pages that may not have locks do without.
    Promise.resolve(globalThis.navigator?.locks?.request(name, isHeld)).then(() => resolve(() => {}), () => resolve(() => {}));
  });
}
