// @ts-check
// What was chosen to be decoded, or to be encoded and decoded again: what it is, and how large.

import { WgvaeError } from '../src/index.js';
import { middle } from './crop.js';
import { fetchFile, nameOf } from './fetch-file.js';
import { Footage } from './footage.js';
import { shapesIn } from './header.js';
import { Original } from './original.js';
import { isPicture, isVideo } from './sort-files.js';
import { tell } from './tell.js';

/** @typedef {import('../src/index.js').Decoder} Decoder */
/** @typedef {import('../src/index.js').Vae} Vae */

/** Frames of each latent of a clip but the first. */
const STEP = 4;

export class Input {
  #choice;
  /** Where it is read from, once it is there. @type {File[] | undefined} */
  #files;
  /** Latents of pictures or of a clip, a picture, or pictures of a clip. @type {'latents' | 'clip' | 'picture' | 'footage' | undefined} */
  kind;
  /** Of latents. @type {number[] | undefined} */
  #shape;
  /** @type {Original | undefined} */
  original;
  /** @type {Footage | undefined} */
  footage;

  /** @param {import('./protocol.js').InputChoice} choice */
  constructor(choice) {
    this.#choice = choice;
    this.#files = choice.files;
  }

  get name() {
    const { files, url } = this.#choice;
    if (!files) return nameOf(url ?? '');
    return files.length > 1 ? `${files[0].name} and ${files.length - 1} more` : files[0].name;
  }

  /** Where it is read from. */
  get file() {
    if (!this.#files) throw new Error('not fetched yet');
    return this.#files[0];
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
    // Once: a link may work no second time.
    this.#files ??= [await fetchFile(this.#choice.url ?? '', signal)];
    this.kind ??= await kindOf(this.#files);
    signal.throwIfAborted();
  }

  /**
   * Takes latents of four axes for a clip where they can be nothing else: of a model that has as many channels as the first of them, and knows time.
   * @param {Decoder} decoder
   */
  async settle({ info }) {
    if (this.kind !== 'latents' || !info.has_time) return;
    const [channels, next, ...others] = (await axesOf(this.file)) ?? [];
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
      this.#shape = this.kind === 'clip' ? await axesOf(this.file) : await decoder.shapeOf(this.file, { signal });
      tell({ type: 'input', name, shape: this.#shape });
    } else if (this.kind === 'picture' && !this.original) {
      const original = await Original.open(this.file);
      if (signal.aborted) original.close();
      signal.throwIfAborted();
      this.original = original;
      tell({ type: 'input', name, size: original.size });
      const bitmap = await original.bitmap(factor);
      tell({ type: 'original', bitmap, name }, [bitmap]);
    } else if (this.kind === 'footage' && !this.footage) {
      const footage = await Footage.open(this.#files ?? []);
      if (signal.aborted) footage.close();
      signal.throwIfAborted();
      this.footage = footage;
      tell({ type: 'input', name, size: footage.size, frames: footage.count });
      const bitmap = await footage.first(factor);
      tell({ type: 'original', bitmap, name }, [bitmap]);
    }
  }

  /**
   * What will be done with it.
   * @param {Decoder} decoder
   * @param {Vae | undefined} vae
   * @param {number | undefined} memoryBudget
   * @returns {import('./protocol.js').Plans}
   */
  plans(decoder, vae, memoryBudget) {
    const scale = decoder.info.pixels_per_latent;
    if (this.#shape) {
      const [rows, columns] = this.#shape.slice(-2);
      const size = { width: columns * scale, height: rows * scale, memoryBudget };
      if (this.kind === 'latents') {
        checkChannels(this.#shape.at(-3), decoder);
        return [{ operation: 'decode', plan: decoder.plan(size) }];
      }
      const [clips] = this.#shape.length === 5 ? this.#shape : [1];
      if (clips !== 1) throw new WgvaeError('input', `these latents are of ${clips} clips: expected one`, { expected: '1', found: `${clips}` });
      checkChannels(this.#shape.at(-4), decoder);
      const frames = 1 + STEP * ((this.#shape.at(-3) ?? 1) - 1);
      return [{ operation: 'decode', plan: decoder.planClip({ ...size, output: 'image-data' }), frames }];
    }
    const picture = this.original ?? this.footage;
    if (!vae || !picture) return [];
    const { width, height } = middle(picture.size, scale);
    const size = { width, height, memoryBudget };
    if (this.footage) {
      const frames = this.footage.count;
      return [
        { operation: 'encode', plan: vae.planEncodeClip(size), frames },
        { operation: 'decode', plan: vae.planClip({ ...size, output: 'image-data' }), frames },
      ];
    }
    return [
      { operation: 'encode', plan: vae.planEncode(size) },
      // Its pixels are compared, in memory.
      { operation: 'decode', plan: vae.plan({ ...size, output: 'image-data' }) },
    ];
  }

  close() {
    this.original?.close();
    this.footage?.close();
  }
}

/** @param {File[]} files */
async function kindOf(files) {
  if (files.length > 1) return 'footage';
  const [file] = files;
  if (await isPicture(file)) return 'picture';
  if (await isVideo(file)) return 'footage';
  return (await axesOf(file))?.length === 5 ? 'clip' : 'latents';
}

/**
 * The shape of a file of latents, as far as it tells.
 * @param {File} file
 */
async function axesOf(file) {
  const shapes = (await shapesIn(file)) ?? {};
  const named = shapes.latents ?? shapes.latent_tensor;
  return named ?? Object.values(shapes).find((shape) => Array.isArray(shape) && shape.length >= 4);
}

/**
 * @param {number | undefined} channels
 * @param {Decoder} decoder
 */
function checkChannels(channels, { info }) {
  const expected = info.latent_channels;
  if (channels === expected) return;
  const facts = { expected: `${expected}`, found: `${channels}` };
  throw new WgvaeError('input', `these latents have ${channels} channels, but the model takes ${expected}`, facts);
}
