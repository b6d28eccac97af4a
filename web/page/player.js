// @ts-check
// The player: shows frames of a clip as they arrive, and plays them once all are there. It has the
// controls, keys and clock; kept-frames.js stores the frames.

import { element, setText } from './elements.js';
import { formatBytes, formatCount } from './format.js';
import { close, KeptFrames } from './kept-frames.js';

/** Default frames per second: the rate that Wan is trained on. */
const USUAL_RATE = 16;

/** Selector of elements in which keys have another meaning. */
const TYPED = 'input:not([type="range"]):not([type="checkbox"]), select, textarea';

export class Player {
  #picture;
  #fail;
  #frames = new KeptFrames();
  #at = element('player-at', HTMLInputElement);
  #rate = element('player-rate', HTMLInputElement);
  #loop = element('player-loop', HTMLInputElement);
  /** Index of the shown frame, from 0. */
  #index = 0;
  /** Number of frames that the clip will have. */
  #count = 0;
  /** True if more frames will arrive. */
  #isComing = false;
  /** True once the user has used the controls: nothing moves by itself any more. */
  #isTouched = false;
  /**
   * While playing, the frame that was shown at a time, milliseconds.
   * @type {{ index: number, time: number } | undefined}
   */
  #clock;
  /** Counts requests to show a frame: a frame that is ready after a newer request is dropped. */
  #turn = 0;
  #isShowing = false;
  name = '';
  isRoundTrip = false;

  /**
   * @param {import('./picture.js').Picture} picture shows the frames
   * @param {(code: string, message: string) => void} fail listener for frames that cannot be shown
   */
  constructor(picture, fail) {
    this.#picture = picture;
    this.#fail = fail;
    this.#at.addEventListener('input', () => this.#go(Number(this.#at.value)));
    this.#rate.addEventListener('change', () => this.#restart());
    element('player-play').addEventListener('click', () => this.#toggle());
    element('player-back').addEventListener('click', () => this.#step(-1));
    element('player-next').addEventListener('click', () => this.#step(1));
    addEventListener('keydown', (event) => this.#key(event));
  }

  get isOpen() {
    return !element('player').hidden;
  }

  /** The frames as PNG files. */
  get files() {
    return this.#frames.files;
  }

  /** Frames per second. */
  get rate() {
    const rate = Number(this.#rate.value);
    return rate > 0 && Number.isFinite(rate) ? rate : USUAL_RATE;
  }

  /**
   * Begins another clip, without frames yet.
   * @param {Extract<import('./news.js').News, { type: 'clip' }>} clip
   */
  open({ name, count, rate, isRoundTrip }) {
    this.close();
    Object.assign(this, { name, isRoundTrip });
    [this.#count, this.#index, this.#isComing, this.#isTouched] = [count, 0, true, false];
    this.#rate.value = String(Number((rate || USUAL_RATE).toFixed(2)));
    element('player').hidden = false;
    this.#tell();
  }

  /** Adds the next frame. @param {import('./kept-frames.js').Frame} frame */
  add(frame) {
    this.#frames.add(frame);
    const newest = this.#frames.length - 1;
    // Shows the newest frame until the user takes over; the first one if the user prefers reduced
    // motion.
    if (newest === 0 || (!this.#isTouched && !isStill())) this.#show(newest);
    else this.#tell();
  }

  /**
   * Ends the arrival of frames. Plays them if all are there, unless the user has touched the
   * controls or prefers reduced motion.
   * @param {boolean} isWhole
   */
  finish(isWhole) {
    if (!this.#isComing) return;
    this.#isComing = false;
    if (isWhole && !this.#isTouched && !isStill() && this.#frames.length > 1) {
      this.#show(0);
      this.#play();
    }
    this.#tell();
  }

  close() {
    if (!this.isOpen) return;
    this.#pause();
    this.#turn += 1;
    this.#isComing = false;
    this.#frames.clear();
    element('player').hidden = true;
  }

  /** Returns the shown frame as a PNG file. */
  file() {
    return new File([this.#frames.files[this.#index].blob], `${this.fileName(this.#index)}.png`, { type: 'image/png' });
  }

  /**
   * Returns the file name of a frame, or of all frames, without its ending.
   * @param {number} [index] from 0
   */
  fileName(index) {
    const name = this.name.replace(/\.[^.]*$/, '') || 'clip';
    return `${name}${this.isRoundTrip ? '-decoded' : ''}${index === undefined ? '' : `-${String(index + 1).padStart(5, '0')}`}`;
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const target = event.target instanceof Element ? event.target : document.body;
    if (!this.isOpen || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || target.matches(TYPED)) return;
    // There the keys scroll.
    if (target.closest('.scroll, pre')) return;
    // A slider uses the arrow, Home and End keys itself, a button the space bar.
    const [isRange, isPressed] = [target.matches('input[type="range"]'), target.matches('button, a, summary, input[type="checkbox"], label')];
    const last = this.#frames.length - 1;
    /** @type {Record<string, () => void>} */
    const keys = {
      k: () => this.#toggle(), ',': () => this.#step(-1), '.': () => this.#step(1),
      ...(!isPressed && { ' ': () => this.#toggle() }),
      ...(!isRange && { ArrowLeft: () => this.#step(-1), ArrowRight: () => this.#step(1), Home: () => this.#go(0, true), End: () => this.#go(last, true) }),
    };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  #toggle() {
    this.#isTouched = true;
    if (this.#clock) {
      this.#pause();
      this.#say();
      return;
    }
    if (this.#index === this.#frames.length - 1 && !this.#isComing) this.#show(0);
    this.#play();
  }

  #play() {
    this.#clock = { index: this.#index, time: performance.now() };
    setText('player-play', 'Pause');
    requestAnimationFrame(() => this.#tick());
  }

  #pause() {
    this.#clock = undefined;
    setText('player-play', 'Play');
    this.#tell();
  }

  /** Restarts the clock at the current frame, for another rate. */
  #restart() {
    if (this.#clock) this.#clock = { index: this.#index, time: performance.now() };
    this.#tell();
  }

  #tick() {
    if (!this.#clock) return;
    requestAnimationFrame(() => this.#tick());
    // Does not request a frame while the last one is still being shown.
    if (this.#isShowing) return;
    const { index, time } = this.#clock;
    const last = this.#frames.length - 1;
    let next = index + Math.floor(((performance.now() - time) * this.rate) / 1000);
    if (next > last) {
      if (!this.#isComing && !this.#loop.checked) {
        this.#show(last);
        this.#pause();
        return;
      }
      next = this.#isComing ? last : 0;
      this.#clock = { index: next, time: performance.now() };
    }
    if (next !== this.#index) this.#show(next);
  }

  /** @param {number} frames */
  #step(frames) {
    this.#go(this.#index + frames, true);
  }

  /**
   * Goes to a frame at the user's request.
   * @param {number} index
   * @param {boolean} [isSaid] true to announce it to screen readers; a slider announces itself
   */
  #go(index, isSaid = false) {
    this.#isTouched = true;
    this.#pause();
    this.#show(Math.min(Math.max(0, index), this.#frames.length - 1));
    if (isSaid) this.#say();
  }

  /** @param {number} index */
  async #show(index) {
    if (index < 0) return;
    this.#index = index;
    this.#tell();
    const turn = (this.#turn += 1);
    this.#isShowing = true;
    try {
      const bitmaps = await this.#frames.take(index);
      if (turn === this.#turn) this.#picture.showFrame(bitmaps);
      else close(bitmaps);
    } catch (error) {
      if (turn !== this.#turn) return;
      this.#pause();
      this.#fail('canvas', `the browser makes no picture of frame ${index + 1}: ${error instanceof Error ? error.message : error}`);
    } finally {
      if (turn === this.#turn) this.#isShowing = false;
    }
  }

  /** Updates the texts. */
  #tell() {
    const { length, bytes } = this.#frames;
    this.#at.max = String(Math.max(0, length - 1));
    this.#at.value = String(this.#index);
    // A screen reader would read every frame aloud.
    if (!this.#clock) this.#at.setAttribute('aria-valuetext', this.#where());
    setText('player-time', length > 0 ? `${this.#where()}, ${seconds(this.#index, this.rate)} of ${seconds(this.#total, this.rate)}` : 'no frames yet');
    const rest = this.#isComing && length < this.#count ? `, of ${this.#count} expected` : '';
    setText('player-kept', `${formatCount(length, 'frame')} kept as PNG${rest}: ${formatBytes(bytes)}.`);
  }

  #where() {
    return `frame ${this.#index + 1} of ${this.#total}`;
  }

  /** Number of frames that there are, or will be. */
  get #total() {
    return this.#isComing ? this.#count : this.#frames.length;
  }

  /** Announces the frame to screen readers. */
  #say() {
    setText('player-said', this.#where());
  }
}

/**
 * @param {number} frames
 * @param {number} rate
 */
function seconds(frames, rate) {
  return `${(frames / rate).toFixed(2)} s`;
}

/** True if the user prefers reduced motion. */
function isStill() {
  return matchMedia('(prefers-reduced-motion: reduce)').matches;
}
