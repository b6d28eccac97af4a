// @ts-check
// Files at a URL, read by ranges. Every answer is checked before its bytes are used: status, type,
// range, length, and that the file is still the one that was opened. stream.js reads from servers
// without ranges.

import { body, checkRange, checkType, contentRange, lengthOf, nameOf, refused, unanswered, validators } from './answers.js';
import { openCachedFile } from './cache.js';
import { kindOf, mismatch, WgvaeError } from './errors.js';
import { either } from './queue.js';
import { groupReads, ReadAhead } from './read-ahead.js';
import { mayPass, withRetries } from './retry.js';
import { openStream } from './stream.js';

/**
 * Bytes of the first request: enough for the header of most files. The headers of large checkpoints
 * take one more request.
 */
const HEAD_BYTES = 64 << 10;

/** @typedef {import('./sources.js').Access} Access */
/** @typedef {import('./sources.js').Source} Source */

/**
 * Facts about a file from the first answer. `ours`: true if it came from this page's origin, with
 * all redirects.
 * @typedef {{ length: number, etag: string | null, modified: string | null, ours: boolean }}
 * Version
 */

/**
 * Opens the file at `url` with one request.
 * @param {URL} url
 * @param {Access} access
 * @param {{ headBytes?: number, known?: { length?: number, url: string, validator?: string } }}
 * [options] `headBytes`: length of that request; `known`: facts from another source than the
 * server: the length, and the cache key
 * @returns {Promise<Source>}
 */
export async function openUrl(url, access, { headBytes = HEAD_BYTES, known } = {}) {
  const { response, file } = await withRetries(() => requestHead(url, access, headBytes, known?.length), access.signal, access.notify);
  if (!file) return openStream(url, response, () => requestWhole(url, access), access);
  const { version, head } = file;
  const { length } = version;
  const validator = version.etag ?? version.modified;
  const identity = known?.validator ? { url: known.url, validator: known.validator, length } : validator && { url: url.href, validator, length };
  const cached = access.cache && identity ? await openCachedFile(identity, access.notify, access.limit) : undefined;
  return new HttpSource(url, access, { version, head, cached, target: targetOf(response) });
}

/**
 * Requests the first bytes of the file. Returns them with the facts of the answer, or the answer
 * alone if the server has no ranges.
 * @param {URL} url
 * @param {Access} access
 * @param {number} headBytes
 * @param {number} [known] length, used if the answer does not tell it
 * @returns {Promise<{ response: Response, file?: { version: Version, head: Uint8Array<ArrayBuffer>
 * } }>}
 */
async function requestHead(url, access, headBytes, known) {
  const response = await request(url, access, { Range: `bytes=0-${headBytes - 1}` });
  if (response.status === 200) return { response };
  if (response.status !== 206) throw await refused(url, response, '200 or 206');
  const range = contentRange(url, response);
  const length = range?.total ?? known ?? (await lengthByHead(url, access));
  const version = { length, ...validators(response), ours: response.type === 'basic' };
  const headLength = Math.min(headBytes, length);
  if (range) await checkRange(url, response, range, 0, headLength);
  return { response, file: { version, head: await body(url, response, headLength) } };
}

/**
 * Returns the text of the small file at `url`.
 * @param {URL} url
 * @param {Access} access
 */
export async function fetchText(url, access) {
  const fetchBytes = async () => {
    const response = await requestWhole(url, access);
    // Some browsers accept an answer that ends early.
    return body(url, response, lengthOf(response));
  };
  return new TextDecoder().decode(await withRetries(fetchBytes, access.signal, access.notify));
}

/** A file whose server supports ranges. */
class HttpSource {
  #url;
  #access;
  #version;
  #head;
  #cached;
  /** Address after redirects. It is used until it fails: it may be valid only for a while. */
  #target;
  /** Ends requests in progress when the source is released. */
  #reading = new AbortController();
  #ahead = new ReadAhead((offset, length) => this.#fetch(offset, length));

  /**
   * @param {URL} url
   * @param {Access} access
   * @param {{ version: Version, head: Uint8Array<ArrayBuffer>, cached?:
   * import('./cache.js').CachedFile, target?: string }} opened `head`: the file's first bytes
   */
  constructor(url, access, { version, head, cached, target }) {
    this.#url = url;
    this.#access = access;
    this.#version = version;
    this.#head = head;
    this.#cached = cached;
    this.#target = target;
    this.name = nameOf(url);
    this.length = version.length;
    this.downloaded = head.length;
  }

  /**
   * @param {number} offset
   * @param {number} length
   */
  async read(offset, length) {
    this.#access.signal.throwIfAborted();
    if (offset + length <= this.#head.length) return this.#head.subarray(offset, offset + length);
    return this.#ahead.read(offset, length);
  }

  /** @param {import('./read-ahead.js').Range[]} reads */
  expect(reads) {
    this.#ahead.expect(this.#beyondHead(reads));
  }

  /** @param {import('./read-ahead.js').Range[]} reads */
  async toDownload(reads) {
    const groups = groupReads(this.#beyondHead(reads));
    const kept = await Promise.all(groups.map(({ offset, length }) => this.#cached?.keeps(offset, length)));
    return groups.reduce((sum, { length }, index) => sum + (kept[index] ? 0 : length), 0);
  }

  release() {
    this.#ahead.clear();
    this.#reading.abort();
    this.#reading = new AbortController();
    this.#cached?.release();
  }

  /** @param {import('./read-ahead.js').Range[]} reads */
  #beyondHead(reads) {
    return reads.filter(({ offset, length }) => offset + length > this.#head.length);
  }

  /**
   * Reads from the cache or from the server.
   * @param {number} offset
   * @param {number} length
   */
  #fetch(offset, length) {
    const signal = either(this.#access.signal, this.#reading.signal);
    const ask = () => withRetries(() => this.#fetchRange(offset, length, signal), signal, this.#access.notify);
    return this.#cached ? this.#cached.getOr(offset, length, ask) : ask();
  }

  /**
   * @param {number} offset
   * @param {number} length
   * @param {AbortSignal} signal
   */
  async #fetchRange(offset, length, signal) {
    const target = this.#target;
    try {
      return await this.#ask(offset, length, signal);
    } catch (error) {
      if (!target) throw error;
      if (this.#target === target) this.#target = undefined;
      // Failures that may pass are retried later.
      if (!(error instanceof WgvaeError) || mayPass(error)) throw error;
      return this.#ask(offset, length, signal);
    }
  }

  /**
   * @param {number} offset
   * @param {number} length
   * @param {AbortSignal} signal
   */
  async #ask(offset, length, signal) {
    const headers = { Range: `bytes=${offset}-${offset + length - 1}`, ...this.#condition() };
    const response = await request(this.#url, this.#access, headers, { signal, target: this.#target });
    // 200: the file is not the one that If-Range names; 416: it is shorter than it was.
    if ([200, 412, 416].includes(response.status)) throw await this.#changed(response, `an answer ${response.status} to a range`);
    if (response.status !== 206) throw await refused(this.#url, response, '206 to a range');
    const found = validators(response);
    const { etag, modified } = this.#version;
    if (etag && found.etag && etag !== found.etag) throw await this.#changed(response, `ETag ${found.etag}`);
    if (modified && found.modified && modified !== found.modified) throw await this.#changed(response, `Last-Modified ${found.modified}`);
    const range = contentRange(this.#url, response);
    if (range?.total !== undefined && range.total !== this.length) throw await this.#changed(response, `${range.total} bytes`);
    if (range) await checkRange(this.#url, response, range, offset, length);
    const bytes = await body(this.#url, response, length);
    this.#target = targetOf(response) ?? this.#target;
    this.downloaded += length;
    return bytes;
  }

  /**
   * Returns the header that makes a server answer only for the opened version.
   * @returns {Record<string, string>}
   */
  #condition() {
    // A server of another origin would have to allow the header, and few do. There the answer's
    // validators are compared instead.
    const { etag, modified, ours } = this.#version;
    if (!ours) return {};
    if (etag && !etag.startsWith('W/')) return { 'If-Range': etag };
    return modified && !etag ? { 'If-Range': modified } : {};
  }

  /**
   * @param {Response} response
   * @param {string} found
   */
  async #changed(response, found) {
    await response.body?.cancel().catch(() => {});
    const { etag, modified } = this.#version;
    const was = etag ? `ETag ${etag}` : modified ? `Last-Modified ${modified}` : `${this.length} bytes`;
    return mismatch('changed', `${this.#url} changed while it was read`, was, found);
  }
}

/** Returns the address that an answer was redirected to, if it was. @param {Response} response */
function targetOf({ redirected, url }) {
  return redirected && url ? url : undefined;
}

/**
 * @param {URL} url
 * @param {Access} access
 * @param {Record<string, string>} headers
 * @param {{ signal?: AbortSignal, method?: string, target?: string }} [options] `target`: address
 * to request instead, while errors name `url`
 */
async function request(url, access, headers, { signal = access.signal, method = 'GET', target } = {}) {
  signal.throwIfAborted();
  // Called as a function: a browser's own fetch fails as a method of another object.
  const { fetch } = access;
  /** @type {Response} */
  let response;
  try {
    // The browser's own cache keeps whole files; ours keeps only the needed parts.
    response = await fetch(target ?? url, { method, headers, signal, cache: 'no-store' });
  } catch (cause) {
    signal.throwIfAborted();
    throw unanswered(url, cause);
  }
  // A caller's own function may be wrong. No instanceof: its answer may come from a library.
  if (typeof response?.headers?.get !== 'function') throw mismatch('input', 'fetch', 'a function that resolves to a Response', kindOf(response));
  return response;
}

/**
 * @param {URL} url
 * @param {Access} access
 */
async function requestWhole(url, access) {
  const response = await request(url, access, {});
  if (response.status !== 200) throw await refused(url, response, '200');
  checkType(url, response);
  return response;
}

/**
 * @param {URL} url
 * @param {Access} access
 */
async function lengthByHead(url, access) {
  const response = await request(url, access, {}, { method: 'HEAD' });
  if (!response.ok) throw await refused(url, response, '200 to HEAD');
  const length = Number(response.headers.get('Content-Length') ?? NaN);
  if (Number.isSafeInteger(length)) return length;
  throw mismatch('http', `${url}`, 'an answer that tells the length of the file', 'none');
}
