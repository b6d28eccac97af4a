// @ts-check
// The chosen input, to be decoded, or to be encoded and decoded again: its kind and size.

import { nameOf } from '../src/answers.js';
import { decodedFrames, encodedLatents } from '../src/clip-lengths.js';
import { WgvaeError } from '../src/worker.js';
import { ask } from './ask.js';
import { middle } from './crop.js';
import { tell } from './tell.js';

/** @typedef {import('./news.js').Decoder} Decoder */
/** @typedef {import('./news.js').Vae} Vae */

/**
 * Most frames of a video, or files, to take, because the results are kept until the page shows
 * something else.
 */
const MOST_FRAMES = 241;

export class Input {
  #choice;
  /** Files of the input, once they are fetched. @type {File[] | undefined} */
  #files;
  /**
   * Kind of the input: latents of pictures or of a clip, a picture, or pictures of a clip.
   * @type {'latents' | 'clip' | 'picture' | 'footage' | undefined}
   */
  kind;
  /** Shape of the latents. @type {number[] | undefined} */
  #shape;
  /** Size of a picture. @type {import('./news.js').Size | undefined} */
  #size;
  /** Factor and channels of the model for which pictures are shown. */
  #shownFor = '';
  /** @type {import('./news.js').Footage | undefined} */
  footage;
  /** True once a preview was tried. */
  isPreviewed = false;
  /**
   * The identification that is in progress or done.
   * @type {{ signal: AbortSignal, done: Promise<void> } | undefined}
   */
  #identified;

  /** @param {import('./news.js').InputChoice} choice */
  constructor(choice) {
    this.#choice = choice;
    this.#files = choice.files;
    this.kind = choice.kind;
  }

  get name() {
    const { files, url } = this.#choice;
    if (!files) return nameOf(new URL(url ?? ''));
    return files.length > 1 ? `${files[0].name} and ${files.length - 1} more` : files[0].name;
  }

  /** Files of the input. */
  get files() {
    if (!this.#files) throw new Error('not fetched yet');
    return this.#files;
  }

  /** The only file of the input. */
  get file() {
    return this.files[0];
  }

  /** True if it comes with the page. */
  get isDemo() {
    return this.#choice.isDemo;
  }

  /** True if it has to be fetched first. */
  get isAway() {
    return this.#files === undefined;
  }

  /** Abilities that the model needs for this input. */
  get wants() {
    return { encodes: this.kind === 'picture' || this.kind === 'footage', clips: this.kind === 'clip' || this.kind === 'footage' };
  }

  /**
   * Fetches the file, and finds out its kind.
   * @param {AbortSignal} signal
   */
  async identify(signal) {
    if (this.#identified?.signal !== signal) this.#identified = { signal, done: this.#identify(signal) };
    await this.#identified.done;
  }

  /** @param {AbortSignal} signal */
  async #identify(signal) {
    // Fetched once, because a link may not work a second time.
    this.#files ??= [await ask('fetchFile', this.#choice.url ?? '', signal)];
    this.kind ??= await ask('kindOf', this.#files);
    signal.throwIfAborted();
  }

  /**
   * Checks that the input can be read, without a model, and tells its size.
   * @param {AbortSignal} signal
   */
  async check(signal) {
    await this.identify(signal);
    if (this.kind === 'latents') {
      this.#tell({ shape: await ask('shapeOfLatents', this.file) });
    } else if (this.kind === 'picture' || this.kind === 'footage') {
      const { size, bitmap } = await this.#show(this.kind === 'picture' ? ask('openPicture', this.file, 1, 3) : ask('openFootage', this.files, 1), signal);
      bitmap.close();
      this.#tell({ size });
    }
  }

  /**
   * Finds out what latents are to this model. Four axes are those of a clip if they can be nothing
   * else: the first one has as many channels as the model, and the model has a time axis. Without
   * one, latents with five axes and the model's channels are pictures: layers.
   * @param {import('../src/index.js').ModelFacts} info
   */
  async settle({ has_time: hasTime, latent_channels: expected }) {
    if (this.isAway || (this.kind !== 'latents' && this.kind !== 'clip')) return;
    const [first, second, ...others] = (await ask('axesOf', this.file)) ?? [];
    const isOfOneClip = hasTime && others.length === 2 && first === expected && second !== first;
    const kind = isOfOneClip || (others.length === 3 && (hasTime || second !== expected)) ? 'clip' : 'latents';
    if (kind !== this.kind) this.#shape = undefined;
    this.kind = kind;
  }

  /**
   * Finds out the size of the input, and shows pictures.
   * @param {Decoder} decoder
   * @param {AbortSignal} signal
   */
  async open(decoder, signal) {
    const { name } = this;
    const { pixels_per_latent: factor, in_channels: channels } = decoder.info;
    const shownFor = `${factor},${channels}`;
    const isShown = this.#shownFor === shownFor;
    if (this.kind === 'latents' || this.kind === 'clip') {
      if (this.#shape) return;
      this.#shape = this.kind === 'clip' ? await ask('axesOf', this.file) : await decoder.shapeOf(this.file, { signal });
      this.#tell({ shape: this.#shape });
    } else if (this.kind === 'picture' && !(this.#size && isShown)) {
      const { size, bitmap } = await this.#show(ask('openPicture', this.file, factor, channels), signal);
      [this.#size, this.#shownFor] = [size, shownFor];
      this.#tell({ size });
      tell({ type: 'original', bitmap, name });
    } else if (this.kind === 'footage' && !(this.footage && isShown)) {
      const { size, found, rate, bitmap } = await this.#show(ask('openFootage', this.files, factor), signal);
      this.footage = { files: this.files, size, found, rate, count: Math.min(found, MOST_FRAMES) };
      this.#shownFor = shownFor;
      this.#tell({ size, frames: this.footage.count });
      tell({ type: 'original', bitmap, name });
    }
  }

  /**
   * Tells what is known about the input.
   * @param {{ shape?: number[], size?: import('./news.js').Size, frames?: number }} facts
   */
  #tell(facts) {
    tell({ type: 'input', name: this.name, isDemo: this.isDemo, ...facts });
  }

  /**
   * Returns the opened pictures, unless the user has chosen something else meanwhile.
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
   * Plans the work on this input.
   * @param {Decoder} decoder
   * @param {Vae | undefined} vae
   * @param {number | undefined} memoryBudget
   * @returns {Promise<import('./news.js').Plans>}
   */
  async plans(decoder, vae, memoryBudget) {
    const scale = decoder.info.decoded_pixels_per_latent;
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
      const clipLatents = this.#shape.at(-3) ?? 1;
      const frames = decodedFrames(decoder.info, clipLatents) ?? clipLatents;
      return [{ operation: 'decode', plan: await decoder.planClip({ ...size, clipLatents, output: 'image-data' }), frames }];
    }
    const whole = this.#size ?? this.footage?.size;
    if (!vae || !whole) return [];
    const { width, height } = middle(whole, scale);
    const size = { width, height, memoryBudget };
    if (this.footage) {
      const frames = this.footage.count;
      const clipLatents = encodedLatents(vae.info, frames);
      return [
        { operation: 'encode', plan: await vae.planEncodeClip({ ...size, clipLatents }), frames },
        { operation: 'decode', plan: await vae.planClip({ ...size, clipLatents, output: 'image-data' }), frames },
      ];
    }
    return [
      { operation: 'encode', plan: await vae.planEncode(size) },
      // Its pixels are compared in memory.
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
  // True for the VAE's own latents; the diffusion model's latents are patches of them.
  const isOwn = channels !== undefined && channels === info.config.latent_channels;
  const facts = { expected: `${expected}`, found: `${channels}`, ...(isOwn && { offer: 'unscaled' }) };
  if (isOwn) throw new WgvaeError('input', `these latents have ${channels} channels, which are the VAE's own; the model expects the diffusion model's, ${expected} (= ${expected / channels} x ${channels})`, facts);
  throw new WgvaeError('input', `these latents have ${channels} channels, but the model takes ${expected}`, facts);
}
