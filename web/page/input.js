// @ts-check
// What was chosen to be decoded, or to be encoded and decoded again: what it is, and how large.

import { nameOf } from '../src/answers.js';
import { WgvaeError } from '../src/worker.js';
import { ask } from './ask.js';
import { middle } from './crop.js';
import { tell } from './tell.js';

/** @typedef {import('./news.js').Decoder} Decoder */
/** @typedef {import('./news.js').Vae} Vae */

/**
 * So many of a video's frames, or of files, are taken: what is made of them is kept until something
 * else is shown.
 */
const MOST_FRAMES = 241;

export class Input {
  #choice;
  /** Where it is read from, once it is there. @type {File[] | undefined} */
  #files;
  /**
   * Latents of pictures or of a clip, a picture, or pictures of a clip. @type {'latents' | 'clip' |
   * 'picture' | 'footage' | undefined}
   */
  kind;
  /** Of latents. @type {number[] | undefined} */
  #shape;
  /** How large a picture is. @type {import('./news.js').Size | undefined} */
  #size;
  /** @type {import('./news.js').Footage | undefined} */
  footage;
  /**
   * The one identification that is under way or done. @type {{ signal: AbortSignal, done:
   * Promise<void> } | undefined}
   */
  #identified;

  /** @param {import('./news.js').InputChoice} choice */
  constructor(choice) {
    this.#choice = choice;
    this.#files = choice.files;
  }

  get name() {
    const { files, url } = this.#choice;
    if (!files) return nameOf(new URL(url ?? ''));
    return files.length > 1 ? `${files[0].name} and ${files.length - 1} more` : files[0].name;
  }

  /** Where it is read from. */
  get files() {
    if (!this.#files) throw new Error('not fetched yet');
    return this.#files;
  }

  /** The same, of one file. */
  get file() {
    return this.files[0];
  }

  /** Whether it comes with the page. */
  get isDemo() {
    return this.#choice.isDemo;
  }

  /** Whether it has to be fetched first. */
  get isAway() {
    return this.#files === undefined;
  }

  /** What a model has to be opened for. */
  get wants() {
    return { encodes: this.kind === 'picture' || this.kind === 'footage', clips: this.kind === 'clip' || this.kind === 'footage' };
  }

  /**
   * Gets the file, and finds out what it is.
   * @param {AbortSignal} signal
   */
  async identify(signal) {
    if (this.#identified?.signal !== signal) this.#identified = { signal, done: this.#identify(signal) };
    await this.#identified.done;
  }

  /** @param {AbortSignal} signal */
  async #identify(signal) {
    // Once: a link may work no second time.
    this.#files ??= [await ask('fetchFile', this.#choice.url ?? '', signal)];
    this.kind ??= await ask('kindOf', this.#files);
    signal.throwIfAborted();
  }

  /**
   * Finds out whether it can be read, where there is no model to open it with, and says how large
   * it is.
   * @param {AbortSignal} signal
   */
  async check(signal) {
    await this.identify(signal);
    const { name } = this;
    if (this.kind === 'latents') {
      tell({ type: 'input', name, shape: await ask('shapeOfLatents', this.file) });
    } else if (this.kind === 'picture' || this.kind === 'footage') {
      const { size, bitmap } = await this.#show(this.kind === 'picture' ? ask('openPicture', this.file, 1) : ask('openFootage', this.files, 1), signal);
      bitmap.close();
      tell({ type: 'input', name, size });
    }
  }

  /**
   * Takes latents of four axes for a clip where they can be nothing else: of a model that has as
   * many channels as the first of them, and knows time.
   * @param {Decoder} decoder
   */
  async settle({ info }) {
    if (this.kind !== 'latents' || !info.has_time) return;
    const [channels, next, ...others] = (await ask('axesOf', this.file)) ?? [];
    if (others.length === 2 && channels === info.latent_channels && next !== channels) this.kind = 'clip';
  }

  /**
   * Finds out how large it is, and shows pictures.
   * @param {Decoder} decoder
   * @param {AbortSignal} signal
   */
  async open(decoder, signal) {
    const { name } = this;
    const factor = decoder.info.pixels_per_latent;
    if (this.kind === 'latents' || this.kind === 'clip') {
      if (this.#shape) return;
      this.#shape = this.kind === 'clip' ? await ask('axesOf', this.file) : await decoder.shapeOf(this.file, { signal });
      tell({ type: 'input', name, shape: this.#shape });
    } else if (this.kind === 'picture' && !this.#size) {
      const { size, bitmap } = await this.#show(ask('openPicture', this.file, factor), signal);
      this.#size = size;
      tell({ type: 'input', name, size });
      tell({ type: 'original', bitmap, name });
    } else if (this.kind === 'footage' && !this.footage) {
      const { size, found, rate, bitmap } = await this.#show(ask('openFootage', this.files, factor), signal);
      this.footage = { files: this.files, size, found, rate, count: Math.min(found, MOST_FRAMES) };
      tell({ type: 'input', name, size, frames: this.footage.count });
      tell({ type: 'original', bitmap, name });
    }
  }

  /**
   * What there is to show, unless nobody wants it any more.
   * @template {{ bitmap: ImageBitmap }} T
   * @param {Promise<T>} opening
   * @param {AbortSignal} signal
   */
  async #show(opening, signal) {
    const opened = await opening;
    if (signal.aborted) opened.bitmap.close();
    signal.throwIfAborted();
    return opened;
  }

  /**
   * What will be done with it.
   * @param {Decoder} decoder
   * @param {Vae | undefined} vae
   * @param {number | undefined} memoryBudget
   * @returns {Promise<import('./news.js').Plans>}
   */
  async plans(decoder, vae, memoryBudget) {
    const scale = decoder.info.pixels_per_latent;
    if (this.#shape) {
      const [rows, columns] = this.#shape.slice(-2);
      const size = { width: columns * scale, height: rows * scale, memoryBudget };
      if (this.kind === 'latents') {
        checkChannels(this.#shape.at(-3), decoder);
        return [{ operation: 'decode', plan: await decoder.plan(size) }];
      }
      const [clips] = this.#shape.length === 5 ? this.#shape : [1];
      if (clips !== 1) throw new WgvaeError('input', `these latents are of ${clips} clips: expected one`, { expected: '1', found: `${clips}` });
      checkChannels(this.#shape.at(-4), decoder);
      const frames = 1 + decoder.info.frames_per_latent * ((this.#shape.at(-3) ?? 1) - 1);
      return [{ operation: 'decode', plan: await decoder.planClip({ ...size, output: 'image-data' }), frames }];
    }
    const whole = this.#size ?? this.footage?.size;
    if (!vae || !whole) return [];
    const { width, height } = middle(whole, scale);
    const size = { width, height, memoryBudget };
    if (this.footage) {
      const frames = this.footage.count;
      return [
        { operation: 'encode', plan: await vae.planEncodeClip(size), frames },
        { operation: 'decode', plan: await vae.planClip({ ...size, output: 'image-data' }), frames },
      ];
    }
    return [
      { operation: 'encode', plan: await vae.planEncode(size) },
      // Its pixels are compared, in memory.
      { operation: 'decode', plan: await vae.plan({ ...size, output: 'image-data' }) },
    ];
  }
}

/**
 * @param {number | undefined} channels
 * @param {Decoder} decoder
 */
function checkChannels(channels, { info }) {
  const expected = info.latent_channels;
  if (channels === expected) return;
  // Four of them are one of the model's, in patches.
  const isOwn = channels !== undefined && channels === info.config.latent_channels;
  const facts = { expected: `${expected}`, found: `${channels}`, ...(isOwn && { offer: 'unscaled' }) };
  if (isOwn) throw new WgvaeError('input', `these latents have ${channels} channels, which are the VAE's own; the model expects the diffusion model's, ${expected} (= ${expected / channels} x ${channels})`, facts);
  throw new WgvaeError('input', `these latents have ${channels} channels, but the model takes ${expected}`, facts);
}
