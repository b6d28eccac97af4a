// @ts-check
// Helpers for tests inside the page, as the global `lab`: the package, and ways to get results out
// of the browser.

// @ts-ignore the server's address of it
import * as served from '/web/src/index.js';
// @ts-ignore the server's address of it
import { startWasm as startServed } from '/web/src/wasm.js';
import * as gpu from './gpu-watch.js';

/**
 * A model on WebGPU.
 * @template T
 * @typedef {T & { readonly device: GPUDevice }} OnGpu
 */

const wgvae = /** @type {typeof import('../../../web/src/index.js')} */ (served);

/** Device of the tests' models: what the page's address says, or WebGPU. */
const DEVICE = /** @type {'webgpu' | 'cpu'} */ (new URLSearchParams(location.search).get('device') ?? 'webgpu');

/** The instance of the wasm module that the package uses. */
const startWasm = /** @type {typeof import('../../../web/src/wasm.js').startWasm} */ (startServed);

/**
 * Returns the value of a promise, or its error in a form that can leave the page.
 * @template T
 * @param {Promise<T> | (() => T | Promise<T>)} task
 * @returns {Promise<{ value?: T, error?: any }>}
 */
async function outcome(task) {
  try {
    const value = await (typeof task === 'function' ? task() : task);
    return { value };
  } catch (error) {
    return { error: describe(error) };
  }
}

/** @param {unknown} error */
function describe(error) {
  if (!(error instanceof Error)) return { name: error instanceof DOMException ? error.name : typeof error, message: String(error) };
  const { name, message, ...facts } = /** @type {any} */ (error);
  return { ...facts, cause: undefined, name, message, isTyped: error instanceof wgvae.WgvaeError };
}

/** @param {ArrayBufferView} view */
function base64(view) {
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  let text = '';
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

/**
 * Returns the pixels of anything that can be drawn, by way of a 2d canvas.
 * @param {ImageBitmap | HTMLCanvasElement | OffscreenCanvas} source
 */
function pixels(source) {
  const canvas = new OffscreenCanvas(source.width, source.height);
  const context = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext('2d'));
  context.drawImage(source, 0, 0);
  return context.getImageData(0, 0, source.width, source.height);
}

/** Returns the pixels of a picture file. @param {string} url */
async function filePixels(url) {
  const blob = await fetch(url).then((response) => response.blob());
  return pixels(await createImageBitmap(blob, { colorSpaceConversion: 'none', premultiplyAlpha: 'none' }));
}

/** Returns a file of the server as a Blob, as if the user had chosen it. @param {string} url */
async function blob(url) {
  return fetch(url).then((response) => response.blob());
}

/**
 * Returns the largest difference of a channel of two pictures, in levels.
 * @param {ImageData} a
 * @param {ImageData} b
 */
function levelsApart(a, b) {
  if (a.width !== b.width || a.height !== b.height) return Infinity;
  return a.data.reduce((most, value, index) => Math.max(most, Math.abs(value - b.data[index])), 0);
}

/**
 * Opens a decoder of a model folder on the server, on the session's device.
 * @param {string} folder ends with a slash
 * @param {Partial<import('../../../web/src/index.js').ModelOptions>} [options]
 * @returns {Promise<OnGpu<import('../../../web/src/index.js').Decoder>>}
 */
function open(folder, options = {}) {
  return /** @type {Promise<any>} */ (wgvae.createDecoder({ model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json`, ...options, device: options.device ?? DEVICE }));
}

/**
 * Opens the same model with its encoder.
 * @param {string} folder
 * @param {Partial<import('../../../web/src/index.js').ModelOptions>} [options]
 * @returns {Promise<OnGpu<import('../../../web/src/index.js').Vae>>}
 */
function openVae(folder, options = {}) {
  return /** @type {Promise<any>} */ (wgvae.createVae({ model: `${folder}both.safetensors`, config: `${folder}config.json`, ...options, device: options.device ?? DEVICE }));
}

/**
 * Waits until `condition` holds; returns false if it never does.
 * @param {() => boolean | Promise<boolean>} condition
 * @param {number} [seconds]
 */
async function until(condition, seconds = 120) {
  for (const end = performance.now() + 1000 * seconds; performance.now() < end; ) {
    if (await condition()) return true;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return condition();
}

/** @type {Map<string, Promise<ImageData>>} */
const goldens = new Map();

/**
 * True if a picture equals diffusers' within one level, from the bytes in golden.json.
 * @param {string} folder
 * @param {ImageData} image
 */
async function isRight(folder, image) {
  if (!goldens.has(folder)) {
    const golden = fetch(`${folder}golden.json`).then((response) => response.json());
    goldens.set(folder, golden.then(({ width, height, rgba }) => new ImageData(Uint8ClampedArray.from(rgba), width, height)));
  }
  return levelsApart(await /** @type {Promise<ImageData>} */ (goldens.get(folder)), image) <= 1;
}

/** @type {Map<string, Promise<OnGpu<import('../../../web/src/index.js').Decoder>>>} */
const decoders = new Map();

/**
 * Returns a decoder that tests share if they need no new one: Chromium compiles the shaders of each
 * device again, for seconds. It has decoded once, so that it holds everything that it keeps between
 * decodes.
 * @param {string} folder
 */
function shared(folder) {
  const start = async () => {
    const decoder = await open(folder);
    await decoder.decode(`${folder}latents.safetensors`, { output: 'image-data' });
    return decoder;
  };
  if (!decoders.has(folder)) decoders.set(folder, start());
  return /** @type {Promise<OnGpu<import('../../../web/src/index.js').Decoder>>} */ (decoders.get(folder));
}

/**
 * The device that tests share. The module destroys a device of its own when nobody holds its object
 * any more.
 * @type {Promise<{ gpu: object, device: GPUDevice }> | undefined}
 */
let common;

/**
 * Returns a device that the tests of a page share if they need none of their own. It has what the
 * package asks for, and keeps every kernel: a browser does not compile a kernel that it has, so
 * each kernel is compiled once for all decoders on this device. On the CPU, there is nothing to
 * share.
 */
async function device() {
  if (DEVICE === 'cpu') return DEVICE;
  const start = async () => {
    const { Device } = await startWasm();
    const gpu = await Device.request(navigator.gpu, false, false);
    const device = gpu.gpuDevice();
    /** @type {Promise<GPUComputePipeline>[]} */
    const kernels = [];
    device.createComputePipelineAsync = (/** @type {GPUComputePipelineDescriptor} */ descriptor) => {
      const kernel = GPUDevice.prototype.createComputePipelineAsync.call(device, descriptor);
      kernels.push(kernel);
      return kernel;
    };
    return { gpu, device };
  };
  common ??= start();
  return (await common).device;
}

/** @type {Map<string, Promise<OnGpu<import('../../../web/src/index.js').Vae>>>} */
const vaes = new Map();

/**
 * Returns a shared model with its encoder, in f32, which has encoded once.
 * @param {string} folder
 */
function sharedVae(folder) {
  const start = async () => {
    const vae = await openVae(folder, { precision: 'f32' });
    await vae.encode(`${folder}image.safetensors`);
    return vae;
  };
  if (!vaes.has(folder)) vaes.set(folder, start());
  return /** @type {Promise<OnGpu<import('../../../web/src/index.js').Vae>>} */ (vaes.get(folder));
}

/**
 * Returns a picture of noise, opaque unless `alpha` is less; a different one for each seed from 1.
 * @param {number} width
 * @param {number} height
 */
function noise(width, height, alpha = 255, seed = 1) {
  let state = seed;
  const next = () => (state = (state * 48271) % 2147483647);
  const data = Uint8ClampedArray.from({ length: 4 * width * height }, (_, index) => (index % 4 === 3 ? alpha : next() % 256));
  return new ImageData(data, width, height);
}

/** Draws a picture on a new canvas. @param {ImageData} image */
function canvasOf(image) {
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext('2d')?.putImageData(image, 0, 0);
  return canvas;
}

/**
 * Returns the values [c, h, w] of a part of a picture, as an encoder takes them.
 * @param {ImageData} image
 */
function valuesOf({ data, width }, x = 0, y = 0, columns = width, rows = data.length / 4 / width, channels = 3) {
  const values = new Float32Array(channels * columns * rows);
  for (let index = 0; index < values.length; index += 1) {
    const [channel, row, column] = [Math.floor(index / columns / rows), Math.floor(index / columns) % rows, index % columns];
    values[index] = Math.fround(2 * Math.fround(data[4 * ((y + row) * width + x + column) + channel] / 255)) - 1;
  }
  return { data: values, shape: [channels, rows, columns] };
}

/**
 * Returns all frames of a clip as floats, and the memory of each part.
 * @param {import('../../../web/src/index.js').Decoder} decoder
 * @param {import('../../../web/src/index.js').ClipInput} latents
 * @param {import('../../../web/src/index.js').ClipOptions} [options]
 */
async function clip(decoder, latents, options) {
  /** @type {{ frames: Float32Array[], peaks: number[], shape: readonly number[] }} */
  const found = { frames: [], peaks: [], shape: [] };
  for await (const { data, shape } of decoder.clip(latents, { ...options, output: 'raw' })) {
    found.frames.push(data);
    found.peaks.push(decoder.report?.measured_peak_bytes ?? NaN);
    found.shape = shape;
  }
  return found;
}

/**
 * Encodes a clip. Returns its parts, moments by default, and the memory of each.
 * @param {import('../../../web/src/index.js').Encoder} encoder
 * @param {import('../../../web/src/index.js').ClipPictures} frames
 * @param {import('../../../web/src/index.js').EncodeClipOptions} [options]
 */
async function encodeClip(encoder, frames, options) {
  /** @type {{ parts: import('../../../web/src/index.js').EncodedPart[], peaks: number[] }} */
  const found = { parts: [], peaks: [] };
  for await (const part of encoder.encodeClip(frames, { output: 'moments', ...options })) {
    found.parts.push(part);
    found.peaks.push(encoder.report?.measured_peak_bytes ?? NaN);
  }
  return found;
}

/**
 * Returns the smallest budget for a clip. Repeats because the first part may need less than the
 * others, and is named first.
 * @param {(memoryBudget: number) => unknown} plan
 */
async function smallestBudget(plan) {
  let budget = 1;
  for (let tries = 0; tries < 4; tries += 1) budget = (await outcome(() => plan(budget))).error?.smallest ?? budget;
  return budget;
}

/**
 * True if two arrays are equal bit by bit.
 * @param {ArrayLike<number>} a
 * @param {ArrayLike<number>} b
 */
function isSame(a, b) {
  return a.length === b.length && Array.prototype.every.call(a, (value, index) => Object.is(value, b[index]));
}

/**
 * Opens `model` beside the config.json of `folder` and decodes with it. Returns whether the picture
 * is right, or the error; the notices; and whether all GPU memory was freed.
 * @param {string} folder
 * @param {string | string[]} model
 * @param {Partial<import('../../../web/src/index.js').ModelOptions>} [options]
 */
async function attempt(folder, model, options = {}) {
  const { device } = await shared(folder);
  const before = gpu.liveBytes();
  /** @type {string[]} */
  const notices = [];
  const onNotice = (/** @type {{ code: string }} */ { code }) => notices.push(code);
  const { error, value } = await outcome(async () => {
    const decoder = await open(folder, { model, onNotice, device, ...options });
    const image = await decoder.decode(`${folder}latents.safetensors`, { output: 'image-data' });
    await decoder.destroy();
    return isRight(folder, image);
  });
  const freed = await until(() => gpu.liveBytes() === before);
  const { name, code, status, message, isTyped } = error ?? {};
  return { right: value, name, code, status, message, isTyped, notices, freed };
}

/**
 * Loses the device, so that the next decode reads the weights again. Returns the result of that
 * decode and the rest of the decoder's memory.
 * @param {string} folder
 * @param {OnGpu<import('../../../web/src/index.js').Decoder>} decoder
 */
async function readAgain(folder, decoder) {
  decoder.device.destroy();
  const { error } = await outcome(decoder.decode(`${folder}latents.safetensors`));
  await decoder.destroy();
  return { code: error?.code, isTyped: error?.isTyped, left: gpu.liveBytes(), devices: gpu.liveDevices() };
}

/** Returns the folders of streams that were not removed. */
async function streamFolders() {
  const root = await navigator.storage.getDirectory();
  const ours = await root.getDirectoryHandle('wgvae', { create: true });
  const names = [];
  for await (const name of /** @type {any} */ (ours).keys()) if (name.startsWith('stream-')) names.push(name);
  return names;
}

/** Returns the texts of the files in one of the package's folders. @param {string} name */
async function kept(name) {
  const texts = [];
  try {
    const ours = await (await navigator.storage.getDirectory()).getDirectoryHandle('wgvae');
    for await (const file of /** @type {any} */ (await ours.getDirectoryHandle(name)).values()) texts.push(await (await file.getFile()).text());
  } catch {
    // There is no such folder.
  }
  return texts;
}

gpu.startWatching();

export const lab = { wgvae, startWasm, gpu, outcome, describe, base64, pixels, filePixels, blob, levelsApart, isRight, open, openVae, device, shared, sharedVae, noise, canvasOf, valuesOf, isSame, clip, encodeClip, smallestBudget, until, attempt, readAgain, streamFolders, kept };

Object.assign(globalThis, { lab });
