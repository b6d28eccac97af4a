// @ts-check
// Pixels of anything that can be drawn, some rows at a time, so that memory never holds the whole
// picture twice.

import { messageOf, WgvaeError } from './errors.js';
import { isA } from './realms.js';

/** Pixels of one strip. */
const STRIP = 1 << 20;

/** Most rows of a strip: a texture of WebGL has at least so many. */
const ROWS = 2048;

/** A pixel whose colours 8 bits cannot keep once they are multiplied by alpha. */
const FAINT = [200, 100, 50, 1];

/** Values of the 256 levels, -1 to 1. Each step rounds to f32, as in diffusers. */
const VALUES = Float32Array.from({ length: 256 }, (_, level) => 2 * Math.fround(level / 255) - 1);

/**
 * Options that keep the colours of the file: no colour profile, no multiplication by alpha.
 * Pictures are turned as their EXIF says, by default.
 * @type {ImageBitmapOptions}
 */
export const AS_IT_IS = { colorSpaceConversion: 'none', premultiplyAlpha: 'none' };

/**
 * Rectangle of the picture to read.
 * @typedef {{ x: number, y: number, width: number, height: number }} Part
 */

/**
 * Source of pixels that are not multiplied by alpha.
 * @typedef {{ read(part: Part): Uint8ClampedArray | Promise<Uint8ClampedArray>, close(): void }}
 * Reader
 */

/**
 * Yields strips by way of a canvas. It rounds the colours of partly transparent pixels, and loses
 * those of fully transparent ones.
 * @param {ImageBitmap | HTMLCanvasElement | OffscreenCanvas} source
 * @param {Part} part
 * @returns {Iterable<Uint8ClampedArray>}
 */
export function* stripsOf(source, { x, y, width, height }) {
  const most = rowsOfStrip(width);
  try {
    const canvas = new OffscreenCanvas(width, Math.min(most, height));
    const context = canvas.getContext('2d', { willReadFrequently: true });
    if (!context) throw new Error('no context for a canvas');
    context.globalCompositeOperation = 'copy';
    for (let row = 0; row < height; row += most) {
      const rows = Math.min(most, height - row);
      context.drawImage(source, x, y + row, width, rows, 0, 0, width, rows);
      yield context.getImageData(0, 0, width, rows).data;
    }
  } catch (cause) {
    throw unread(cause);
  }
}

/**
 * Yields strips that keep the colours of transparent pixels, if the browser has a way. Otherwise
 * yields those of {@link stripsOf}.
 * @param {ImageBitmap | HTMLCanvasElement | OffscreenCanvas} source
 * @param {Part} part
 * @returns {AsyncIterable<Uint8ClampedArray>}
 */
export async function* straightStripsOf(source, part) {
  const reader = await openStraight(source);
  if (!reader) {
    yield* stripsOf(source, part);
    return;
  }
  try {
    const most = Math.min(ROWS, rowsOfStrip(part.width));
    for (let row = 0; row < part.height; row += most) {
      yield await reader.read({ ...part, y: part.y + row, height: Math.min(most, part.height - row) });
    }
  } catch (cause) {
    throw unread(cause);
  } finally {
    reader.close();
  }
}

/**
 * Opens the source by the first way that gives a known pixel exactly. In browsers of 2026,
 * Chromium's VideoFrame multiplies by alpha, Firefox's does not, and without a GPU Firefox has no
 * WebGL.
 * @param {any} source
 * @returns {Promise<Reader | undefined>}
 */
async function openStraight(source) {
  const bitmap = await createImageBitmap(new ImageData(Uint8ClampedArray.from(FAINT), 1, 1), AS_IT_IS);
  for (const open of [openWebGl, openVideoFrame]) {
    try {
      const reader = open(bitmap);
      let found;
      try {
        found = await reader.read({ x: 0, y: 0, width: 1, height: 1 });
      } finally {
        reader.close();
      }
      if (FAINT.every((level, at) => level === found[at])) return open(source);
    } catch {
      // The browser lacks this way, or refuses this source.
    }
  }
  return undefined;
}

/** @type {(source: ImageBitmap) => Reader} */
function openWebGl(source) {
  const gl = /** @type {WebGL2RenderingContext} */ (new OffscreenCanvas(1, 1).getContext('webgl2'));
  if (source.width > gl.getParameter(gl.MAX_TEXTURE_SIZE)) throw new Error('a strip does not fit a texture');
  const texture = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, texture);
  gl.bindFramebuffer(gl.FRAMEBUFFER, gl.createFramebuffer());
  return {
    read({ x, y, width, height }) {
      gl.pixelStorei(gl.UNPACK_SKIP_PIXELS, x);
      gl.pixelStorei(gl.UNPACK_SKIP_ROWS, y);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, width, height, 0, gl.RGBA, gl.UNSIGNED_BYTE, source);
      gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.COLOR_ATTACHMENT0, gl.TEXTURE_2D, texture, 0);
      const data = new Uint8Array(4 * width * height);
      gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, data);
      // Without memory, the pixels would be blank.
      if (gl.getError()) throw new Error(`WebGL does not read ${width}x${height} pixels`);
      return new Uint8ClampedArray(data.buffer);
    },
    // Browsers keep only some contexts.
    close: () => gl.getExtension('WEBGL_lose_context')?.loseContext(),
  };
}

/** @type {(source: ImageBitmap) => Reader} */
function openVideoFrame(source) {
  const frame = new VideoFrame(source, { timestamp: 0 });
  return {
    async read({ x, y, width, height }) {
      const data = new Uint8ClampedArray(4 * width * height);
      await frame.copyTo(data, { format: 'RGBA', rect: { x, y, width, height } });
      return data;
    },
    close: () => frame.close(),
  };
}

/**
 * Returns whether `data` may hold levels of pixels, as Node's Buffer does, too.
 * @param {unknown} data
 */
export function isBytes(data) {
  return isA(data, 'Uint8ClampedArray', 'Uint8Array');
}

/**
 * @param {Pick<ImageData, 'data' | 'width'>} image
 * @param {Part} part
 * @returns {Iterable<Uint8ClampedArray>}
 */
export function* stripsOfData({ data, width: stride }, { x, y, width, height }) {
  const most = rowsOfStrip(width);
  for (let row = 0; row < height; row += most) {
    const rows = Math.min(most, height - row);
    const strip = new Uint8ClampedArray(4 * width * rows);
    for (let each = 0; each < rows; each += 1) {
      const from = 4 * ((y + row + each) * stride + x);
      strip.set(/** @type {Uint8ClampedArray} */ (data).subarray(from, from + 4 * width), 4 * width * each);
    }
    yield strip;
  }
}

/**
 * Returns the values of a strip, one plane for each of its first channels.
 * @param {Uint8ClampedArray} strip
 * @param {number} channels
 */
export function planesOf(strip, channels) {
  return Array.from({ length: channels }, (_, channel) => {
    const plane = new Float32Array(strip.length / 4);
    for (let at = 0; at < plane.length; at += 1) plane[at] = VALUES[strip[4 * at + channel]];
    return plane;
  });
}

/** @param {number} width */
function rowsOfStrip(width) {
  return Math.max(1, Math.floor(STRIP / width));
}

/** @param {unknown} cause */
function unread(cause) {
  const isForeign = cause instanceof DOMException && cause.name === 'SecurityError';
  const advice = isForeign ? '; it comes from another origin, which has to let this page read it (CORS), and its element needs crossorigin="anonymous"' : '';
  return new WgvaeError(isForeign ? 'input' : 'canvas', `the browser does not give the picture's pixels: ${messageOf(cause)}${advice}`, { cause });
}
