// @ts-check
// The way of a picture from GPU memory to the page: a copy into a canvas, a texture or a buffer,
// without a readback.

import { messageOf, mismatch, WgvaeError } from './errors.js';
import { isLost } from './loss.js';

/**
 * A decoded picture on the device. Rows are `bytesPerRow` apart, channels in the order of `format`.
 * @typedef {{ buffer: GPUBuffer, bytesPerRow: number, offset: number, format: GPUTextureFormat }}
 * Picture
 */
/** @typedef {{ width: number, height: number }} Size pixels */

/**
 * Usage of a texture for a caller: COPY_SRC, COPY_DST, TEXTURE_BINDING and RENDER_ATTACHMENT of
 * GPUTextureUsage.
 */
const OF_TEXTURES = 1 | 2 | 4 | 16;

/** Usage of a buffer for a caller: COPY_SRC, COPY_DST and STORAGE of GPUBufferUsage. */
const OF_BUFFERS = 4 | 8 | 128;

/**
 * Contexts of canvases that were used before: in workers, Firefox 153 returns a canvas's context
 * only once.
 * @type {WeakMap<HTMLCanvasElement | OffscreenCanvas, GPUCanvasContext>}
 */
const contexts = new WeakMap();

/**
 * Returns the format of canvases and pictures on this device. Other formats would be converted for
 * every display, and crash Firefox 153 where it draws pages without a GPU.
 * @returns {GPUTextureFormat}
 */
export function canvasFormat() {
  // Without it, there are no canvases.
  return globalThis.navigator?.gpu?.getPreferredCanvasFormat() ?? 'rgba8unorm';
}

/** The canvases that show pictures of one device. */
export class Canvases {
  #device;
  /**
   * Callers' canvases that were drawn on and still exist.
   * @type {Set<WeakRef<GPUCanvasContext>>}
   */
  #drawn = new Set();
  /** Canvas for making bitmaps. @type {OffscreenCanvas | undefined} */
  #own;

  /** @param {GPUDevice} device */
  constructor(device) {
    this.#device = device;
  }

  /**
   * Gives `canvas` the size of the picture and copies the picture there. The canvas has it when
   * this returns; the promise rejects if the device refused the copy.
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
   * Returns the picture as an ImageBitmap, by way of a canvas of our own.
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
   * Returns the picture as a texture that belongs to the caller.
   * @param {Picture} picture
   * @param {Size} size
   * @returns {Promise<GPUTexture>}
   */
  async toTexture(picture, size) {
    const make = () => this.#device.createTexture({ label: 'wgvae picture', size: [size.width, size.height], format: picture.format, usage: OF_TEXTURES });
    return created(this.#device, 'texture', make, (texture) => copy(this.#device, texture, picture, size));
  }

  /**
   * Returns the picture as a buffer of [h, w, 4] bytes that belongs to the caller.
   * @param {Picture} picture
   * @param {Size} size
   * @returns {Promise<GPUBuffer>}
   */
  async toBuffer({ buffer: source, bytesPerRow, offset }, { width, height }) {
    const make = () => this.#device.createBuffer({ label: 'wgvae picture', size: 4 * width * height, usage: OF_BUFFERS });
    return created(this.#device, 'buffer', make, (buffer) => {
      const encoder = this.#device.createCommandEncoder({ label: 'wgvae picture to buffer' });
      // Source rows are padded.
      for (let row = 0; row < height; row += 1) encoder.copyBufferToBuffer(source, offset + row * bytesPerRow, buffer, 4 * width * row, 4 * width);
      this.#device.queue.submit([encoder.finish()]);
    });
  }

  /**
   * Releases callers' canvases before the device is destroyed. Otherwise such a canvas shows
   * nothing any more, and reading it makes later Firefoxes lose track of ids.
   */
  release() {
    for (const reference of this.#drawn) {
      const context = reference.deref();
      // Its owner may have given it another device by now.
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
 * Takes the picture of the canvas before this returns.
 * @param {GPUDevice} device
 * @param {OffscreenCanvas} canvas
 * @param {GPUCanvasContext} context
 */
async function takeBitmap(device, canvas, context) {
  try {
    // Submits directly before the read. Reading a canvas takes ids from Firefox 153's pool without
    // sending what is queued. If the queue holds the drop of a collected object with such an id,
    // the browser crashes (tests/browser/upstream). A submission sends the queue.
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
 * Returns a picture in memory as an ImageBitmap. Its colours are multiplied by alpha, because
 * `bitmaprenderer` of Firefox 153 shows others wrong.
 * @param {ImageData} image
 */
export async function bitmapOf(image) {
  try {
    return await createImageBitmap(image, { premultiplyAlpha: 'premultiply' });
  } catch (cause) {
    throw new WgvaeError('canvas', `the browser makes no ImageBitmap of ${image.width}x${image.height} pixels: ${messageOf(cause)}`, { cause });
  }
}

/**
 * Copies the picture into the context's texture before this returns. The promise rejects if the
 * device refused the copy.
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
 * Returns the result of `make` once the device has accepted it and the work of `write` on it.
 * Destroys the result after a failure.
 * @template {GPUTexture | GPUBuffer} T
 * @param {GPUDevice} device
 * @param {string} what its name in errors
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
 * Calls `write` before this returns. The promise rejects if the device refused the work.
 * @param {GPUDevice} device
 * @param {() => void} write
 * @param {string} [what] its target, for errors
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
 * Provokes an error that a device reports only if it is not lost. A lost one accepts everything and
 * reports nothing, and Firefox says only later that it is lost.
 * @param {GPUDevice} device
 */
function provoke(device) {
  device.pushErrorScope('validation');
  device.createSampler({ lodMinClamp: -1 });
  return device.popErrorScope();
}

/**
 * Returns the canvas's context, if it can show a picture of this size.
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
 * True if a canvas can show a picture of this size.
 * @param {GPUDevice} device
 * @param {Size} size
 */
export function fitsCanvas(device, { width, height }) {
  return Math.max(width, height) <= device.limits.maxTextureDimension2D;
}

/**
 * Configures the canvas for this size and this device, unless it already is.
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
    // Firefox allocates textures for each change of a configured canvas, even of one side.
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
 * Returns the configuration of a context: null if it has none, undefined if the browser does not
 * tell.
 * @param {GPUCanvasContext} context
 */
function configurationOf(context) {
  return context.getConfiguration?.();
}
