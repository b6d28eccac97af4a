// @ts-check
// Cache in OPFS of ranges of files that came over HTTP, by address and validator. A file without a
// validator is never cached: a change of it could not be noticed.

import { parseUrl } from './address.js';
import { entryNames, foldersIn, folderUsage, isMissing, isQuota, nameFor, openFolder, readFile, removeFolder, usageOf, writeFile } from './files.js';
import { messageOf, WgvaeError } from './errors.js';
import { forEachAbandoned } from './temporary.js';

/** The cache's folder inside the package's. */
const FOLDER = 'cache';

/** Name of the file in each cached file's folder that identifies it. */
const IDENTITY = 'identity.json';

/** Name of the file with the time of the last opening, milliseconds since 1970. */
const USED = 'used';

/** One version of a file. @typedef {{ url: string, validator: string, length: number }} Identity */
/** @typedef {(notice: import('./index.js').Notice) => void} Notify */

/** Writes in progress, of all files. @type {Set<Promise<void>>} */
const writes = new Set();

/**
 * Addresses whose files are in use on this page. They are never evicted.
 * @type {Set<string>}
 */
const inUse = new Set();

/**
 * Cached bytes in all, once a limit has had them counted. It misses writes of other tabs.
 * @type {number | undefined}
 */
let counted;

/** The last eviction. Evictions run one at a time. @type {Promise<unknown>} */
let makingRoom = Promise.resolve();

/** The cached ranges of one version of a file. */
export class CachedFile {
  #identity;
  /** Undefined while nothing is cached. */
  #folder;
  #notify;
  #limit;
  /** True after a failed write: then there are no more writes. */
  #closed = false;
  /**
   * The current write. One write at a time keeps the bytes waiting to be written few.
   * @type {Promise<void>}
   */
  #writing = Promise.resolve();

  /**
   * @param {Identity} identity
   * @param {FileSystemDirectoryHandle | undefined} folder the folder of this version, if there is
   * one
   * @param {Notify} notify
   * @param {number} limit of the whole cache, bytes
   */
  constructor(identity, folder, notify, limit) {
    this.#identity = identity;
    this.#folder = folder;
    this.#notify = notify;
    this.#limit = limit;
    inUse.add(identity.url);
  }

  /** True if ranges were cached before. */
  get isKept() {
    return this.#folder !== undefined;
  }

  /**
   * Returns a range from the cache. Otherwise gets it from `elsewhere`, and caches it.
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
   * True if this exact range is cached.
   * @param {number} offset
   * @param {number} length
   */
  async keeps(offset, length) {
    return (await this.#find(offset, length)) !== undefined;
  }

  /** Marks the file as not in use, once its last range is written. */
  release() {
    this.#writing.then(() => inUse.delete(this.#identity.url));
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
      // Another tab has cleared the cache in between.
      return undefined;
    }
  }

  /**
   * Caches a range. Resolves when the next may be written. A failure is a notice and never an
   * error, because the caller has the bytes anyway.
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
        // The cache was cleared since the last write; browsers report that with different errors.
        // Later ranges are cached again.
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
 * Opens the cached ranges of a file. Removes another version cached under the same address.
 * @param {Identity} identity
 * @param {Notify} notify
 * @param {number} [limit] of the whole cache, bytes
 * @returns {Promise<CachedFile | undefined>} undefined if the browser stores no files
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
    // A version that is being written right now is removed the next time.
    await Promise.allSettled(others.map((name) => file?.removeEntry(name, { recursive: true })));
    // A failure to store the time of use must not fail the opening.
    if (kept && isKept) await writeFile(kept, USED, `${Date.now()}`).catch(() => {});
    const folder = isKept ? await keptWithin(limit, identity.url, kept) : undefined;
    return new CachedFile(identity, folder, notify, limit);
  } catch (error) {
    notify({ code: 'cache-full', message: `the model is not kept for next time: ${messageOf(error)}` });
    return undefined;
  }
}

/** Returns the size of the cache and of abandoned folders: bytes, and number of files. */
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

/** Lists the cached files, the most recently used last. */
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
 * Removes the entry of an address. Without an address, removes everything, with the folders of
 * pages that were closed during a stream.
 * @param {string | URL} [address]
 */
export async function clearCache(address) {
  const url = address === undefined ? undefined : parseUrl(address).href;
  await Promise.all(writes);
  recount();
  if (url !== undefined) return removeFile(url);
  await removeFolder(FOLDER);
  await forEachAbandoned(removeFolder);
}

/**
 * Asks the browser not to remove the cache when it runs out of room. Returns the browser's answer.
 */
export async function persistCache() {
  // Pages may ask, workers may not.
  return (await globalThis.navigator?.storage?.persist?.()) ?? false;
}

/**
 * Evicts the least recently used files until `bytes` more fit below `limit`.
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

/** Has the cached bytes counted anew, after the evictions that run now. */
function recount() {
  makingRoom = makingRoom.then(() => {
    counted = undefined;
  });
}

/**
 * Keeps a limit that may be lower than the last time: removes the ranges of a file if they alone
 * take more, and others as far as they are not in use. Returns the file's folder, if it stays.
 * @param {number} limit
 * @param {string} url
 * @param {FileSystemDirectoryHandle | undefined} folder
 */
async function keptWithin(limit, url, folder) {
  if (limit === Infinity || !folder) return folder;
  const lengths = (await entryNames(folder)).map((name) => Number(/^\d+-(\d+)$/.exec(name)?.[1] ?? 0));
  const fits = inUse.has(url) || lengths.reduce((sum, length) => sum + length, 0) <= limit;
  if (!fits) await removeFile(url);
  inUse.add(url);
  recount();
  // Files in use stay, even if they take more than the limit.
  await makeRoom(0, limit).catch(() => {});
  return fits ? folder : undefined;
}

/** @param {string} url */
async function removeFile(url) {
  const cache = await openFolder(FOLDER, false);
  await cache?.removeEntry(await nameFor(url), { recursive: true }).catch((error) => {
    if (!isMissing(error)) throw error;
  });
}

/**
 * Creates a version's folder inside the folder of its file, so that another tab that still writes
 * another version does not write into this one.
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
 * @returns {Promise<Identity | undefined>} undefined if its creation was interrupted
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
