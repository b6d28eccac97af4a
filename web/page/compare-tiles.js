// @ts-check
// Comparison of the picture decoded whole and in tiles: one wiped over the other, or their
// difference.

import { element, fillParts } from './elements.js';
import { formatBytes, formatCount, formatSeconds } from './format.js';

/** @typedef {import('./news.js').Comparison} Comparison */

export class CompareTiles {
  #picture;
  /** @type {{ name: string, comparison: Comparison } | undefined} */
  #shown;

  /**
   * @param {import('./picture.js').Picture} picture
   * @param {string | undefined} text tiling from a link, such as blend or blend,256
   * @param {(tiles: import('./news.js').Tiles, text: string) => void} onCompare listener for the
   * wanted tiles, and their text in a link
   */
  constructor(picture, text, onCompare) {
    this.#picture = picture;
    const [, kind, side = ''] = /^(blend|cosine|estimate)(?:,(\d+))?$/.exec(text ?? '') ?? [];
    if (kind) {
      element('advanced', HTMLDetailsElement).open = true;
      element('tiles-kind', HTMLSelectElement).value = kind;
      element('tiles-size', HTMLInputElement).value = side;
    }
    element('tiles-form').addEventListener('submit', (event) => {
      event.preventDefault();
      const size = Number(element('tiles-size', HTMLInputElement).value);
      const tiling = /** @type {any} */ (element('tiles-kind', HTMLSelectElement).value);
      onCompare({ tiling, tileSize: size > 0 ? size : undefined }, size > 0 ? `${tiling},${size}` : tiling);
    });
    element('tiles-difference').addEventListener('change', () => this.#draw());
  }

  /**
   * @param {string} name of the latents
   * @param {Comparison} comparison a comparison whose bitmaps move here
   */
  show(name, comparison) {
    this.close();
    this.#shown = { name, comparison };
    const { tiling, tileSize, count, whole, parts } = comparison;
    const figures = (/** @type {Comparison['whole']} */ { seconds, peak }) => `${formatSeconds(seconds)}, ${formatBytes(peak)}`;
    const side = tileSize === undefined ? '' : ` of ${tileSize} pixels`;
    fillParts('tiles-parts', [
      ['Exact', figures(whole)],
      [`${tiling}, ${formatCount(count, 'tile')}${side}`, figures(parts)],
    ]);
    element('tiles-shown').hidden = false;
    this.#draw();
  }

  /** Ends the comparison, because the page shows something else. */
  close() {
    if (!this.#shown) return;
    const { exact, tiled, difference } = this.#shown.comparison;
    for (const bitmap of [exact, tiled, difference]) bitmap.close();
    this.#shown = undefined;
    element('tiles-shown').hidden = true;
    element('tiles-difference', HTMLInputElement).checked = false;
  }

  async #draw() {
    if (!this.#shown) return;
    const shown = this.#shown;
    const { exact, tiled, difference, amplified, psnr, tiling } = shown.comparison;
    const isDifference = element('tiles-difference', HTMLInputElement).checked;
    // Canvases consume the bitmaps that they show.
    const [left, right] = await Promise.all([exact, isDifference ? difference : tiled].map((bitmap) => createImageBitmap(bitmap)));
    if (shown !== this.#shown || isDifference !== element('tiles-difference', HTMLInputElement).checked) {
      for (const bitmap of [left, right]) bitmap.close();
      return;
    }
    this.#picture.showPair(left, right, { name: shown.name, left: 'Exact', right: isDifference ? `Difference, ${amplified} times` : tiling, psnr });
  }
}
