// @ts-check
// Storage for the parts of a stream that are needed later, while the stream passes: in OPFS where
// the browser has it, otherwise in Blobs.

import { readFile, writeFile } from './files.js';
import { openTemporary } from './temporary.js';

/** Bytes of one piece, which is written at once. */
const PIECE_BYTES = 4 << 20;

/** Bytes put aside, addressed by their offset in the file. */
export class Aside {
  /**
   * Finished pieces, in order.
   * @type {{ offset: number, length: number, load: () => Promise<Blob> }[]}
   */
  #pieces = [];
  /** Consecutive chunks that are not yet a piece. @type {Uint8Array<ArrayBuffer>[]} */
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

  /** Turns the chunks since the last piece into a piece. */
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
    this.#temporary ??= openTemporary().catch(() => undefined);
    const { folder } = (await this.#temporary) ?? {};
    if (!folder) return async () => blob;
    try {
      await writeFile(folder, `${offset}`, new Uint8Array(await blob.arrayBuffer()));
    } catch {
      // No room on disk: keep the piece in memory.
      return async () => blob;
    }
    return async () => /** @type {Blob} */ (await readFile(folder, `${offset}`)) ?? new Blob();
  }

  /**
   * @param {number} offset
   * @param {number} length
   * @returns {Promise<Uint8Array<ArrayBuffer> | undefined>} undefined unless the whole range was
   * put aside
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
    // A folder that cannot be removed now counts as abandoned, and goes when the cache is cleared.
    this.#temporary?.then((temporary) => temporary?.remove()).catch(() => {});
  }
}
