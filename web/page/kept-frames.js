// @ts-check
// The frames of a clip, kept as PNG files, which browsers store in memory or on disk. Only the few
// frames that are shown next exist as bitmaps, which take GPU memory.

/** Number of frames, and of originals, decoded ahead to bitmaps. */
const AHEAD = 4;

/** @typedef {{ blob: Blob, original?: Blob }} Frame */
/** @typedef {{ bitmap: ImageBitmap, original?: ImageBitmap }} Bitmaps */

export class KeptFrames {
  /** @type {Frame[]} */
  #frames = [];
  /** Bitmaps decoded ahead. @type {Map<number, Promise<Bitmaps>>} */
  #made = new Map();
  bytes = 0;

  get length() {
    return this.#frames.length;
  }

  /** The frames as PNG files. @returns {readonly Frame[]} */
  get files() {
    return this.#frames;
  }

  /** @param {Frame} frame */
  add(frame) {
    this.#frames.push(frame);
    this.bytes += frame.blob.size + (frame.original?.size ?? 0);
  }

  /**
   * Returns the bitmaps of a frame, which then belong to the caller.
   * @param {number} index
   * @returns {Promise<Bitmaps>}
   */
  take(index) {
    const bitmaps = this.#made.get(index) ?? bitmapsOf(this.#frames[index]);
    this.#made.delete(index);
    this.#lookAhead(index);
    return bitmaps;
  }

  clear() {
    this.#frames = [];
    this.bytes = 0;
    this.#lookAhead(0);
  }

  /** Decodes the frames after `index`, and frees other bitmaps. @param {number} index */
  #lookAhead(index) {
    const wanted = Array.from({ length: Math.min(AHEAD, this.length - 1) }, (_, step) => (index + step + 1) % this.length);
    for (const [other, made] of this.#made) {
      if (wanted.includes(other)) continue;
      this.#made.delete(other);
      made.then(close, () => {});
    }
    for (const next of wanted) {
      if (this.#made.has(next)) continue;
      const made = bitmapsOf(this.#frames[next]);
      // The caller of `take` gets the error.
      made.catch(() => {});
      this.#made.set(next, made);
    }
  }
}

/** @param {Frame} frame @returns {Promise<Bitmaps>} */
async function bitmapsOf({ blob, original }) {
  const [bitmap, other] = await Promise.all([createImageBitmap(blob), original && createImageBitmap(original)]);
  return { bitmap, original: other };
}

/** @param {Bitmaps} bitmaps */
export function close({ bitmap, original }) {
  bitmap.close();
  original?.close();
}
