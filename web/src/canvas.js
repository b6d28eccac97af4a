// @ts-check
// The way from a picture in GPU memory to what a page shows: a copy into a canvas, no readback.

import { messageOf, mismatch, WgvaeError } from './errors.js';

/**
 * A decoded picture on the device, rows `bytesPerRow` apart, in the order of channels that `format` says.
 * @typedef {{ buffer: GPUBuffer, bytesPerRow: number, offset: number, format: GPUTextureFormat }} Picture
 */
/** @typedef {{ width: number, height: number }} Size pixels */

/**
 * Contexts of canvases that were used before: in workers Firefox 153 gives a canvas's context only once.
 * @type {WeakMap<HTMLCanvasElement | OffscreenCanvas, GPUCanvasContext>}
 */
const contexts = new WeakMap();

/**
 * The format that canvases and pictures have here. Others are converted each time they are shown, and Firefox 153 crashes on them where it draws pages
 * without a GPU.
 * @returns {GPUTextureFormat}
 */
export function canvasFormat() {
  return navigator.gpu.getPreferredCanvasFormat();
}

/**
 * Makes `canvas` as large as the picture and copies it there. The canvas has it when this returns; the promise tells whether the device took it.
 * @param {GPUDevice} device
 * @param {HTMLCanvasElement | OffscreenCanvas} canvas
 * @param {Picture} picture
 * @param {Size} size
 * @returns {Promise<void>}
 */
export function present(device, canvas, picture, size) {
  const context = configure(device, canvas, picture.format, size);
  return inErrorScopes(device, () => {
    const encoder = device.createCommandEncoder({ label: 'wgvae picture to canvas' });
    const { buffer, bytesPerRow, offset } = picture;
    encoder.copyBufferToTexture({ buffer, bytesPerRow, offset }, { texture: context.getCurrentTexture() }, [size.width, size.height]);
    device.queue.submit([encoder.finish()]);
  });
}

/**
 * Does `write`. The promise tells whether the device took it.
 * @param {GPUDevice} device
 * @param {() => void} write
 */
function inErrorScopes(device, write) {
  let errors;
  device.pushErrorScope('validation');
  device.pushErrorScope('out-of-memory');
  try {
    write();
  } finally {
    errors = Promise.all([device.popErrorScope(), device.popErrorScope()]);
    // If `write` threw, nobody waits for them.
    errors.catch(() => {});
  }
  return errors.then(([memory, validation]) => {
    if (memory) throw new WgvaeError('out-of-memory', `the device has no memory for the canvas: ${memory.message}`, { reason: memory.message });
    if (validation) throw new WgvaeError('canvas', `the device refused to write the canvas: ${validation.message}`, { reason: validation.message });
  });
}

/**
 * The picture as an ImageBitmap, through a canvas of our own.
 * @param {GPUDevice} device
 * @param {Picture} picture
 * @param {Size} size
 */
export async function toBitmap(device, picture, size) {
  const canvas = new OffscreenCanvas(size.width, size.height);
  const written = present(device, canvas, picture, size);
  // In the same task as the copy: afterwards the canvas is empty again.
  const bitmap = canvas.transferToImageBitmap();
  await written;
  return bitmap;
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
 * @param {GPUDevice} device
 * @param {HTMLCanvasElement | OffscreenCanvas} canvas
 * @param {GPUTextureFormat} format
 * @param {Size} size
 * @returns {GPUCanvasContext}
 */
function configure(device, canvas, format, size) {
  const context = checkCanvas(device, canvas, size);
  try {
    canvas.width = size.width;
    canvas.height = size.height;
    context.configure({ device, format, usage: GPUTextureUsage.COPY_DST | GPUTextureUsage.RENDER_ATTACHMENT, alphaMode: 'opaque' });
  } catch (cause) {
    throw new WgvaeError('canvas', `the canvas cannot be used: ${messageOf(cause)}`, { cause });
  }
  return context;
}
