// @ts-check
// Zoom of the picture by buttons, keys, wheel, double click and two fingers. A larger picture
// scrolls like anything on a page, and can be dragged.

import { element, setText } from './elements.js';

/** Largest zoom, and the step of buttons and keys: pixels of the screen for one of the picture. */
const MOST = 16;
const STEP = 2;

/** Wheel movement that doubles the picture, in pixels of scrolling. */
const WHEEL = 240;

/** Zoom from which pixels of the picture are shown as squares. */
const CLOSE = 3;

/**
 * A point of the screen that stays in place while zooming.
 * @typedef {{ x: number, y: number }} Point
 */

export class Zoom {
  #frame = element('frame');
  #compare = element('compare');
  #canvas = element('picture', HTMLCanvasElement);
  /**
   * Pixels of the screen for one of the picture; undefined to fit.
   * @type {number | undefined}
   */
  #scale;
  /** Last distance of two fingers. @type {number | undefined} */
  #apart;

  constructor() {
    const buttons = { 'zoom-out': () => this.#by(1 / STEP), 'zoom-fit': () => this.#to(undefined), 'zoom-one': () => this.#to(1), 'zoom-in': () => this.#by(STEP) };
    for (const [id, action] of Object.entries(buttons)) element(id).addEventListener('click', action);
    this.#frame.addEventListener('keydown', (event) => this.#key(event));
    this.#frame.addEventListener('wheel', (event) => this.#wheel(event), { passive: false });
    this.#frame.addEventListener('dblclick', (event) => this.#to(this.#scale === undefined ? Math.max(1, STEP * this.#shown) : undefined, pointOf(event)));
    this.#frame.addEventListener('pointermove', (event) => this.#drag(event));
    for (const type of /** @type {const} */ (['touchstart', 'touchmove', 'touchend'])) {
      this.#frame.addEventListener(type, (event) => this.#pinch(event), { passive: false });
    }
    // After another picture, or a resized window.
    new MutationObserver(() => this.#apply()).observe(this.#canvas, { attributeFilter: ['width', 'height'] });
    new ResizeObserver(() => this.#apply()).observe(this.#canvas);
  }

  /** The current zoom. */
  get #shown() {
    return (this.#canvas.getBoundingClientRect().width * devicePixelRatio) / this.#canvas.width || 1;
  }

  /**
   * @param {number} factor
   * @param {Point} [point]
   */
  #by(factor, point) {
    this.#to(this.#shown * factor, point);
  }

  /**
   * @param {number | undefined} scale undefined or a smaller scale than that: as it fits
   * @param {Point} [point] default: the middle
   */
  #to(scale, point = middleOf(this.#frame)) {
    const before = this.#compare.getBoundingClientRect();
    const [across, down] = [(point.x - before.left) / before.width, (point.y - before.top) / before.height];
    this.#scale = undefined;
    this.#apply();
    if (scale === undefined || (scale <= this.#shown && scale !== 1)) return;
    this.#scale = Math.min(scale, MOST);
    this.#apply();
    const after = this.#compare.getBoundingClientRect();
    this.#frame.scrollBy({ left: after.left + across * after.width - point.x, top: after.top + down * after.height - point.y, behavior: 'instant' });
  }

  #apply() {
    const scale = this.#scale;
    this.#frame.classList.toggle('is-zoomed', scale !== undefined);
    if (scale !== undefined) this.#compare.style.setProperty('--shown', `${(this.#canvas.width * scale) / devicePixelRatio}px`);
    const shown = this.#shown;
    this.#frame.classList.toggle('is-close', shown >= CLOSE);
    setText('zoom-value', `${Math.round(100 * shown)} %`);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.#frame) return;
    /** @type {Record<string, () => void>} */
    const keys = { '+': () => this.#by(STEP), '=': () => this.#by(STEP), '-': () => this.#by(1 / STEP), 0: () => this.#to(undefined), 1: () => this.#to(1) };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  /**
   * Zooms on a wheel with Ctrl, which browsers report for two fingers on a trackpad.
   * @param {WheelEvent} event
   */
  #wheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    this.#by(2 ** ((-event.deltaY * lines) / WHEEL), pointOf(event));
  }

  /**
   * Drags the picture, except by touch, which scrolls by itself, and except with an original, where
   * dragging moves the wipe.
   * @param {PointerEvent} event
   */
  #drag(event) {
    if (event.pointerType === 'touch' || event.buttons !== 1 || this.#compare.classList.contains('is-wiped')) return;
    this.#frame.scrollBy({ left: -event.movementX, top: -event.movementY, behavior: 'instant' });
  }

  /** @param {TouchEvent} event */
  #pinch(event) {
    const [one, two] = event.touches;
    if (!two) {
      this.#apart = undefined;
      return;
    }
    event.preventDefault();
    const apart = Math.hypot(one.clientX - two.clientX, one.clientY - two.clientY);
    if (this.#apart) this.#by(apart / this.#apart, { x: (one.clientX + two.clientX) / 2, y: (one.clientY + two.clientY) / 2 });
    this.#apart = apart;
  }
}

/** @param {MouseEvent} event @returns {Point} */
function pointOf({ clientX, clientY }) {
  return { x: clientX, y: clientY };
}

/** @param {Element} place @returns {Point} */
function middleOf(place) {
  const { left, top, width, height } = place.getBoundingClientRect();
  return { x: left + width / 2, y: top + height / 2 };
}
