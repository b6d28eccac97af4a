// @ts-check
// The way from a picture in GPU memory to what a page shows, or goes on with: a copy into a canvas,
// a texture or a buffer, no readback.

import { messageOf, mismatch, WgvaeError } from './errors.js';
import { isLost } from './loss.js';

/**
 * A decoded picture on the device, rows `bytesPerRow` apart, in the order of channels that `format`
 * says.
 * @typedef {{ buffer: GPUBuffer, bytesPerRow: number, offset: number, format: GPUTextureFormat }} Picture
 */
/** @typedef {{ width: number, height: number }} Size pixels */

/**
 * What a caller may do with a texture: COPY_SRC, COPY_DST, TEXTURE_BINDING and RENDER_ATTACHMENT of
 * GPUTextureUsage.
 */
const OF_TEXTURES = 1 | 2 | 4 | 16;

/** And with a buffer: COPY_SRC, COPY_DST and STORAGE of GPUBufferUsage. */
const OF_BUFFERS = 4 | 8 | 128;

/**
 * Contexts of canvases that were used before: in workers Firefox 153 gives a canvas's context only
 * once.
 * @type {WeakMap<HTMLCanvasElement | OffscreenCanvas, GPUCanvasContext>}
 */
const contexts = new WeakMap();

/**
 * The format that canvases and pictures have here. Others are converted each time they are shown,
 * and Firefox 153 crashes on them where it draws pages without a GPU.
 * @returns {GPUTextureFormat}
 */
export function canvasFormat() {
  // Elsewhere there are no canvases.
  return globalThis.navigator?.gpu?.getPreferredCanvasFormat() ?? 'rgba8unorm';
}

/** The canvases that show pictures of one device. */
export class Canvases {
  #device;
  /**
   * Canvases of callers that were drawn on, for as long as somebody has them. @type
   * {Set<WeakRef<GPUCanvasContext>>}
   */
  #drawn = new Set();
  /** What bitmaps are made with. @type {OffscreenCanvas | undefined} */
  #own;

  /** @param {GPUDevice} device */
  constructor(device) {
    this.#device = device;
  }

  /**
   * Makes `canvas` as large as the picture and copies it there. The canvas has it when this
   * returns; the promise tells whether the device took it.
   * @param {HTMLCanvasElement | OffscreenCanvas} canvas
   * @param {Picture} picture
   * @param {Size} size
   * @returns {Promise<void>}
   */
  async present(canvas, picture, size) {
    const context = configure(this.#device, canvas, picture.format, size);
    this.#remember(context);
    await draw(this.#device, context, picture, size);
  }

  /**
   * The picture as an ImageBitmap, through a canvas of our own.
   * @param {Picture} picture
   * @param {Size} size
   * @returns {Promise<ImageBitmap>}
   */
  async toBitmap(picture, size) {
    this.#own ??= new OffscreenCanvas(size.width, size.height);
    const context = configure(this.#device, this.#own, picture.format, size);
    const written = draw(this.#device, context, picture, size);
    // In the same task as the copy: afterwards the canvas is empty again.
    const [bitmap] = await Promise.all([takeBitmap(this.#device, this.#own, context), written]);
    return bitmap;
  }

  /**
   * The picture as a texture, which is the caller's.
   * @param {Picture} picture
   * @param {Size} size
   * @returns {Promise<GPUTexture>}
   */
  async toTexture(picture, size) {
    const make = () => this.#device.createTexture({ label: 'wgvae picture', size: [size.width, size.height], format: picture.format, usage: OF_TEXTURES });
    return created(this.#device, 'texture', make, (texture) => copy(this.#device, texture, picture, size));
  }

  /**
   * The picture as a buffer of [h, w, 4] bytes, which is the caller's.
   * @param {Picture} picture
   * @param {Size} size
   * @returns {Promise<GPUBuffer>}
   */
  async toBuffer({ buffer: source, bytesPerRow, offset }, { width, height }) {
    const make = () => this.#device.createBuffer({ label: 'wgvae picture', size: 4 * width * height, usage: OF_BUFFERS });
    return created(this.#device, 'buffer', make, (buffer) => {
      const encoder = this.#device.createCommandEncoder({ label: 'wgvae picture to buffer' });
      // Rows lie apart there.
      for (let row = 0; row < height; row += 1) encoder.copyBufferToBuffer(source, offset + row * bytesPerRow, buffer, 4 * width * row, 4 * width);
      this.#device.queue.submit([encoder.finish()]);
    });
  }

  /**
   * Lets go of callers' canvases, before the device is destroyed: such a canvas shows nothing any
   * more, and reading it makes later Firefoxes lose track of ids.
   */
  release() {
    for (const reference of this.#drawn) {
      const context = reference.deref();
      // Its owner may use it for something else by now.
      if (context && (configurationOf(context)?.device ?? this.#device) === this.#device) context.unconfigure();
    }
    this.#drawn.clear();
  }

  /** @param {GPUCanvasContext} context */
  #remember(context) {
    let isKnown = false;
    for (const reference of this.#drawn) {
      const known = reference.deref();
      if (!known) this.#drawn.delete(reference);
      isKnown ||= known === context;
    }
    if (!isKnown) this.#drawn.add(new WeakRef(context));
  }
}

/**
 * What the canvas shows, taken from it before this returns.
 * @param {GPUDevice} device
 * @param {OffscreenCanvas} canvas
 * @param {GPUCanvasContext} context
 */
async function takeBitmap(device, canvas, context) {
  try {
    // Directly before: reading a canvas takes ids from Firefox 153's pool without sending what is
    // queued, and if that is the drop of a collected object with such an id, the browser ends
    // (tests/browser/upstream). A submission sends it.
    device.queue.submit([]);
    return canvas.transferToImageBitmap();
  } catch (cause) {
    throw new WgvaeError('canvas', `the browser makes no ImageBitmap of the canvas: ${messageOf(cause)}`, { cause });
  } finally {
    // Otherwise the browser keeps a texture for the next picture.
    context.unconfigure();
  }
}

/**
 * A picture in memory as an ImageBitmap.
 * @param {ImageData} image
 */
export async function bitmapOf(image) {
  try {
    return await createImageBitmap(image);
  } catch (cause) {
    throw new WgvaeError('canvas', `the browser makes no ImageBitmap of ${image.width}x${image.height} pixels: ${messageOf(cause)}`, { cause });
  }
}

/**
 * Copies the picture into the context's texture. That is done when this returns; the promise tells
 * whether the device took it.
 * @param {GPUDevice} device
 * @param {GPUCanvasContext} context
 * @param {Picture} picture
 * @param {Size} size
 */
function draw(device, context, picture, size) {
  return inErrorScopes(device, () => copy(device, context.getCurrentTexture(), picture, size));
}

/**
 * @param {GPUDevice} device
 * @param {GPUTexture} texture
 * @param {Picture} picture
 * @param {Size} size
 */
function copy(device, texture, { buffer, bytesPerRow, offset }, size) {
  const encoder = device.createCommandEncoder({ label: 'wgvae picture to texture' });
  encoder.copyBufferToTexture({ buffer, bytesPerRow, offset }, { texture }, [size.width, size.height]);
  device.queue.submit([encoder.finish()]);
}

/**
 * What `make` makes, once the device has taken it and what `write` does with it; else it is
 * destroyed.
 * @template {GPUTexture | GPUBuffer} T
 * @param {GPUDevice} device
 * @param {string} what it is
 * @param {() => T} make
 * @param {(made: T) => void} write
 * @returns {Promise<T>}
 */
async function created(device, what, make, write) {
  /** @type {T | undefined} */
  let made;
  try {
    await inErrorScopes(device, () => write((made = make())), what);
  } catch (error) {
    /** @type {T | undefined} */ (made)?.destroy();
    throw error;
  }
  return /** @type {T} */ (/** @type {unknown} */ (made));
}

/**
 * Does `write`, before it returns. The promise tells whether the device took it.
 * @param {GPUDevice} device
 * @param {() => void} write
 * @param {string} [what] is written
 */
async function inErrorScopes(device, write, what = 'canvas') {
  const code = what === 'canvas' ? 'canvas' : 'device-failed';
  device.pushErrorScope('validation');
  device.pushErrorScope('out-of-memory');
  /** @type {WgvaeError | undefined} */
  let refusal;
  try {
    write();
  } catch (cause) {
    refusal = new WgvaeError(code, `the ${what} cannot be written: ${messageOf(cause)}`, { cause });
  }
  const scopes = [device.popErrorScope(), device.popErrorScope(), provoke(device)];
  const [memory, validation, answer] = await Promise.all(scopes).catch((cause) => {
    throw refusal ?? new WgvaeError('device-failed', `the device did not write the ${what}: ${messageOf(cause)}`, { cause });
  });
  if (refusal) throw refusal;
  if (memory) throw new WgvaeError('out-of-memory', `the device has no memory for the ${what}: ${memory.message}`, { reason: memory.message });
  if (validation) throw new WgvaeError(code, `the device refused to write the ${what}: ${validation.message}`, { reason: validation.message });
  if (!answer && (await isLost(device))) throw new WgvaeError('device-lost', 'the GPU device was lost before the picture was written');
}

/**
 * An error that a device reports if it is not lost: a lost one takes everything and reports
 * nothing, and Firefox says later that it is lost.
 * @param {GPUDevice} device
 */
function provoke(device) {
  device.pushErrorScope('validation');
  device.createSampler({ lodMinClamp: -1 });
  return device.popErrorScope();
}

/**
 * The canvas's context, if it can show a picture of this size.
 * @param {GPUDevice} device
 * @param {HTMLCanvasElement | OffscreenCanvas} canvas
 * @param {Size} size
 */
export function checkCanvas(device, canvas, size) {
  if (!fitsCanvas(device, size)) {
    const limit = device.limits.maxTextureDimension2D;
    throw mismatch('canvas', 'picture on a canvas', `at most ${limit} pixels a side on this device`, `${size.width}x${size.height}`);
  }
  const known = contexts.get(canvas);
  if (known) return known;
  let context;
  try {
    context = /** @type {GPUCanvasContext | null} */ (canvas.getContext('webgpu'));
  } catch (cause) {
    throw new WgvaeError('canvas', `the canvas cannot be used: ${messageOf(cause)}`, { cause });
  }
  if (!context) throw mismatch('canvas', 'canvas', 'one without a context, or with one for WebGPU', 'a context of another kind');
  contexts.set(canvas, context);
  return context;
}

/**
 * Whether a canvas can show a picture of this size.
 * @param {GPUDevice} device
 * @param {Size} size
 */
export function fitsCanvas(device, { width, height }) {
  return Math.max(width, height) <= device.limits.maxTextureDimension2D;
}

/**
 * Makes the canvas one of this size on this device, if it is not.
 * @param {GPUDevice} device
 * @param {HTMLCanvasElement | OffscreenCanvas} canvas
 * @param {GPUTextureFormat} format
 * @param {Size} size
 * @returns {GPUCanvasContext}
 */
function configure(device, canvas, format, { width, height }) {
  const context = checkCanvas(device, canvas, { width, height });
  const usage = GPUTextureUsage.COPY_DST | GPUTextureUsage.RENDER_ATTACHMENT;
  try {
    const now = configurationOf(context);
    const isSame = now?.device === device && now.format === format && now.usage === usage && now.alphaMode === 'opaque';
    if (isSame && canvas.width === width && canvas.height === height) return context;
    // Firefox makes textures for each change of a canvas that has a configuration, of one side as
    // well.
    context.unconfigure();
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    context.configure({ device, format, usage, alphaMode: 'opaque' });
  } catch (cause) {
    throw new WgvaeError('canvas', `the canvas cannot be used: ${messageOf(cause)}`, { cause });
  }
  return context;
}

/**
 * What a context is configured with. Null if it is not, undefined where the browser does not say.
 * @param {GPUCanvasContext} context
 */
function configurationOf(context) {
  return context.getConfiguration?.();
}
