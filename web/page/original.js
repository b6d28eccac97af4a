// @ts-check
// A picture that will be encoded: as the package takes it, so that what comes back can be compared with it.

import { WgvaeError } from '../src/index.js';
import { middle } from './crop.js';

/** Not changed by a colour profile, nor by transparency. @type {ImageBitmapOptions} */
const AS_IT_IS = { colorSpaceConversion: 'none', premultiplyAlpha: 'none' };

export class Original {
  #bitmap;

  /** @param {ImageBitmap} bitmap */
  constructor(bitmap) {
    this.#bitmap = bitmap;
  }

  /** @param {File} file */
  static async open(file) {
    try {
      return new Original(await createImageBitmap(file, AS_IT_IS));
    } catch (cause) {
      throw new WgvaeError('format', `${file.name}: expected a picture that this browser shows (${cause instanceof Error ? cause.message : cause})`, { cause });
    }
  }

  get size() {
    const { width, height } = this.#bitmap;
    return { width, height };
  }

  /** What of it is encoded, as a bitmap of its own. @param {number} factor pixels */
  bitmap(factor) {
    const { x, y, width, height } = middle(this.size, factor);
    return createImageBitmap(this.#bitmap, x, y, width, height);
  }

  /** The same as pixels. @param {number} factor */
  pixels(factor) {
    const { x, y, width, height } = middle(this.size, factor);
    const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
    if (!context) throw new WgvaeError('canvas', 'the browser has no canvas to read the picture from');
    context.drawImage(this.#bitmap, -x, -y);
    return context.getImageData(0, 0, width, height);
  }

  close() {
    this.#bitmap.close();
  }
}
