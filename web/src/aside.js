// @ts-check
// What of a stream is wanted later, put aside while it passes: in OPFS where the browser has one
// and in Blobs where not.

import { readFile, writeFile } from './files.js';
import { openTemporary } from './temporary.js';

/** What is put aside at once. */
const PIECE_BYTES = 4 << 20;

/** Bytes put aside, by their place in the file. */
export class Aside {
  /**
   * Finished pieces, in order. @type {{ offset: number, length: number, load: () => Promise<Blob>
   * }[]}
   */
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
   * @returns {Promise<Uint8Array<ArrayBuffer> | undefined>} undefined if not all of it was put
   * aside
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
