// @ts-check
// The picture on the page, and the original of one that was encoded. They come as ImageBitmaps, so
// that no canvas here belongs to a GPU device: they stay whatever becomes of that, and repaints of
// the page ask nothing of it. Firefox 153 ends on repaints of such a canvas:
// tests/browser/upstream.

import { element } from './elements.js';
import { Wipe } from './wipe.js';

export class Picture {
  #shown = new Shown('picture');
  #original = new Shown('original');
  #wipe = new Wipe();
  /** Of the file that it was made of. */
  #name = '';
  /** Whether that was a picture, too. */
  #isRoundTrip = false;
  /** What of a pair is shown on the right. @type {string | undefined} */
  #right;

  /**
   * What will be encoded, in place of what was there.
   * @param {ImageBitmap} bitmap is taken
   * @param {string} name
   */
  showOriginal(bitmap, name) {
    this.#shown.clear(bitmap);
    this.#original.show(bitmap, `The original of ${name}`);
    this.#wipe.showOriginal();
    canTake(false);
  }

  /**
   * What was decoded.
   * @param {ImageBitmap} bitmap is taken
   * @param {string} name of what it was made of
   * @param {number} [psnr] dB, if that is the original that is shown
   */
  show(bitmap, name, psnr) {
    this.#begin(name, psnr !== undefined);
    this.#shown.show(bitmap, this.#label);
    if (psnr === undefined) this.#wipe.hide();
    else this.#wipe.show(psnr);
    canTake(true);
  }

  /**
   * Two pictures of the same latents, one wiped over the other.
   * @param {ImageBitmap} left is taken
   * @param {ImageBitmap} right is taken
   * @param {{ name: string, left: string, right: string, psnr: number }} words `name`: of the
   * latents; `psnr` in dB
   */
  showPair(left, right, words) {
    this.#begin(words.name, false);
    this.#right = words.right;
    this.#shown.show(right, `${words.right}: ${words.name}`);
    this.#original.show(left, `${words.left}: ${words.name}`);
    this.#wipe.show(words.psnr, words);
    canTake(true);
  }

  /**
   * A clip comes, frame by frame.
   * @param {string} name of what it was made of
   * @param {boolean} isRoundTrip whether there is an original of each
   */
  showClip(name, isRoundTrip) {
    this.#begin(name, isRoundTrip);
    if (isRoundTrip) this.#wipe.show();
    else this.#wipe.hide();
    // There is none yet.
    canTake(false);
  }

  /** A frame of it. @param {import('./kept-frames.js').Bitmaps} bitmaps are taken */
  showFrame({ bitmap, original }) {
    this.#shown.show(bitmap, this.#label);
    if (original) this.#original.show(original, `The original of ${this.#name}`);
    canTake(true);
  }

  /** How alike the frames so far are to their originals. @param {number} psnr dB */
  sayLikeness(psnr) {
    this.#wipe.say(psnr, 'all frames together: ');
  }

  get #label() {
    return this.#isRoundTrip ? `What the model made of ${this.#name}` : `The picture of ${this.#name}`;
  }

  /**
   * @param {string} name
   * @param {boolean} isRoundTrip
   */
  #begin(name, isRoundTrip) {
    this.#isRoundTrip = isRoundTrip;
    this.#name = name;
    this.#right = undefined;
  }

  /** @returns {Promise<File>} a PNG of it */
  async file() {
    const name = this.#name.replace(/\.[^.]*$/, '') || 'picture';
    // Not what the original may be called.
    const what = this.#isRoundTrip ? 'decoded' : this.#right?.split(',')[0].toLowerCase();
    return new File([await this.#shown.png()], what ? `${name}-${what}.png` : `${name}.png`, { type: 'image/png' });
  }
}

/** Whether there is a picture to save or to copy. @param {boolean} isThere */
function canTake(isThere) {
  for (const id of ['download', 'copy-picture']) element(id, HTMLButtonElement).disabled = !isThere;
}

/** A canvas that shows a bitmap. */
class Shown {
  #canvas;
  #context;

  /** @param {string} id */
  constructor(id) {
    this.#canvas = element(id, HTMLCanvasElement);
    this.#context = this.#canvas.getContext('bitmaprenderer');
  }

  /**
   * @param {ImageBitmap} bitmap is taken
   * @param {string} label what it is
   */
  show(bitmap, label) {
    const { width, height } = bitmap;
    document.body.dataset.picture = 'there';
    // That alone makes a canvas blank: a clip would flicker.
    if (this.#canvas.width !== width || this.#canvas.height !== height) Object.assign(this.#canvas, { width, height });
    this.#context?.transferFromImageBitmap(bitmap);
    this.#canvas.setAttribute('aria-label', `${label}, ${width} by ${height} pixels`);
  }

  /** Leaves nothing, of this size. @param {{ width: number, height: number }} size */
  clear({ width, height }) {
    this.#context?.transferFromImageBitmap(null);
    Object.assign(this.#canvas, { width, height });
    this.#canvas.setAttribute('aria-label', 'No picture yet');
  }

  /** @returns {Promise<Blob>} */
  async png() {
    const { width, height } = this.#canvas;
    /** @type {Blob | null} */
    const blob = await new Promise((resolve) => this.#canvas.toBlob(resolve, 'image/png'));
    if (!blob) throw new Error(`the browser makes no PNG of a picture of ${width}x${height} pixels`);
    return blob;
  }
}
