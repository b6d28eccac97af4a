// @ts-check
// Pictures of a clip, in groups of as many as one frame of latents stands for, and the padding at
// the end of a clip whose last group is not full.

import { missingFrames, mostMissing } from './clip-lengths.js';
import { mismatch } from './errors.js';
import { openImages } from './images.js';

/** @typedef {import('../pkg/wgvae.js').Images} Images */

/**
 * Frames to encode together, and how many of them are padding.
 * @typedef {{ images: Images, frames: number, added: number }} Part
 */

export class ClipPictures {
  #wasm;
  #access;
  #factor;
  #times;
  #pad;
  #request;
  #values;
  /** The last pictures: as many as padding may need, and one more. @type {Images[]} */
  #last = [];
  /** The next picture, read ahead. @type {Images | undefined} */
  #ahead;
  /** Frames to add after the last picture, once that has come. @type {Images[] | undefined} */
  #padding;
  #read = 0;

  /**
   * @param {import('./wasm.js').Wasm} wasm
   * @param {import('./iterate.js').Values} values
   * @param {import('./sources.js').Access} access
   * @param {object} options
   * @param {number} options.factor pixels, as in `openImages`
   * @param {import('./clip-lengths.js').Times} options.times
   * @param {import('./index.js').Pad | undefined} options.pad
   * @param {import('./fit.js').Request} options.request for another size of all pictures
   */
  constructor(wasm, values, access, { factor, times, pad, request }) {
    this.#wasm = wasm;
    this.#access = access;
    this.#factor = factor;
    this.#times = times;
    this.#pad = pad;
    this.#request = request;
    if (values.count !== undefined && !pad) checkCount(values.count, times);
    this.#values = values;
  }

  /** Returns the cropped columns and rows of the first picture. @returns {Promise<number[]>} */
  async size() {
    this.#ahead ??= await this.#open();
    if (!this.#ahead) throw mismatch('input', 'frames of the clip', 'at least one', 'none');
    return [...this.#ahead.size()];
  }

  /**
   * Returns the next `count` frames; undefined after the last.
   * @param {number} count
   * @returns {Promise<Part | undefined>}
   */
  async next(count) {
    const part = new this.#wasm.Frames();
    let frames = 0;
    let added = 0;
    try {
      for (; !this.#padding && frames < count; frames += 1) {
        const images = this.#ahead ?? (await this.#open());
        this.#ahead = undefined;
        if (!images) {
          this.#padding = this.#ending();
          break;
        }
        this.#add(part, images);
      }
      const padding = this.#padding?.splice(0, count - frames) ?? [];
      added = padding.length;
      for (const images of padding) part.add(images);
    } catch (error) {
      part.free();
      throw error;
    }
    if (frames + added > 0) return { images: part.finish(), frames, added };
    part.free();
    return undefined;
  }

  /** Returns the caller's next picture. */
  async #open() {
    const { done, value } = await this.#values.next(this.#access.signal);
    if (done) return undefined;
    this.#read += 1;
    return openImages(this.#wasm, value, this.#access, { pixels_per_latent: this.#factor, in_channels: 3 }, this.#request);
  }

  /**
   * @param {import('../pkg/wgvae.js').Frames} part
   * @param {Images} images moved into the part
   */
  #add(part, images) {
    this.#last.push(images);
    // Before any of it is copied: the module's error does not tell the frame's number.
    const [[width, height], [columns, rows]] = [this.#last[0].size(), images.size()];
    if (width !== columns || height !== rows) {
      throw mismatch('input', `frame ${this.#read} of the clip`, `${width}x${height} pixels, as those before`, `${columns}x${rows}`);
    }
    part.add(images);
    while (this.#last.length > (this.#pad === 'mirror' ? mostMissing(this.#times) + 1 : 1)) this.#last.shift()?.free();
  }

  /** Returns the padding, as `wgvae encode --pad` makes it. */
  #ending() {
    if (!this.#pad) checkCount(this.#read, this.#times);
    const added = missingFrames(this.#times, this.#read);
    const before = this.#last.slice(0, -1).reverse();
    return before.length >= added ? before.slice(0, added) : Array(added).fill(this.#last.at(-1));
  }

  async free() {
    this.#ahead?.free();
    this.#last.forEach((images) => images.free());
    [this.#ahead, this.#last] = [undefined, []];
    await this.#values.free();
  }
}

/**
 * Throws unless a clip can have so many frames.
 * @param {number} frames
 * @param {import('./clip-lengths.js').Times} times
 */
function checkCount(frames, times) {
  if (frames === 0) throw mismatch('input', 'frames of the clip', 'at least one', 'none');
  const missing = missingFrames(times, frames);
  if (missing === 0) return;
  throw mismatch('input', 'frames of the clip', `as many as latents have, such as ${frames + missing} (pad: 'repeat' or 'mirror' adds ${missing})`, `${frames}`);
}
