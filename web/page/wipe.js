// @ts-check
// The wipe between an original, on the left, and the model's result: with the range below, and by
// dragging on the picture itself.

import { element } from './elements.js';

export class Wipe {
  #compare = element('compare');
  #range = element('wipe', HTMLInputElement);

  constructor() {
    this.#range.addEventListener('input', () => this.#move());
    this.#compare.addEventListener('pointerdown', (event) => this.#drag(event, true));
    this.#compare.addEventListener('pointermove', (event) => this.#drag(event, event.buttons > 0));
  }

  /** Shows the original alone. */
  showOriginal() {
    this.#set({ original: true, wiped: false });
    this.#at(100);
  }

  /**
   * Shows both, half of each, or as they were wiped before.
   * @param {number} [psnr] dB, if it is known yet
   * @param {{ left: string, right: string }} [names]
   */
  show(psnr, { left, right } = { left: 'Original', right: 'Decoded' }) {
    const wasWiped = this.#compare.classList.contains('is-wiped');
    element('wipe-left').textContent = left;
    element('wipe-right').textContent = right;
    this.#range.setAttribute('aria-label', `Wipe between ${left}, on the left, and ${right}`);
    element('psnr').textContent = '';
    if (psnr !== undefined) this.say(psnr);
    this.#set({ original: true, wiped: true });
    if (!wasWiped) this.#at(50);
  }

  /**
   * Shows the PSNR.
   * @param {number} psnr dB
   * @param {string} [of] words before it
   */
  say(psnr, of = '') {
    element('psnr').textContent = psnr === Infinity ? `${of}the same picture` : `${of}PSNR ${psnr.toFixed(1)} dB`;
  }

  /** Hides the original. */
  hide() {
    this.#set({ original: false, wiped: false });
  }

  /** @param {{ original: boolean, wiped: boolean }} shown */
  #set({ original, wiped }) {
    element('original').hidden = !original;
    element('divider').hidden = !wiped;
    element('wipe-row').hidden = !wiped;
    this.#compare.classList.toggle('is-wiped', wiped);
  }

  /** @param {number} percent */
  #at(percent) {
    this.#range.value = String(percent);
    this.#move();
  }

  #move() {
    this.#compare.style.setProperty('--wipe', `${this.#range.value}%`);
    this.#range.setAttribute('aria-valuetext', `${this.#range.value} % ${element('wipe-left').textContent?.toLowerCase()}`);
  }

  /**
   * @param {PointerEvent} event
   * @param {boolean} isDown
   */
  #drag(event, isDown) {
    if (!isDown || element('divider').hidden) return;
    const { left, width } = this.#compare.getBoundingClientRect();
    this.#compare.setPointerCapture(event.pointerId);
    this.#at((100 * (event.clientX - left)) / width);
  }
}
