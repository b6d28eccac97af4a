// @ts-check
// The package's surroundings in a browser, in memory and under a case's control.

import { createHash } from 'node:crypto';

import { MemoryBlob, MemoryFile } from './blobs.mjs';
import { Clock } from './clock.mjs';
import { MemoryFolder, MemoryLocks } from './folders.mjs';

/**
 * The surroundings of one case.
 * @typedef {{ random: import('./random.mjs').Random, clock: Clock,
 * root: MemoryFolder, disk: import('./folders.mjs').Disk }} World
 */

/**
 * Replaces parts of the browser by stand-ins.
 * @param {import('./random.mjs').Random} random
 * @returns {World}
 */
export function makeWorld(random) {
  const clock = new Clock();
  clock.install();
  const disk = { random, clock, faults: random.pick([0, 0, 0.02, 0.2]), hasStreams: random.chance(0.8) };
  const root = new MemoryFolder('', disk);
  const hasFolders = random.chance(0.9);
  const getDirectory = async () => {
    if (!hasFolders) throw new DOMException('a private window', 'SecurityError');
    return root;
  };
  replace('navigator', { storage: { getDirectory }, locks: random.chance(0.8) ? new MemoryLocks() : undefined });
  replace('document', { baseURI: 'https://page.test/folder/index.html' });
  replace('Blob', MemoryBlob);
  replace('File', MemoryFile);
  // Node's works on another thread, whose time the clock does not see.
  replaceIn(crypto.subtle, 'digest', async (/** @type {string} */ _, /** @type {Uint8Array} */ bytes) => createHash('sha256').update(bytes).digest());
  return { random, clock, root, disk };
}

/** Places that stand-ins replace. @type {[object, string[]][]} */
const PLACES = [[globalThis, ['setTimeout', 'clearTimeout', 'fetch', 'navigator', 'document', 'Blob', 'File']], [crypto.subtle, ['digest']]];

/**
 * Remembers the originals before they are replaced. Returns a function that restores them: other
 * tests run in the same process.
 * @returns {() => void}
 */
export function keepSurroundings() {
  const kept = PLACES.flatMap(([target, names]) => names.map((name) => /** @type {const} */ ([target, name, Object.getOwnPropertyDescriptor(target, name)])));
  return () => {
    for (const [target, name, property] of kept) property ? Object.defineProperty(target, name, property) : Reflect.deleteProperty(target, name);
  };
}

/** @param {string} name @param {unknown} value */
export function replace(name, value) {
  replaceIn(globalThis, name, value);
}

/** @param {object} target @param {string} name @param {unknown} value */
function replaceIn(target, name, value) {
  Object.defineProperty(target, name, { value, configurable: true, writable: true });
}
