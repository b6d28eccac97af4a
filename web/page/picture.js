// @ts-check
// The picture on the page. It comes as an ImageBitmap, so that no canvas here belongs to a GPU device: it stays whatever becomes of that, and repaints of the
// page ask nothing of it. Firefox 153 ends on repaints of such a canvas: tests/browser/upstream.

import { element } from './view.js';

export class Picture {
  #canvas = element('picture', HTMLCanvasElement);
  #context = this.#canvas.getContext('bitmaprenderer');
  /** Of the file that it was made of. */
  #name = '';

  /**
   * @param {ImageBitmap} bitmap is taken
   * @param {string} name of its latents
   */
  show(bitmap, name) {
    const { width, height } = bitmap;
    Object.assign(this.#canvas, { width, height });
    this.#context?.transferFromImageBitmap(bitmap);
    this.#name = name;
    this.#canvas.setAttribute('aria-label', `The picture of ${name}, ${width} by ${height} pixels`);
    element('download', HTMLButtonElement).disabled = false;
  }

  /** @returns {Promise<File>} a PNG of it */
  async file() {
    const { width, height } = this.#canvas;
    /** @type {Blob | null} */
    const blob = await new Promise((resolve) => this.#canvas.toBlob(resolve, 'image/png'));
    if (!blob) throw new Error(`the browser makes no PNG of a picture of ${width}x${height} pixels`);
    return new File([blob], `${this.#name.replace(/\.[^.]*$/, '') || 'picture'}.png`, { type: blob.type });
  }
}
