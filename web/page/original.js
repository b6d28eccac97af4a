// @ts-check
// A picture that will be encoded: as the package takes it, so that what comes back can be compared with it.

import { WgvaeError } from '../src/index.js';

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

  /**
   * What of it is encoded: the middle, with sides that are multiples of `factor`.
   * @param {number} factor pixels
   */
  part(factor) {
    const { width, height } = this.#bitmap;
    const [columns, rows] = [width, height].map((side) => side - (side % factor));
    if (columns > 0 && rows > 0) return { x: (width >> 1) - (columns >> 1), y: (height >> 1) - (rows >> 1), width: columns, height: rows };
    throw new WgvaeError('input', `this picture is too small for the model: expected at least ${factor}x${factor} pixels, found ${width}x${height}`);
  }

  /** That, as a bitmap of its own. @param {number} factor */
  bitmap(factor) {
    const { x, y, width, height } = this.part(factor);
    return createImageBitmap(this.#bitmap, x, y, width, height);
  }

  /** Its pixels. @param {number} factor */
  pixels(factor) {
    const { x, y, width, height } = this.part(factor);
    const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
    if (!context) throw new WgvaeError('canvas', 'the browser has no canvas to read the picture from');
    context.drawImage(this.#bitmap, -x, -y);
    return context.getImageData(0, 0, width, height).data;
  }

  close() {
    this.#bitmap.close();
  }
}
