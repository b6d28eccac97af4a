// @ts-check
// Conversion of every kind of image that a caller may have to the wasm module's.

import { messageOf, mismatch, WgvaeError } from './errors.js';
import { isTensor, valuesOf } from './onnx.js';
import { isFloats, isSvg, isWhole } from './picture-file.js';
import { AS_IT_IS, planesOf, straightStripsOf, stripsOf, stripsOfData } from './pixels.js';
import { bytesOf, kindOf, openSource } from './sources.js';
import { checkedFloats } from './tensors.js';

/** @typedef {import('./wasm.js').Wasm} Wasm */
/** @typedef {import('./sources.js').Access} Access */
/** @typedef {import('../pkg/wgvae.js').Images} Images */
/**
 * Facts about the model: pictures are cropped to multiples of `pixels_per_latent`, and keep their
 * alpha if `in_channels` is 4.
 * @typedef {Pick<import('./index.js').ModelInfo, 'pixels_per_latent' | 'in_channels'>} Facts
 */

/** Bytes of the first request, enough for most pictures. */
const HEAD_BYTES = 1 << 20;

/**
 * Largest absolute value of a picture in the range -1 to 1, with some room for resized ones. Larger
 * values mean another range.
 */
const BEYOND = 1.5;

/** Number of first bytes that tell pictures and arrays apart. */
const MARK_BYTES = 16;

/**
 * @param {Wasm} wasm
 * @param {import('./index.js').ImageInput} input
 * @param {Access} access
 * @param {Facts} facts
 * @returns {Promise<Images>}
 */
export async function openImages(wasm, input, access, facts) {
  const open = new Opening(wasm, access, facts);
  if (typeof input === 'string' || input instanceof URL || input instanceof Blob || bytesOf(input)) return open.file(/** @type {any} */ (input));
  if (typeof input !== 'object' || input === null) throw mismatch('input', 'picture', 'something to draw, a file or a tensor', kindOf(input));
  if (isOneOf(input, ['ImageData']) || ('width' in input && 'data' in input && input.data instanceof Uint8ClampedArray)) return open.imageData(/** @type {any} */ (input));
  if ('shape' in input) return open.array(input.data, input.shape);
  if (isTensor(input)) return open.tensor(input);
  // Values that are already decoded, or never were a file.
  if (isOneOf(input, ['ImageBitmap', 'HTMLCanvasElement', 'OffscreenCanvas'])) return open.drawable(/** @type {any} */ (input));
  if (!isOneOf(input, ['HTMLImageElement', 'SVGImageElement', 'HTMLVideoElement', 'VideoFrame'])) {
    throw mismatch('input', 'picture', 'something to draw, a file or { data, shape }', kindOf(input));
  }
  return open.drawn(/** @type {any} */ (input), (cause) => new WgvaeError('input', `the picture cannot be drawn: ${messageOf(cause)}`, { cause }));
}

/**
 * @param {object} value
 * @param {string[]} classes names of classes; some do not exist in every browser or thread
 */
function isOneOf(value, classes) {
  return classes.some((name) => name in globalThis && value instanceof /** @type {any} */ (globalThis)[name]);
}

/**
 * Draws an element or a canvas at once into a bitmap, which another thread can receive as well.
 * Returns anything else unchanged.
 * @param {unknown} input
 * @returns {unknown | Promise<ImageBitmap>}
 */
export function drawableOf(input) {
  if (typeof input !== 'object' || input === null) return input;
  if (!isOneOf(input, ['HTMLImageElement', 'SVGImageElement', 'HTMLVideoElement', 'HTMLCanvasElement', 'OffscreenCanvas'])) return input;
  return createImageBitmap(/** @type {any} */ (input), AS_IT_IS).catch((cause) => {
    throw new WgvaeError('input', `the picture cannot be drawn: ${messageOf(cause)}`, { cause });
  });
}

/** Opens a picture, by one method for each kind. */
class Opening {
  #wasm;
  #access;
  #factor;
  #channels;

  /**
   * @param {Wasm} wasm
   * @param {Access} access
   * @param {Facts} facts
   */
  constructor(wasm, access, { pixels_per_latent: factor, in_channels: channels }) {
    this.#wasm = wasm;
    this.#access = access;
    this.#factor = factor;
    this.#channels = channels;
  }

  /** @param {import('./index.js').FileInput} input */
  async file(input) {
    const source = await openSource(input, this.#access, { what: 'picture', headBytes: HEAD_BYTES });
    try {
      const mark = await source.read(0, Math.min(MARK_BYTES, source.length));
      if (isFloats(mark)) return this.#inRange(await this.#wasm.Images.fromFile(source));
      const bytes = /** @type {Uint8Array<ArrayBuffer>} */ (await source.read(0, source.length));
      if (!isWhole(bytes)) throw mismatch('format', source.name, 'a whole picture', `one that is cut short after ${bytes.length} bytes`);
      const unreadable = (/** @type {unknown} */ cause) => {
        const found = isSvg(bytes) ? 'an SVG, which has no pixels of its own: draw it onto a canvas first' : `one that it does not (${messageOf(cause)})`;
        return mismatch('format', source.name, 'a picture that this browser reads', found, cause);
      };
      return await this.drawn(new Blob([bytes]), unreadable);
    } finally {
      source.release?.();
    }
  }

  /**
   * @param {unknown} data
   * @param {readonly number[]} shape
   */
  array(data, shape) {
    const floats = checkedFloats(data, shape, 'image');
    return this.#inRange(this.#wasm.Images.fromArray(floats, Uint32Array.from(shape)));
  }

  /** Returns the images, after a notice if their values are hardly meant. @param {Images} images */
  #inRange(images) {
    const message = 'the picture has values well beyond -1 to 1, and is encoded as it is: of values from 0 to 255 take value / 127.5 - 1';
    if (images.largest() > BEYOND) this.#access.notify({ code: 'range', message });
    return images;
  }

  /** @param {import('./index.js').OnnxTensor} tensor */
  async tensor(tensor) {
    const { data, shape } = await valuesOf(tensor, 'image');
    return this.array(data, shape);
  }

  /**
   * Draws a picture that has to be decoded first.
   * @param {ImageBitmapSource} source
   * @param {(cause: unknown) => Error} unreadable makes the error if decoding fails
   */
  async drawn(source, unreadable) {
    if (!globalThis.createImageBitmap) throw mismatch('input', 'picture', '{ data, width, height } or { data, shape } where no browser decodes pictures', kindOf(source));
    const bitmap = await createImageBitmap(source, AS_IT_IS).catch((cause) => {
      throw unreadable(cause);
    });
    try {
      this.#access.signal.throwIfAborted();
      return await this.drawable(bitmap);
    } finally {
      bitmap.close();
    }
  }

  /** @param {ImageBitmap | HTMLCanvasElement | OffscreenCanvas} source */
  drawable(source) {
    return this.#fromStrips(source, (part) => (this.#channels === 4 ? straightStripsOf(source, part) : stripsOf(source, part)));
  }

  /** @param {ImageData} image */
  imageData(image) {
    if (!(image.data instanceof Uint8ClampedArray)) throw mismatch('input', 'ImageData', 'one of bytes', `one of ${kindOf(image.data)}`);
    const { data, width, height } = image;
    if (data.length !== 4 * width * height) throw mismatch('input', 'picture', `4 bytes for each of ${width}x${height} pixels`, `${data.length}`);
    return this.#fromStrips(image, (part) => stripsOfData(image, part));
  }

  /**
   * @param {{ width: number, height: number }} whole
   * @param {(part: import('./pixels.js').Part) => Iterable<Uint8ClampedArray> |
   * AsyncIterable<Uint8ClampedArray>} strips
   */
  async #fromStrips(whole, strips) {
    const part = this.#cropped(whole);
    const area = part.width * part.height;
    const picture = new this.#wasm.Picture(Uint32Array.of(this.#channels, part.height, part.width));
    let isTransparent = false;
    let done = 0;
    try {
      for await (const strip of strips(part)) {
        planesOf(strip, this.#channels).forEach((plane, channel) => picture.set(channel * area + done, plane));
        isTransparent ||= this.#channels === 3 && strip.some((level, at) => at % 4 === 3 && level < 255);
        done += strip.length / 4;
      }
      if (done !== area) throw new WgvaeError('canvas', `the browser gave ${done} of the picture's ${area} pixels`);
    } catch (error) {
      picture.free();
      throw error;
    }
    if (isTransparent) this.#access.notify({ code: 'transparent', message: 'the picture lets through what is behind it: that is left out' });
    return picture.finish();
  }

  /**
   * Returns the middle of the picture, with sides that are multiples of the factor.
   * @param {{ width: number, height: number }} whole
   */
  #cropped({ width, height }) {
    const factor = this.#factor;
    const [columns, rows] = [width, height].map((side) => side - (side % factor));
    if (columns === 0 || rows === 0) throw mismatch('input', 'picture', `at least ${factor}x${factor} pixels`, `${width}x${height}`);
    if (columns !== width || rows !== height) {
      const message = `the picture of ${width}x${height} pixels is encoded without its borders, as ${columns}x${rows}: the model takes multiples of ${factor}`;
      this.#access.notify({ code: 'cropped', message });
    }
    return { x: (width >> 1) - (columns >> 1), y: (height >> 1) - (rows >> 1), width: columns, height: rows };
  }
}
