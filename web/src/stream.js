// @ts-check
// A file whose server has no ranges: all of it comes in order, once. Expected ranges are put aside
// while the stream passes, and cached when they are read; the rest is dropped. The stream waits
// until a read needs more of it.

import { checkType, lengthOf, nameOf } from './answers.js';
import { Aside } from './aside.js';
import { openCachedFile } from './cache.js';
import { mismatch, messageOf, WgvaeError } from './errors.js';
import { groupReads, ReadAhead } from './read-ahead.js';

/** @typedef {import('./sources.js').Access} Access */
/** @typedef {import('./sources.js').Source} Source */
/** @typedef {import('./read-ahead.js').Range} Range */

/**
 * @param {URL} url
 * @param {Response} response to a request for the file
 * @param {() => Promise<Response>} again requests the whole file once more
 * @param {Access} access
 * @returns {Promise<Source>}
 */
export async function openStream(url, response, again, access) {
  checkType(url, response);
  const told = toldBy(response);
  const validator = told.ETag ?? told['Last-Modified'];
  // Without a length, a broken connection looks like the end of the file: never cache such a file.
  const identity = access.cache && validator && told.length !== undefined && { url: url.href, validator, length: told.length };
  const cached = identity ? await openCachedFile(identity, access.notify, access.limit) : undefined;
  const source = new StreamSource({ url, told, again, access, cached });
  try {
    await source.open(response);
  } catch (error) {
    source.release();
    throw error;
  }
  return /** @type {Source} */ (source);
}

/**
 * @typedef {{ 'ETag': string | null, 'Last-Modified': string | null, length: number | undefined }}
 * Told
 */

/** @type {(response: Response) => Told} */
function toldBy(response) {
  const { headers } = response;
  return { 'ETag': headers.get('ETag'), 'Last-Modified': headers.get('Last-Modified'), length: lengthOf(response) };
}

class StreamSource {
  #url;
  #again;
  #access;
  #cached;
  /** Facts from the first answer. @type {Told} */
  #told;
  /** @type {ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | undefined} */
  #reader;
  /** Bytes of the stream that have arrived. */
  #position = 0;
  /** Ranges that will be read; the whole stream until they are known. @type {Range[]} */
  #wanted = [{ offset: 0, length: Infinity }];
  #aside = new Aside();
  /**
   * Caches neighbours together, since creating files in a cache is slow. Used only with a cache.
   */
  #ahead = new ReadAhead((offset, length) => this.#readKept(offset, length));
  /** Ends reads when the source is released. */
  #reading = new AbortController();
  /**
   * The last read. Reads run one after the other, because they share the stream.
   * @type {Promise<unknown>}
   */
  #last = Promise.resolve();
  /** True after the notice that the whole file is downloaded. */
  #isAnnounced = false;
  downloaded = 0;

  /**
   * @param {{
   *   url: URL, told: Told, again: () => Promise<Response>, access: Access, cached:
   *   import('./cache.js').CachedFile | undefined,
   * }} parts
   */
  constructor({ url, told, again, access, cached }) {
    this.#url = url;
    this.#told = told;
    this.#again = again;
    this.#access = access;
    this.#cached = cached;
    this.name = nameOf(url);
    this.length = told.length;
  }

  /**
   * Begins with the answer to the first request, or drops it if the cache will probably do.
   * @param {Response} response
   */
  async open(response) {
    if (this.#cached?.isKept) {
      await response.body?.cancel().catch(() => {});
      return;
    }
    this.#begin(response);
    // Without a length, the file counts as opened only after its end.
    if (this.length === undefined) await this.#readToEnd();
  }

  /**
   * @param {number} offset
   * @param {number} length
   * @returns {Promise<Uint8Array>}
   */
  async read(offset, length) {
    this.#access.signal.throwIfAborted();
    return this.#cached ? this.#ahead.read(offset, length) : this.#readInTurn(offset, length);
  }

  /** @param {Range[]} reads */
  expect(reads) {
    this.#ahead.expect(reads);
    this.#wanted = groupReads(reads).sort((a, b) => a.offset - b.offset);
  }

  /** Returns the length of the file, or 0 if all ranges are cached. @param {Range[]} reads */
  async toDownload(reads) {
    const kept = await Promise.all(groupReads(reads).map(({ offset, length }) => this.#cached?.keeps(offset, length)));
    return kept.every(Boolean) ? 0 : this.length;
  }

  /** Drops the stream and the ranges put aside. A later read begins again. */
  release() {
    this.#cached?.release();
    this.#ahead.clear();
    this.#reading.abort();
    this.#reading = new AbortController();
    this.#letGo();
  }

  #letGo() {
    this.#reader?.cancel().catch(() => {});
    this.#reader = undefined;
    this.#aside.clear();
    this.#aside = new Aside();
  }

  /** @param {Response} response with the whole file */
  #begin(response) {
    this.#reader = response.body?.getReader();
    this.#position = 0;
    if (this.#isAnnounced) return;
    this.#isAnnounced = true;
    const what = this.#cached ? 'what is needed of it is kept for next time' : 'nothing of it is kept for next time';
    const message = `the server of ${this.name} gives whole files only: all of it is downloaded, and ${what}`;
    this.#access.notify({ code: 'no-ranges', message, bytes: this.#told.length });
  }

  /** Puts the whole stream aside, which tells its length. */
  async #readToEnd() {
    const { signal } = this.#reading;
    while (await this.#advance(signal)) { /* until the end */ }
    await this.#aside.flush();
    this.length = this.#position;
  }

  /**
   * Reads from the cache or from the stream.
   * @param {number} offset
   * @param {number} length
   */
  #readKept(offset, length) {
    const take = () => this.#readInTurn(offset, length);
    return /** @type {import('./cache.js').CachedFile} */ (this.#cached).getOr(offset, length, take);
  }

  /**
   * @param {number} offset
   * @param {number} length
   */
  #readInTurn(offset, length) {
    const { signal } = this.#reading;
    const turn = this.#last.then(() => this.#read(offset, length, signal));
    this.#last = turn.catch(() => {});
    return turn;
  }

  /**
   * @param {number} offset
   * @param {number} length
   * @param {AbortSignal} signal aborted when the stream is released
   * @returns {Promise<Uint8Array<ArrayBuffer>>}
   */
  async #read(offset, length, signal) {
    signal.throwIfAborted();
    this.#access.signal.throwIfAborted();
    if (!this.#reader && this.#aside.isEmpty()) await this.#restart(signal);
    const early = await this.#take(offset, length, signal);
    if (early) return early;
    // The range passed before it was expected: request the file again.
    const others = this.#wanted.filter((range) => range.offset + range.length <= offset || offset + length <= range.offset);
    this.#wanted = [...others, { offset, length }].sort((a, b) => a.offset - b.offset);
    await this.#restart(signal);
    const late = await this.#take(offset, length, signal);
    if (!late) throw new WgvaeError('io', `${this.#url}: what was put aside of it is gone: ${length} bytes from ${offset}`);
    return late;
  }

  /**
   * Advances the stream to the end of the range, and returns the range from the bytes put aside.
   * @param {number} offset
   * @param {number} length
   * @param {AbortSignal} signal
   */
  async #take(offset, length, signal) {
    while (this.#position < offset + length) {
      if (!(await this.#advance(signal))) {
        throw mismatch('truncated', `${this.#url}`, `${this.length} bytes`, `${this.#position} bytes`);
      }
    }
    await this.#aside.flush();
    const bytes = await this.#aside.read(offset, length);
    signal.throwIfAborted();
    return bytes;
  }

  /** Takes the next chunk of the stream. Returns false at its end. @param {AbortSignal} signal */
  async #advance(signal) {
    let next;
    try {
      next = await this.#reader?.read();
    } catch (cause) {
      this.#access.signal.throwIfAborted();
      throw mismatch('truncated', `${this.#url}`, `${this.length ?? 'all'} bytes`, `${this.#position} bytes (${messageOf(cause)})`, cause);
    }
    signal.throwIfAborted();
    if (!next?.value) return false;
    const begin = this.#position;
    this.#position += next.value.length;
    this.downloaded += next.value.length;
    for (const { offset, length } of this.#wanted) {
      if (offset >= this.#position) break;
      const [from, to] = [Math.max(offset, begin), Math.min(offset + length, this.#position)];
      if (from < to) await this.#aside.add(from, next.value.subarray(from - begin, to - begin));
      signal.throwIfAborted();
    }
    return true;
  }

  /** Requests the file once more. @param {AbortSignal} signal */
  async #restart(signal) {
    this.#letGo();
    const response = await this.#again();
    if (signal.aborted) {
      await response.body?.cancel().catch(() => {});
      signal.throwIfAborted();
    }
    const told = toldBy(response);
    for (const what of /** @type {const} */ (['ETag', 'Last-Modified', 'length'])) {
      const [before, now] = [this.#told[what], told[what]];
      // Some answers tell no length.
      if (now === before || now === undefined || before === undefined) continue;
      await response.body?.cancel().catch(() => {});
      throw mismatch('changed', `${this.#url} changed while it was read`, `${what} ${before}`, `${what} ${now}`);
    }
    this.#begin(response);
  }
}
