// @ts-check
// Ranges of files that came over HTTP, kept in OPFS by address and validator. A file without a
// validator is never kept: nothing could tell that it changed.

import { parseUrl } from './address.js';
import { entryNames, foldersIn, folderUsage, isMissing, isQuota, nameFor, openFolder, readFile, removeFolder, usageOf, writeFile } from './files.js';
import { messageOf, WgvaeError } from './errors.js';
import { forEachAbandoned } from './temporary.js';

/** The cache's folder inside the package's. */
const FOLDER = 'cache';

/** What a file's folder says about it. */
const IDENTITY = 'identity.json';

/** And when it was opened last: milliseconds since 1970. */
const USED = 'used';

/** A version of a file. @typedef {{ url: string, validator: string, length: number }} Identity */
/** @typedef {(notice: import('./index.js').Notice) => void} Notify */

/** Writes under way, of all files. @type {Set<Promise<void>>} */
const writes = new Set();

/**
 * Addresses whose files are in use on this page: they do not make room for others. @type
 * {Set<string>}
 */
const inUse = new Set();

/**
 * Bytes kept in all, once a limit has had them counted. What other tabs write is not seen. @type
 * {number | undefined}
 */
let counted;

/** The last that makes room: one at a time. @type {Promise<unknown>} */
let makingRoom = Promise.resolve();

/** What is kept of one version of one file. */
export class CachedFile {
  #identity;
  /** Undefined while nothing is kept. */
  #folder;
  #notify;
  #limit;
  /** Whether a write has failed: then there will be no more. */
  #closed = false;
  /** One write at a time, so that what waits to be written stays small. @type {Promise<void>} */
  #writing = Promise.resolve();

  /**
   * @param {Identity} identity
   * @param {FileSystemDirectoryHandle | undefined} folder this version's, if there is one
   * @param {Notify} notify
   * @param {number} limit of all that is kept, bytes
   */
  constructor(identity, folder, notify, limit) {
    this.#identity = identity;
    this.#folder = folder;
    this.#notify = notify;
    this.#limit = limit;
    inUse.add(identity.url);
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
    inUse.add(this.#identity.url);
    const kept = await this.#get(offset, length);
    if (kept) return kept;
    const bytes = await elsewhere();
    await this.#put(offset, bytes);
    return bytes;
  }

  /**
   * Whether a range that was kept as a whole still is.
   * @param {number} offset
   * @param {number} length
   */
  async keeps(offset, length) {
    return (await this.#find(offset, length)) !== undefined;
  }

  /** Says that it is not used for now. */
  release() {
    inUse.delete(this.#identity.url);
  }

  /**
   * @param {number} offset
   * @param {number} length
   */
  async #find(offset, length) {
    const file = this.#folder && (await readFile(this.#folder, entryName(offset, length)));
    return file?.size === length ? file : undefined;
  }

  /**
   * @param {number} offset
   * @param {number} length
   * @returns {Promise<Uint8Array<ArrayBuffer> | undefined>}
   */
  async #get(offset, length) {
    const file = await this.#find(offset, length);
    if (!file) return undefined;
    try {
      return new Uint8Array(await file.arrayBuffer());
    } catch {
      // Cleared by another tab in between.
      return undefined;
    }
  }

  /**
   * Keeps a range. Resolves when there is room for the next; a failure is a notice, never an error:
   * the bytes are there all the same.
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
      if (this.#limit < Infinity) await makeRoom(bytes.length, this.#limit);
      const wasThere = this.#folder !== undefined;
      await this.#writeEntry(offset, bytes).catch((error) => {
        if (!wasThere || isQuota(error)) throw error;
        // Cleared since the last write, which browsers say in different words: what comes from now
        // on is kept again.
        this.#folder = undefined;
        return this.#writeEntry(offset, bytes);
      });
    } catch (error) {
      this.#closed = true;
      const why = isQuota(error) ? 'this site may not keep more files' : messageOf(error);
      this.#notify({ code: 'cache-full', message: `the rest of the model is not kept for next time: ${why}` });
    }
  }

  /**
   * @param {number} offset
   * @param {Uint8Array<ArrayBuffer>} bytes
   */
  async #writeEntry(offset, bytes) {
    this.#folder ??= await makeFolder(this.#identity);
    await writeFile(this.#folder, entryName(offset, bytes.length), bytes);
  }
}

/**
 * What is kept of a file. Another version of it, kept under the same address, is removed.
 * @param {Identity} identity
 * @param {Notify} notify
 * @param {number} [limit] of all that is kept, bytes
 * @returns {Promise<CachedFile | undefined>} undefined where the browser keeps no files
 */
export async function openCachedFile(identity, notify, limit = Infinity) {
  const cache = await openFolder(FOLDER, true);
  if (!cache) return undefined;
  try {
    const file = await cache.getDirectoryHandle(await fileName(identity)).catch(() => undefined);
    const version = await versionName(identity);
    const kept = await file?.getDirectoryHandle(version).catch(() => undefined);
    const known = kept && (await readIdentity(kept));
    const isKept = known !== undefined && isSame(known, identity);
    const others = file ? (await entryNames(file)).filter((name) => name !== version || !isKept) : [];
    // One that is written at this moment goes the next time.
    await Promise.allSettled(others.map((name) => file?.removeEntry(name, { recursive: true })));
    // How long ago it was used is no reason to fail.
    if (kept && isKept) await writeFile(kept, USED, `${Date.now()}`).catch(() => {});
    return new CachedFile(identity, isKept ? kept : undefined, notify, limit);
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

/** What is kept of each file, those used last at the end. */
export async function cachedFiles() {
  await Promise.all(writes);
  return listFiles();
}

async function listFiles() {
  const files = [];
  const cache = await openFolder(FOLDER, false);
  for (const file of cache ? await foldersIn(cache) : []) {
    for (const folder of await foldersIn(file)) {
      const identity = await readIdentity(folder);
      if (!identity) continue;
      const used = Number(await (await readFile(folder, USED))?.text().catch(() => 0));
      files.push({ url: identity.url, length: identity.length, bytes: (await usageOf(folder)).bytes, used: new Date(used || 0) });
    }
  }
  return files.sort((a, b) => a.used.getTime() - b.used.getTime());
}

/**
 * Removes what is kept of an address; without one everything, and what pages left that were closed
 * in the middle of a stream.
 * @param {string | URL} [address]
 */
export async function clearCache(address) {
  await Promise.all(writes);
  counted = undefined;
  if (address !== undefined) return removeFile(parseUrl(address).href);
  await removeFolder(FOLDER);
  await forEachAbandoned(removeFolder);
}

/** Asks the browser not to remove what is kept when it runs out of room. Whether it will not. */
export async function persistCache() {
  // Pages may ask, workers may not.
  return (await globalThis.navigator?.storage?.persist?.()) ?? false;
}

/**
 * Removes the files that were used longest ago, until `bytes` more are below `limit`.
 * @param {number} bytes
 * @param {number} limit
 */
function makeRoom(bytes, limit) {
  const turn = makingRoom.then(async () => {
    counted ??= (await folderUsage(FOLDER)).bytes;
    const others = counted + bytes > limit ? (await listFiles()).filter(({ url }) => !inUse.has(url)) : [];
    for (const { url, bytes: freed } of others) {
      if (counted + bytes <= limit) break;
      await removeFile(url);
      counted -= freed;
    }
    if (counted + bytes > limit) throw new WgvaeError('io', `all that is kept would be more than ${limit} bytes`);
    counted += bytes;
  });
  makingRoom = turn.catch(() => {});
  return turn;
}

/** @param {string} url */
async function removeFile(url) {
  const cache = await openFolder(FOLDER, false);
  await cache?.removeEntry(await nameFor(url), { recursive: true }).catch((error) => {
    if (!isMissing(error)) throw error;
  });
}

/**
 * A version's folder inside the file's: who still writes another version in another tab does not
 * write into this one.
 * @param {Identity} identity
 */
async function makeFolder(identity) {
  const cache = await openFolder(FOLDER, true);
  if (!cache) throw new WgvaeError('io', 'this site may not keep files');
  const file = await cache.getDirectoryHandle(await fileName(identity), { create: true });
  const folder = await file.getDirectoryHandle(await versionName(identity), { create: true });
  await writeFile(folder, IDENTITY, JSON.stringify(identity));
  await writeFile(folder, USED, `${Date.now()}`);
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

/** @param {Identity} identity */
function fileName({ url }) {
  return nameFor(url);
}

/** @param {Identity} identity */
function versionName({ validator, length }) {
  return nameFor(`${length} ${validator}`);
}
