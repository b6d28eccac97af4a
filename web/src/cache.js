// @ts-check
// Ranges of files that came over HTTP, kept in OPFS by address and validator. A file without a validator is never kept: nothing could tell
// that it changed.

import { folderUsage, isQuota, openFolder, readFile, removeFolder, writeFile } from './files.js';
import { messageOf } from './errors.js';
import { forEachAbandoned } from './temporary.js';

/** The cache's folder inside the package's. */
const FOLDER = 'cache';

/** What a file's folder says about it. */
const IDENTITY = 'identity.json';

/** A version of a file. @typedef {{ url: string, validator: string, length: number }} Identity */
/** @typedef {(notice: import('./index.js').Notice) => void} Notify */

/** Writes under way, of all files. @type {Set<Promise<void>>} */
const writes = new Set();

/** What is kept of one version of one file. */
export class CachedFile {
  #cache;
  #identity;
  /** Undefined while nothing is kept. */
  #folder;
  #notify;
  /** Whether a write has failed: then there will be no more. */
  #closed = false;
  /** One write at a time, so that what waits to be written stays small. @type {Promise<void>} */
  #writing = Promise.resolve();

  /**
   * @param {FileSystemDirectoryHandle} cache
   * @param {Identity} identity
   * @param {FileSystemDirectoryHandle | undefined} folder the file's, if there is one
   * @param {Notify} notify
   */
  constructor(cache, identity, folder, notify) {
    this.#cache = cache;
    this.#identity = identity;
    this.#folder = folder;
    this.#notify = notify;
  }

  /** Whether something was kept before. */
  get isKept() {
    return this.#folder !== undefined;
  }

  /**
   * A range from here, or from elsewhere: then it is kept.
   * @param {number} offset
   * @param {number} length
   * @param {() => Promise<Uint8Array<ArrayBuffer>>} elsewhere
   */
  async getOr(offset, length, elsewhere) {
    const kept = await this.#get(offset, length);
    if (kept) return kept;
    const bytes = await elsewhere();
    await this.#put(offset, bytes);
    return bytes;
  }

  /**
   * @param {number} offset
   * @param {number} length
   * @returns {Promise<Uint8Array<ArrayBuffer> | undefined>}
   */
  async #get(offset, length) {
    const file = this.#folder && (await readFile(this.#folder, entryName(offset, length)));
    if (file?.size !== length) return undefined;
    try {
      return new Uint8Array(await file.arrayBuffer());
    } catch {
      // Cleared by another tab in between.
      return undefined;
    }
  }

  /**
   * Keeps a range. Resolves when there is room for the next; a failure is a notice, never an error: the bytes are there all the same.
   * @param {number} offset
   * @param {Uint8Array<ArrayBuffer>} bytes
   */
  async #put(offset, bytes) {
    const before = this.#writing;
    const write = before.then(() => this.#write(offset, bytes));
    this.#writing = write;
    writes.add(write);
    write.finally(() => writes.delete(write));
    await before;
  }

  /**
   * @param {number} offset
   * @param {Uint8Array<ArrayBuffer>} bytes
   */
  async #write(offset, bytes) {
    if (this.#closed) return;
    try {
      this.#folder ??= await makeFolder(this.#cache, this.#identity);
      await writeFile(this.#folder, entryName(offset, bytes.length), bytes);
    } catch (error) {
      this.#closed = true;
      const why = isQuota(error) ? 'this site may not keep more files' : messageOf(error);
      this.#notify({ code: 'cache-full', message: `the rest of the model is not kept for next time: ${why}` });
    }
  }
}

/**
 * What is kept of a file. Another version of it, kept under the same address, is removed.
 * @param {Identity} identity
 * @param {Notify} notify
 * @returns {Promise<CachedFile | undefined>} undefined where the browser keeps no files
 */
export async function openCachedFile(identity, notify) {
  const name = await folderName(identity.url);
  const cache = await openFolder(FOLDER, true);
  if (!cache) return undefined;
  try {
    const kept = await cache.getDirectoryHandle(name).catch(() => undefined);
    const known = kept && (await readIdentity(kept));
    if (kept && known && isSame(known, identity)) return new CachedFile(cache, known, kept, notify);
    if (kept) await cache.removeEntry(name, { recursive: true });
    return new CachedFile(cache, identity, undefined, notify);
  } catch (error) {
    notify({ code: 'cache-full', message: `the model is not kept for next time: ${messageOf(error)}` });
    return undefined;
  }
}

/** What the cache and abandoned folders take: bytes, and files that they are made of. */
export async function cacheUsage() {
  await Promise.all(writes);
  const usage = await folderUsage(FOLDER);
  await forEachAbandoned(async (name) => {
    const { bytes, entries } = await folderUsage(name);
    usage.bytes += bytes;
    usage.entries += entries;
  });
  return usage;
}

/** Removes everything kept, and what pages left that were closed in the middle of a stream. */
export async function clearCache() {
  await Promise.all(writes);
  await removeFolder(FOLDER);
  await forEachAbandoned(removeFolder);
}

/**
 * @param {FileSystemDirectoryHandle} cache
 * @param {Identity} identity
 */
async function makeFolder(cache, identity) {
  const folder = await cache.getDirectoryHandle(await folderName(identity.url), { create: true });
  await writeFile(folder, IDENTITY, JSON.stringify(identity));
  return folder;
}

/**
 * @param {FileSystemDirectoryHandle} folder
 * @returns {Promise<Identity | undefined>} undefined if the folder was cut off while it was made
 */
async function readIdentity(folder) {
  try {
    return JSON.parse((await (await readFile(folder, IDENTITY))?.text()) ?? 'null') ?? undefined;
  } catch {
    return undefined;
  }
}

/**
 * @param {Identity} a
 * @param {Identity} b
 */
function isSame(a, b) {
  return a.url === b.url && a.validator === b.validator && a.length === b.length;
}

/**
 * @param {number} offset
 * @param {number} length
 */
function entryName(offset, length) {
  return `${offset}-${length}`;
}

/** @param {string} url */
async function folderName(url) {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(url));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
