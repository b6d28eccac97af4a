// @ts-check
// Conversion of every kind of image that a caller may have to the wasm module's.

import { kindOf, messageOf, mismatch, WgvaeError } from './errors.js';
import { fitted, isResize } from './fit.js';
import { Lanczos } from './lanczos.js';
import { isTensor, valuesOf } from './onnx.js';
import { checkValue, isCount } from './options.js';
import { isFloats, isSvg, isWhole } from './picture-file.js';
import { AS_IT_IS, isBytes, planesOf, straightStripsOf, stripsOf, stripsOfData } from './pixels.js';
import { isA, isBlob, isUrl } from './realms.js';
import { bytesOf, openSource } from './sources.js';
import { checkedFloats } from './tensors.js';

/** @typedef {import('./wasm.js').Wasm} Wasm */
/** @typedef {import('./sources.js').Access} Access */
/** @typedef {import('../pkg/wgvae.js').Images} Images */
/**
 * Facts about the model: pictures are cropped to multiples of `pixels_per_latent`, and keep their
 * alpha if `in_channels` is 4.
 * @typedef {Pick<import('./index.js').ModelInfo, 'pixels_per_latent' | 'in_channels'>} Facts
 */

/**
 * Reads a rectangle of a picture: levels [rows, columns, 4], some rows at a time.
 * @typedef {(part: import('./pixels.js').Part) => Iterable<Uint8ClampedArray> |
 * AsyncIterable<Uint8ClampedArray>} Strips
 */

/** Bytes of the first request, enough for most pictures. */
const HEAD_BYTES = 1 << 20;

/**
 * Largest absolute value of a picture in the range -1 to 1, with some room for resized ones. Larger
 * values mean another range.
 */
const BEYOND = 1.5;

/** @type {import('./options.js').Check} */
const SIDE = [(value) => isCount(value) && value > 0, 'a whole number above 0'];

/** Number of first bytes that tell pictures and arrays apart. */
const MARK_BYTES = 16;

/**
 * @param {Wasm} wasm
 * @param {import('./index.js').ImageInput} input
 * @param {Access} access
 * @param {Facts} facts
 * @param {import('./fit.js').Request} request for another size
 * @returns {Promise<Images>}
 */
export async function openImages(wasm, input, access, facts, request) {
  const open = new Opening(wasm, access, facts, request);
  if (typeof input === 'string' || isUrl(input) || isBlob(input) || bytesOf(input)) return open.file(/** @type {any} */ (input));
  if (typeof input !== 'object' || input === null) throw mismatch('input', 'picture', 'something to draw, a file or a tensor', kindOf(input));
  if (isA(input, 'ImageData') || ('width' in input && 'data' in input && isA(input.data, 'Uint8ClampedArray'))) return open.imageData(/** @type {any} */ (input));
  if ('shape' in input) return open.array(input.data, input.shape);
  if (isTensor(input)) return open.tensor(input);
  if ('width' in input && 'data' in input) return open.imageData(/** @type {any} */ (input));
  // Values that are already decoded, or never were a file.
  if (isA(input, 'ImageBitmap', 'HTMLCanvasElement', 'OffscreenCanvas')) return open.drawable(/** @type {any} */ (input));
  if (!isA(input, 'HTMLImageElement', 'SVGImageElement', 'HTMLVideoElement', 'VideoFrame')) {
    throw mismatch('input', 'picture', 'something to draw, a file or { data, shape }', kindOf(input));
  }
  return open.drawn(/** @type {any} */ (input), (cause) => new WgvaeError('input', `the picture cannot be drawn: ${messageOf(cause)}`, { cause }));
}

/**
 * Draws an element or a canvas at once into a bitmap, which another thread can receive as well.
 * Returns anything else unchanged.
 * @param {unknown} input
 * @returns {unknown | Promise<ImageBitmap>}
 */
export function drawableOf(input) {
  if (typeof input !== 'object' || input === null) return input;
  if (!isA(input, 'HTMLImageElement', 'SVGImageElement', 'HTMLVideoElement', 'HTMLCanvasElement', 'OffscreenCanvas')) return input;
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
  #request;

  /**
   * @param {Wasm} wasm
   * @param {Access} access
   * @param {Facts} facts
   * @param {import('./fit.js').Request} request
   */
  constructor(wasm, access, { pixels_per_latent: factor, in_channels: channels }, request) {
    this.#wasm = wasm;
    this.#access = access;
    this.#factor = factor;
    this.#channels = channels;
    this.#request = request;
  }

  /** @param {import('./index.js').FileInput} input */
  async file(input) {
    const source = await openSource(input, this.#access, { what: 'picture', headBytes: HEAD_BYTES });
    try {
      const mark = await source.read(0, Math.min(MARK_BYTES, source.length));
      if (isFloats(mark)) return this.#asItIs(await this.#wasm.Images.fromFile(source));
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
    return this.#asItIs(this.#wasm.Images.fromArray(floats, Uint32Array.from(shape)));
  }

  /**
   * Returns images of floats, after a notice if their values are hardly meant.
   * @param {Images} images
   */
  #asItIs(images) {
    if (isResize(this.#request)) {
      images.free();
      throw mismatch('input', 'width and height', 'a picture to resize', 'values, which are encoded as they are');
    }
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
    const straight = (/** @type {import('./pixels.js').Part} */ part) => straightStripsOf(source, part);
    return this.#channels === 4 ? this.#fromStrips(source, straight) : this.#fromStrips(source, (part) => stripsOf(source, part), straight);
  }

  /** @param {ImageData} image */
  imageData(image) {
    const { data, width, height } = image;
    if (!isBytes(data)) throw mismatch('input', 'data of the picture', 'a Uint8Array or Uint8ClampedArray of RGBA', kindOf(data));
    for (const [name, side] of Object.entries({ width, height })) checkValue(`${name} of the picture`, side, SIDE);
    if (data.length !== 4 * width * height) throw mismatch('input', 'picture', `4 bytes for each of ${width}x${height} pixels`, `${data.length}`);
    return this.#fromStrips(image, (part) => stripsOfData(image, part));
  }

  /**
   * @param {import('./fit.js').Size} source
   * @param {Strips} strips
   * @param {Strips} [straight] strips to read instead if the picture turns out to be transparent
   * @returns {Promise<Images>}
   */
  async #fromStrips({ width, height }, strips, straight) {
    const whole = { width, height };
    const { scaled, part } = fitted(whole, this.#request, this.#factor);
    const area = part.width * part.height;
    const picture = new this.#wasm.Picture(Uint32Array.of(this.#channels, part.height, part.width));
    let isTransparent = false;
    /** @type {Strips} */
    const read = this.#channels === 4 ? strips : (wanted) => watched(strips(wanted), () => { isTransparent = true; });
    let done = 0;
    try {
      const levels = isSame(whole, scaled) ? read(part) : resized(read, new Lanczos(whole, scaled, part, this.#channels === 4), part);
      for await (const strip of levels) {
        planesOf(strip, this.#channels).forEach((plane, channel) => picture.set(channel * area + done, plane));
        done += strip.length / 4;
      }
      if (done !== area) throw new WgvaeError('canvas', `the browser gave ${done} of the picture's ${area} pixels`);
    } catch (error) {
      picture.free();
      throw error;
    }
    if (isTransparent && straight) {
      picture.free();
      return this.#fromStrips(whole, straight);
    }
    this.#tellSize(whole, scaled, part);
    if (isTransparent) this.#access.notify({ code: 'transparent', message: 'the picture lets through what is behind it: that is left out' });
    return picture.finish();
  }

  /**
   * Tells if another size is encoded than that of the picture.
   * @param {import('./fit.js').Size} whole
   * @param {import('./fit.js').Size} scaled
   * @param {import('./fit.js').Size} part
   */
  #tellSize(whole, scaled, part) {
    const text = (/** @type {import('./fit.js').Size} */ { width, height }) => `${width}x${height}`;
    if (!isSame(whole, scaled)) {
      const middle = isSame(scaled, part) ? '' : `, of which the middle ${text(part)} is encoded`;
      this.#access.notify({ code: 'resized', message: `the picture of ${text(whole)} pixels is resized to ${text(scaled)}${middle}` });
    } else if (!isSame(whole, part)) {
      const why = isResize(this.#request) ? '' : `: the model takes multiples of ${this.#factor}`;
      this.#access.notify({ code: 'cropped', message: `the picture of ${text(whole)} pixels is encoded without its borders, as ${text(part)}${why}` });
    }
  }
}

/**
 * @param {import('./fit.js').Size} left
 * @param {import('./fit.js').Size} right
 */
function isSame(left, right) {
  return left.width === right.width && left.height === right.height;
}

/**
 * Yields the strips, and tells if one is transparent.
 * @param {ReturnType<Strips>} strips
 * @param {() => void} tell
 */
async function* watched(strips, tell) {
  for await (const strip of strips) {
    if (strip.some((level, at) => at % 4 === 3 && level < 255)) tell();
    yield strip;
  }
}

/**
 * Yields strips of a part of the resized picture.
 * @param {Strips} read
 * @param {Lanczos} lanczos
 * @param {import('./fit.js').Size} part
 */
async function* resized(read, lanczos, { width, height }) {
  for await (const strip of read(lanczos.source)) lanczos.add(strip);
  yield* stripsOfData({ data: lanczos.finish(), width }, { x: 0, y: 0, width, height });
}
