// @ts-check
// A file whose server has no ranges: the whole of it comes in order, once. What is wanted is put aside while it passes, in OPFS where the browser
// has one and in Blobs where not; the rest is let go. The stream waits until somebody wants more of it.

import { mismatch, messageOf } from './errors.js';
import { checkType, nameOf } from './http.js';
import { readFile, writeFile } from './files.js';
import { openTemporary } from './temporary.js';

/** What is put aside at once. */
const PIECE_BYTES = 4 << 20;

/** @typedef {import('./sources.js').Access} Access */
/** @typedef {import('./sources.js').Source} Source */
/** @typedef {import('./read-ahead.js').Range} Range */

/**
 * @param {Response} response to a request for the file
 * @param {() => Promise<Response>} again asks for the whole file once more
 * @param {Access} access
 * @returns {Promise<Source>}
 */
export async function openStream(response, again, access) {
  const url = new URL(response.url);
  checkType(url, response);
  const source = new StreamSource(url, response, again, access);
  access.notify({
    code: 'no-ranges',
    message: `the server of ${source.name} gives whole files only: all of it is downloaded, and nothing of it is kept for next time`,
  });
  // Without a length the end must come before the file can be said to be opened.
  try {
    if (source.length === undefined) await source.readToEnd();
  } catch (error) {
    source.release();
    throw error;
  }
  return /** @type {Source} */ (source);
}

/** @type {(response: Response) => number | undefined} */
function lengthOf(response) {
  const text = response.headers.get('Content-Length');
  // Of a compressed answer this is the compressed length.
  const isCompressed = (response.headers.get('Content-Encoding') ?? 'identity') !== 'identity';
  return text === null || isCompressed ? undefined : Number(text);
}

/** @typedef {{ 'ETag': string | null, 'Last-Modified': string | null, length: number | undefined }} Told */

/** @type {(response: Response) => Told} */
function toldBy(response) {
  const { headers } = response;
  return { 'ETag': headers.get('ETag'), 'Last-Modified': headers.get('Last-Modified'), length: lengthOf(response) };
}

class StreamSource {
  #url;
  #again;
  #access;
  /** What the first answer said of the file. @type {Told} */
  #told;
  /** @type {ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | undefined} */
  #reader;
  /** Bytes of the stream that have come. */
  #position = 0;
  /** What of the stream is wanted; all of it until that is known. @type {Range[]} */
  #wanted = [{ offset: 0, length: Infinity }];
  #aside = new Aside();
  /** Reads one after the other: they share the stream. @type {Promise<unknown>} */
  #last = Promise.resolve();

  /**
   * @param {URL} url
   * @param {Response} response
   * @param {() => Promise<Response>} again
   * @param {Access} access
   */
  constructor(url, response, again, access) {
    this.#url = url;
    this.#again = again;
    this.#access = access;
    this.#told = toldBy(response);
    this.#reader = response.body?.getReader();
    this.name = nameOf(url);
    this.length = this.#told.length;
  }

  /**
   * @param {number} offset
   * @param {number} length
   * @returns {Promise<Uint8Array>}
   */
  read(offset, length) {
    const turn = this.#last.then(() => this.#read(offset, length));
    this.#last = turn.catch(() => {});
    return turn;
  }

  /** @param {Range[]} reads */
  expect(reads) {
    this.#wanted = [...reads].sort((a, b) => a.offset - b.offset);
  }

  /** Lets go of the stream and of what was put aside. A later read begins again. */
  release() {
    this.#reader?.cancel().catch(() => {});
    this.#reader = undefined;
    this.#aside.clear();
    this.#aside = new Aside();
  }

  /** Puts everything aside, and knows the length then. */
  async readToEnd() {
    while (await this.#advance()) { /* until the end */ }
    await this.#aside.flush();
    this.length = this.#position;
  }

  /**
   * @param {number} offset
   * @param {number} length
   * @returns {Promise<Uint8Array>}
   */
  async #read(offset, length) {
    this.#access.signal.throwIfAborted();
    if (!this.#reader && this.#aside.isEmpty()) await this.#restart();
    while (this.#position < offset + length) {
      if (!(await this.#advance())) {
        throw mismatch('truncated', `${this.#url}`, `${this.length} bytes`, `${this.#position} bytes`);
      }
    }
    await this.#aside.flush();
    const bytes = await this.#aside.read(offset, length);
    if (bytes) return bytes;
    // It passed before anybody said that it was wanted.
    await this.#restart();
    return this.#read(offset, length);
  }

  /** Takes the next chunk of the stream. False at its end. */
  async #advance() {
    let next;
    try {
      next = await this.#reader?.read();
    } catch (cause) {
      this.#access.signal.throwIfAborted();
      throw mismatch('truncated', `${this.#url}`, `${this.length ?? 'all'} bytes`, `${this.#position} bytes (${messageOf(cause)})`, cause);
    }
    if (!next?.value) return false;
    const begin = this.#position;
    this.#position += next.value.length;
    for (const { offset, length } of this.#wanted) {
      if (offset >= this.#position) break;
      const [from, to] = [Math.max(offset, begin), Math.min(offset + length, this.#position)];
      if (from < to) await this.#aside.add(from, next.value.subarray(from - begin, to - begin));
    }
    return true;
  }

  /** Asks for the file once more. */
  async #restart() {
    this.release();
    const response = await this.#again();
    const told = toldBy(response);
    for (const what of /** @type {const} */ (['ETag', 'Last-Modified', 'length'])) {
      const [before, now] = [this.#told[what], told[what]];
      // Not every answer tells a length.
      if (now === before || now === undefined || before === undefined) continue;
      await response.body?.cancel();
      throw mismatch('changed', `${this.#url} changed while it was read`, `${what} ${before}`, `${what} ${now}`);
    }
    this.#reader = response.body?.getReader();
    this.#position = 0;
  }
}

/** Bytes put aside, by their place in the file. */
class Aside {
  /** Finished pieces, in order. @type {{ offset: number, length: number, load: () => Promise<Blob> }[]} */
  #pieces = [];
  /** What comes next to each other, until it is a piece. @type {Uint8Array<ArrayBuffer>[]} */
  #chunks = [];
  #chunksOffset = 0;
  #chunksBytes = 0;
  /** @type {ReturnType<typeof openTemporary> | undefined} */
  #temporary;

  isEmpty() {
    return this.#pieces.length === 0 && this.#chunksBytes === 0;
  }

  /**
   * @param {number} offset
   * @param {Uint8Array<ArrayBuffer>} bytes
   */
  async add(offset, bytes) {
    if (offset !== this.#chunksOffset + this.#chunksBytes || this.#chunksBytes >= PIECE_BYTES) await this.flush();
    if (this.#chunksBytes === 0) this.#chunksOffset = offset;
    this.#chunks.push(bytes);
    this.#chunksBytes += bytes.length;
  }

  /** Makes a piece of what came since the last. */
  async flush() {
    if (this.#chunksBytes === 0) return;
    const [offset, length, blob] = [this.#chunksOffset, this.#chunksBytes, new Blob(this.#chunks)];
    [this.#chunks, this.#chunksBytes] = [[], 0];
    this.#pieces.push({ offset, length, load: await this.#store(offset, blob) });
  }

  /**
   * @param {number} offset
   * @param {Blob} blob
   * @returns {Promise<() => Promise<Blob>>}
   */
  async #store(offset, blob) {
    this.#temporary ??= openTemporary();
    const { folder } = (await this.#temporary) ?? {};
    if (!folder) return async () => blob;
    try {
      await writeFile(folder, `${offset}`, new Uint8Array(await blob.arrayBuffer()));
    } catch {
      // No room on disk: memory it is.
      return async () => blob;
    }
    return async () => /** @type {Blob} */ (await readFile(folder, `${offset}`)) ?? new Blob();
  }

  /**
   * @param {number} offset
   * @param {number} length
   * @returns {Promise<Uint8Array | undefined>} undefined if not all of it was put aside
   */
  async read(offset, length) {
    const bytes = new Uint8Array(length);
    let filled = 0;
    for (const piece of this.#pieces) {
      const [from, to] = [Math.max(offset, piece.offset), Math.min(offset + length, piece.offset + piece.length)];
      if (from >= to) continue;
      const part = (await piece.load()).slice(from - piece.offset, to - piece.offset);
      if (part.size !== to - from) return undefined;
      bytes.set(new Uint8Array(await part.arrayBuffer()), from - offset);
      filled += to - from;
    }
    return filled === length ? bytes : undefined;
  }

  clear() {
    this.#pieces = [];
    this.#chunks = [];
    // What cannot be removed now is an abandoned folder, which goes with the cache.
    this.#temporary?.then((temporary) => temporary?.remove()).catch(() => {});
  }
}
