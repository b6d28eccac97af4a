// @ts-check
// Sources of bytes: turns the files of callers into objects that are read by ranges. Never loads a
// whole file that was not in memory before.

import { parseUrl } from './address.js';
import { nameOf } from './answers.js';
import { kindOf, messageOf, mismatch, WgvaeError } from './errors.js';
import { fetchText, openUrl } from './http.js';
import { isA, isBlob, isUrl } from './realms.js';

/**
 * A file as the wasm module reads it. `read` returns exactly `length` bytes or rejects. `expect`
 * announces the next reads, in order; `release` frees the memory and requests held for them. A
 * released source can be read again. For an address, `downloaded` counts bytes that came over the
 * network, and `toDownload` returns the bytes that reading `reads` would download.
 * @typedef {{
 *   name: string, length: number, read(offset: number, length: number): Promise<Uint8Array>,
 *   expect?(reads: import('./read-ahead.js').Range[]): void, release?(): void,
 *   downloaded?: number, toDownload?(reads: import('./read-ahead.js').Range[]): Promise<number>,
 * }} Source
 */

/**
 * Function that requests addresses.
 * @typedef {(url: string | URL, init?: RequestInit) => Promise<Response>} Fetch
 */

/** Advice for a path in place of an address. */
const OF_FILES = '; for a file, pass its address by pathToFileURL of node:url, or a Blob';

/** Access to files for one call: its signal, its listener, and how addresses are requested. */
export class Access {
  /** The call in progress, shared by all accesses made with `through`. */
  #call;

  /**
   * @param {AbortSignal} signal
   * @param {import('./cache.js').Notify} notify
   * @param {import('./index.js').ModelOptions['cache']} cache the cache option: true to cache
   * downloads
   * @param {Fetch} [fetch]
   */
  constructor(signal, notify, cache, fetch) {
    this.#call = { signal };
    this.notify = notify;
    this.cache = cache;
    this.fetch = fetch ?? ((/** @type {string | URL} */ url, /** @type {RequestInit | undefined} */ init) => globalThis.fetch(url, init));
    /** True if files may be opened by their addresses. A function of the caller's may guard them. */
    this.opensFiles = !fetch;
    /** Most bytes of the whole cache. */
    this.limit = (typeof cache === 'object' ? cache.limit : undefined) ?? Infinity;
    if (!(typeof this.limit === 'number' && this.limit >= 0)) throw mismatch('input', 'limit of the cache', 'a number of bytes', `${this.limit}`);
  }

  /** Signal of the call in progress. */
  get signal() {
    return this.#call.signal;
  }

  set signal(signal) {
    this.#call.signal = signal;
  }

  /** Returns an access that requests addresses with `fetch`. @param {Fetch} fetch */
  through(fetch) {
    const other = new Access(this.signal, this.notify, this.cache, fetch);
    other.#call = this.#call;
    return other;
  }
}

/**
 * @param {import('./index.js').FileInput} input
 * @param {Access} access
 * @param {{ what: string, headBytes?: number }} options `what`: name in errors; `headBytes`: length
 * of the first request
 * @returns {Promise<Source>}
 */
export async function openSource(input, access, { what, headBytes }) {
  if (typeof input === 'string' || isUrl(input)) {
    const url = parseUrl(input, OF_FILES);
    const file = await localFile(url, access);
    return file ? new BlobSource(file, nameOf(url), access) : openUrl(url, access, { headBytes });
  }
  if (isBlob(input)) return new BlobSource(input, what, access);
  const bytes = bytesOf(input);
  if (bytes) return memorySource(bytes, what, access);
  throw mismatch('input', what, 'a Blob, a URL, an ArrayBuffer or a Uint8Array', kindOf(input));
}

/**
 * Returns the text of a small file, or of an object as JSON.
 * @param {import('./index.js').FileInput | object} input
 * @param {Access} access
 * @param {string} what
 */
export async function readText(input, access, what) {
  if (typeof input === 'string' && input.trimStart().startsWith('{')) return input;
  if (typeof input === 'string' || isUrl(input)) {
    const url = parseUrl(input, OF_FILES);
    const file = await localFile(url, access);
    return file ? textOf(file, nameOf(url)) : fetchText(url, access);
  }
  if (isBlob(input)) return textOf(input, what);
  const bytes = bytesOf(input);
  if (bytes) return new TextDecoder().decode(bytes);
  // A Response, a promise or a map has no properties of its own, and would be an empty object. A
  // config may be imported as a module.
  if (['[object Object]', '[object Module]'].includes(Object.prototype.toString.call(input))) return jsonOf(input, what);
  throw mismatch('input', what, 'text, a plain object, a Blob, a URL or bytes', kindOf(input));
}

/**
 * @param {object} value
 * @param {string} what its name in errors
 */
function jsonOf(value, what) {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    // Browsers explain a cycle in several lines.
    throw mismatch('input', what, 'an object that JSON can hold', `one that it cannot: ${messageOf(cause).split('\n')[0]}`, cause);
  }
}

/**
 * Returns a source that reads each range once and keeps its bytes.
 * @param {Source} source
 */
export function remembering(source) {
  /** @type {Record<string, Promise<Uint8Array>>} */
  const reads = {};
  const read = (/** @type {number} */ offset, /** @type {number} */ length) => (reads[`${offset}-${length}`] ??= source.read(offset, length));
  return { name: source.name, length: source.length, read };
}

/** A Blob, or a file that the user chose, read in slices. */
class BlobSource {
  #blob;
  #access;

  /**
   * @param {Blob} blob
   * @param {string} what
   * @param {Access} access
   */
  constructor(blob, what, access) {
    this.#blob = blob;
    this.#access = access;
    this.name = /** @type {Partial<File>} */ (blob).name || what;
    this.length = blob.size;
  }

  /**
   * @param {number} offset
   * @param {number} length
   */
  async read(offset, length) {
    this.#access.signal.throwIfAborted();
    const buffer = await readBlob(this.#blob.slice(offset, offset + length), this.name);
    if (buffer.byteLength === length) return new Uint8Array(buffer);
    throw mismatch('changed', `${this.name} changed while it was read`, `${length} bytes from ${offset}`, `${buffer.byteLength}`);
  }
}

/**
 * Opens a file by its address, which the fetch of Node does not.
 * @param {URL} url
 * @param {Access} access
 * @returns {Promise<Blob | undefined>} undefined for other addresses, and in browsers
 */
async function localFile(url, access) {
  if (url.protocol !== 'file:' || !access.opensFiles) return undefined;
  const fs = globalThis.process?.getBuiltinModule?.('node:fs');
  if (!fs?.openAsBlob) return undefined;
  try {
    const found = await fs.promises.stat(url);
    if (!found.isFile()) throw new Error('it is no file');
    return await fs.openAsBlob(url);
  } catch (cause) {
    throw new WgvaeError('io', `${url} cannot be read: ${messageOf(cause)}`, { cause });
  }
}

/**
 * @param {Blob} blob
 * @param {string} name
 */
async function textOf(blob, name) {
  return new TextDecoder().decode(await readBlob(blob, name));
}

/**
 * @param {Blob} blob
 * @param {string} name
 */
async function readBlob(blob, name) {
  try {
    return await blob.arrayBuffer();
  } catch (cause) {
    // A File stands for its content at the time of the choice: browsers do not read a changed one.
    const isGone = cause instanceof DOMException && ['NotReadableError', 'NotFoundError'].includes(cause.name);
    const why = isGone ? 'it was changed, moved or removed since it was opened' : messageOf(cause);
    throw new WgvaeError(isGone ? 'changed' : 'io', `${name} cannot be read: ${why}`, { cause });
  }
}

/**
 * @param {Uint8Array} bytes
 * @param {string} what
 * @param {Access} access
 * @returns {Source}
 */
function memorySource(bytes, what, access) {
  const read = async (/** @type {number} */ offset, /** @type {number} */ length) => {
    access.signal.throwIfAborted();
    return bytes.subarray(offset, offset + length);
  };
  return { name: what, length: bytes.length, read };
}

/**
 * @param {unknown} input
 * @returns {Uint8Array | undefined}
 */
export function bytesOf(input) {
  const bytes = /** @type {any} */ (input);
  if (input instanceof Uint8Array) return input;
  if (isA(input, 'ArrayBuffer')) return new Uint8Array(bytes);
  return isA(input, 'Uint8Array') ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) : undefined;
}
