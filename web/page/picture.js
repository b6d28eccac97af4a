// @ts-check
// The picture on the page, and the original of an encoded one. They are shown from ImageBitmaps, so
// that no canvas of the page belongs to a GPU device: they outlive the device, and repaints do not
// use it. Firefox 153 crashes on repaints of canvases of a device (tests/browser/upstream).

import { element, setText } from './elements.js';
import { Wipe } from './wipe.js';

/** Description of an empty canvas for screen readers. */
const NO_PICTURE = 'No picture yet';

/** Kinds of devices that make pictures, in words. */
const DEVICES = {
  gpu: 'on your GPU',
  cpu: 'by a software GPU driver',
  host: 'on the CPU, because WebGPU is not available here',
};

export class Picture {
  #shown = new Shown('picture');
  #preview = element('preview', HTMLCanvasElement);
  #original = new Shown('original');
  #wipe = new Wipe();
  /** Name of the input file. */
  #name = '';
  /** True if the input was a picture, too. */
  #isRoundTrip = false;
  /** Label of the right side of a pair. @type {string | undefined} */
  #right;
  /** Device that makes the pictures, in words. */
  #device = '';
  /** Number of things shown so far, previews included. */
  shown = 0;

  /** Takes the device for captions. @param {import('./news.js').ModelInfo} info */
  made({ adapter }) {
    this.#device = DEVICES[adapter.limits.kind];
  }

  /**
   * Shows a preview of latents, enlarged, in the place of their picture.
   * @param {ImageBitmap} bitmap a pixel for each latent, moved into the canvas
   * @param {import('./news.js').Size} size of the picture
   */
  showPreview(bitmap, size) {
    const { width, height } = bitmap;
    this.#begin('', false);
    this.#shown.clear(size, `Preview of the latents, ${width} by ${height}: no picture yet`);
    this.#wipe.hide();
    canTake(false);
    Object.assign(this.#preview, { width, height, hidden: false });
    this.#preview.getContext('bitmaprenderer')?.transferFromImageBitmap(bitmap);
    this.#caption(`Preview: the ${width} × ${height} latents as colours, by a linear map. The decode sharpens it.`);
  }

  /** Removes a preview, because its latents are closed. */
  endPreview() {
    if (!this.#preview.hidden) {
      this.#caption('');
      this.#shown.describe(NO_PICTURE);
    }
    this.#preview.hidden = true;
    this.shown += 1;
  }

  /** Says what is shown. @param {string} words */
  #caption(words) {
    setText('caption', words);
  }

  /**
   * Replaces the picture by the part that will be encoded.
   * @param {ImageBitmap} bitmap moved into the canvas
   * @param {string} name
   */
  showOriginal(bitmap, name) {
    this.#begin(name, true);
    this.#shown.clear(bitmap);
    this.#caption('Original, not encoded yet');
    this.#original.show(bitmap, `The original of ${name}`);
    this.#wipe.showOriginal();
    canTake(false);
  }

  /**
   * Shows a decoded picture.
   * @param {ImageBitmap} bitmap moved into the canvas
   * @param {string} name of the input
   * @param {number} [psnr] dB, if the shown original belongs to it
   */
  show(bitmap, name, psnr) {
    this.#begin(name, psnr !== undefined);
    this.#shown.show(bitmap, this.#label);
    this.#caption(psnr === undefined ? `Decoded ${this.#device}` : `Left: the original. Right: encoded and decoded ${this.#device}`);
    if (psnr === undefined) this.#wipe.hide();
    else this.#wipe.show(psnr);
    canTake(true);
  }

  /**
   * Shows two pictures of the same latents, one wiped over the other.
   * @param {ImageBitmap} left moved into the canvas
   * @param {ImageBitmap} right moved into the canvas
   * @param {{ name: string, left: string, right: string, psnr: number }} words `name`: of the
   * latents; `psnr` in dB
   */
  showPair(left, right, words) {
    this.#begin(words.name, false);
    this.#right = words.right;
    this.#caption(`${words.left}, and ${words.right}`);
    this.#shown.show(right, `${words.right}: ${words.name}`);
    this.#original.show(left, `${words.left}: ${words.name}`);
    this.#wipe.show(words.psnr, words);
    canTake(true);
  }

  /**
   * Prepares for the frames of a clip.
   * @param {string} name of the input
   * @param {boolean} isRoundTrip true if every frame has an original
   */
  showClip(name, isRoundTrip) {
    this.#begin(name, isRoundTrip);
    if (isRoundTrip) this.#wipe.show();
    else this.#wipe.hide();
    // There is no frame yet.
    canTake(false);
    this.#caption(`Frames ${isRoundTrip ? 'encoded and decoded' : 'decoded'} ${this.#device}`);
  }

  /**
   * Shows a frame of the clip.
   * @param {import('./kept-frames.js').Bitmaps} bitmaps moved into the canvases
   */
  showFrame({ bitmap, original }) {
    this.#shown.show(bitmap, this.#label);
    if (original) this.#original.show(original, `The original of ${this.#name}`);
    canTake(true);
  }

  /** Shows the PSNR of the frames so far. @param {number} psnr dB */
  sayLikeness(psnr) {
    this.#wipe.say(psnr, 'all frames together: ');
  }

  get #label() {
    return this.#isRoundTrip ? `The decoded ${this.#name}` : `The picture of ${this.#name}`;
  }

  /**
   * @param {string} name
   * @param {boolean} isRoundTrip
   */
  #begin(name, isRoundTrip) {
    this.#isRoundTrip = isRoundTrip;
    this.#name = name;
    this.#right = undefined;
    this.#preview.hidden = true;
    this.shown += 1;
  }

  /** @returns {Promise<File>} the picture as a PNG file */
  async file() {
    const name = this.#name.replace(/\.[^.]*$/, '') || 'picture';
    // A name that differs from the original's.
    const what = this.#isRoundTrip ? 'decoded' : this.#right?.split(',')[0].toLowerCase();
    return new File([await this.#shown.png()], what ? `${name}-${what}.png` : `${name}.png`, { type: 'image/png' });
  }
}

/** Enables the buttons that save and copy the picture. @param {boolean} isThere */
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
   * @param {ImageBitmap} bitmap moved into the canvas
   * @param {string} label description for screen readers
   */
  show(bitmap, label) {
    const { width, height } = bitmap;
    document.body.dataset.picture = 'there';
    // Setting the size blanks the canvas even if it stays the same: a clip would flicker.
    if (this.#canvas.width !== width || this.#canvas.height !== height) Object.assign(this.#canvas, { width, height });
    this.#context?.transferFromImageBitmap(bitmap);
    this.describe(`${label}, ${width} by ${height} pixels`);
  }

  /**
   * Blanks the canvas, and sets its size.
   * @param {{ width: number, height: number }} size
   * @param {string} [label] description for screen readers
   */
  clear({ width, height }, label = NO_PICTURE) {
    this.#context?.transferFromImageBitmap(null);
    if (this.#canvas.width !== width || this.#canvas.height !== height) Object.assign(this.#canvas, { width, height });
    delete document.body.dataset.picture;
    this.describe(label);
  }

  /** @param {string} label description for screen readers */
  describe(label) {
    this.#canvas.setAttribute('aria-label', label);
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
