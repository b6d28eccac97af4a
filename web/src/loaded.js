// @ts-check
// The decoder: one model on one device, decodes one after the other, and what happens when a caller aborts or the device is lost.

import { bitmapOf, canvasFormat, checkCanvas, fitsCanvas } from './canvas.js';
import { startEngine } from './engine.js';
import { mismatch, WgvaeError, wgvaeError } from './errors.js';
import { areOnGpu, isFile, openLatents } from './latents.js';
import { guarded } from './listener.js';
import { deviceLost, isLoss } from './loss.js';
import { openModel } from './model.js';
import { orAborted, Queue } from './queue.js';
import { Access, kindOf } from './sources.js';
import { startWasm } from './wasm.js';

/** @typedef {import('./index.js').DecoderOptions} DecoderOptions */
/** @typedef {import('./index.js').DecodeOptions} DecodeOptions */
/** @typedef {import('./index.js').LatentsInput} LatentsInput */
/** @typedef {import('./canvas.js').Size} Size */
/** @typedef {import('./wasm.js').Wasm} Wasm */

/** What the module calls each kind of result. */
const OUTPUTS = /** @type {const} */ ({ bitmap: 'canvas', 'image-data': 'rgba8', raw: 'raw' });

/** A submission after a lost device takes this part of what it took before. */
const RECOVERY_PART = 1 / 4;

/**
 * Opens a model and loads it onto a GPU.
 * @param {DecoderOptions} options
 * @returns {Promise<Decoder>}
 */
export async function createDecoder(options) {
  checkBrowser(options);
  const lifetime = new AbortController();
  const signal = either(options.signal, lifetime.signal);
  signal.throwIfAborted();
  const loading = load(options, lifetime, signal);
  try {
    return await orAborted(loading, signal);
  } catch (error) {
    // An abort does not wait for the load, which may end well after it.
    loading.then((decoder) => decoder.destroy(), () => {});
    lifetime.abort(error);
    throw wgvaeError(error);
  }
}

/** @param {DecoderOptions} options */
function checkBrowser({ device }) {
  if (!device && !globalThis.navigator?.gpu) {
    throw new WgvaeError('no-webgpu', 'this browser has no WebGPU (navigator.gpu), or the page is not served over https or from localhost');
  }
  // The module asks every adapter for it. Chrome and Edge have it since 127.
  if (globalThis.GPUAdapter && !('info' in GPUAdapter.prototype)) {
    throw mismatch('no-webgpu', 'WebGPU of this browser', 'one with GPUAdapter.info', 'an older one');
  }
}

/**
 * @param {DecoderOptions} options
 * @param {AbortController} lifetime
 * @param {AbortSignal} signal
 */
async function load(options, lifetime, signal) {
  const wasm = await startWasm(options.wasm);
  // What breaks the module ends everything that this decoder has under way, and whatever it is asked later.
  wasm.broken.addEventListener('abort', () => lifetime.abort(wasm.broken.reason), { signal: lifetime.signal });
  const access = new Access(signal, guarded(options.onNotice), options.cache ?? false);
  const model = await openModel(wasm, options, access);
  try {
    signal.throwIfAborted();
    const engine = await startEngine(wasm, options, model, guarded(options.onProgress));
    return new Decoder(wasm, options, { access, model, engine, lifetime });
  } catch (error) {
    model.free();
    throw error;
  }
}

/**
 * @typedef {import('./index.js').Decoder} PublicDecoder
 * @implements {PublicDecoder}
 */
class Decoder {
  #wasm;
  #options;
  #access;
  #model;
  #engine;
  /** Kept here, so that it outlives the module's part. @type {import('./index.js').DecoderInfo} */
  #info;
  #lifetime;
  #queue = new Queue();
  /** Milliseconds; undefined for the module's own choice. @type {number | undefined} */
  #submissionTarget;
  /** @type {import('./index.js').Report | undefined} */
  #report;
  /** Of the last decode, while it is still in GPU memory. @type {{ picture: import('./canvas.js').Picture, size: Size } | undefined} */
  #shown;
  /** What `shapeOf` has read, for the next decode of the same file. @type {{ input: LatentsInput, latents: import('../pkg/wgvae.js').Latents } | undefined} */
  #opened;
  /** @type {Promise<void> | undefined} */
  #destroyed;
  /** What was left at the end. @type {import('./index.js').Ledger | undefined} */
  #lastLedger;

  /**
   * @param {Wasm} wasm
   * @param {DecoderOptions} options
   * @param {{ access: Access, model: import('./model.js').Model, engine: import('./engine.js').Engine, lifetime: AbortController }} parts
   */
  constructor(wasm, options, { access, model, engine, lifetime }) {
    this.#wasm = wasm;
    this.#options = options;
    this.#access = access;
    this.#model = model;
    this.#engine = engine;
    this.#lifetime = lifetime;
    this.#info = infoOf(model, engine);
  }

  get info() {
    return this.#info;
  }

  get device() {
    return this.#engine.device;
  }

  get report() {
    return this.#report;
  }

  ledger() {
    if (this.#lastLedger) return this.#lastLedger;
    this.#wasm.broken.throwIfAborted();
    return this.#engine.gpu.ledger();
  }

  /** @param {import('./index.js').PlanOptions} options */
  plan({ width, height, ...options }) {
    this.#throwIfDestroyed();
    const scale = this.info.pixels_per_latent;
    for (const [side, pixels] of Object.entries({ width, height })) {
      if (pixels > 0 && Number.isInteger(pixels / scale)) continue;
      throw mismatch('input', `${side} of the picture`, `a multiple of ${scale} pixels`, `${pixels}`);
    }
    try {
      return this.#engine.planner.plan(width / scale, height / scale, this.#moduleOptions(options));
    } catch (error) {
      throw wgvaeError(error);
    }
  }

  /**
   * @param {LatentsInput} input
   * @param {{ signal?: AbortSignal }} [options]
   * @returns {Promise<any>}
   */
  async shapeOf(input, options = {}) {
    this.#throwIfDestroyed();
    const signal = either(options.signal, this.#lifetime.signal);
    try {
      return await orAborted(this.#readShape(input, signal), signal);
    } catch (error) {
      throw wgvaeError(error);
    }
  }

  /**
   * @param {LatentsInput} latents
   * @param {DecodeOptions} [options]
   * @returns {Promise<any>}
   */
  async decode(latents, options = {}) {
    this.#throwIfDestroyed();
    const { output = 'bitmap', canvas } = options;
    if (!(output in OUTPUTS)) throw mismatch('input', 'output', Object.keys(OUTPUTS).join(', '), `${output}`);
    if (canvas && !isCanvas(canvas)) throw mismatch('canvas', 'canvas', 'an HTMLCanvasElement or an OffscreenCanvas', kindOf(canvas));
    const signal = either(options.signal, this.#lifetime.signal);
    try {
      return await this.#queue.run(() => this.#decodeNow(latents, options, signal), signal);
    } catch (error) {
      throw wgvaeError(error);
    }
  }

  /** @param {HTMLCanvasElement | OffscreenCanvas} canvas */
  async present(canvas) {
    this.#throwIfDestroyed();
    if (!this.#shown) throw mismatch('input', 'picture to present', 'that of a decode into a canvas or a bitmap just before', 'none');
    const { device, canvases } = this.#engine;
    try {
      await canvases.present(canvas, this.#shown.picture, this.#shown.size);
    } catch (error) {
      throw (await isLoss(error, device)) ? deviceLost(error) : error;
    }
  }

  destroy() {
    this.#destroyed ??= this.#destroy();
    return this.#destroyed;
  }

  async #destroy() {
    this.#lifetime.abort(new WgvaeError('destroyed', 'the decoder was destroyed'));
    await this.#queue.idle();
    this.#shown = undefined;
    this.#keep(undefined);
    const ledger = this.#engine.free();
    // A broken module counts nothing.
    if (!this.#wasm.broken.aborted) this.#lastLedger = ledger;
    this.#model.free();
  }

  /**
   * @param {LatentsInput} latents
   * @param {DecodeOptions} options
   * @param {AbortSignal} signal
   */
  async #decodeNow(latents, options, signal) {
    this.#access.signal = signal;
    try {
      return await this.#attempt(latents, options, signal);
    } catch (error) {
      if (signal.aborted || !(await isLoss(error, this.device))) throw error;
      // A caller's device, and latents that were on the lost one, are not ours to make again.
      if (this.#options.device || areOnGpu(latents)) throw deviceLost(error);
    }
    await this.#recover(options.onProgress);
    signal.throwIfAborted();
    try {
      return await this.#attempt(latents, options, signal);
    } catch (error) {
      throw (await isLoss(error, this.device)) ? deviceLost(error) : error;
    }
  }

  /**
   * @param {LatentsInput} input
   * @param {DecodeOptions} options
   * @param {AbortSignal} signal
   */
  async #attempt(input, options, signal) {
    this.#shown = undefined;
    const { vae, canvases } = this.#engine;
    const latents = await this.#openLatents(input, signal);
    const cancel = new this.#wasm.Cancel();
    const abort = () => cancel.cancel();
    try {
      const output = this.#outputFor(options, latents.shape());
      signal.throwIfAborted();
      signal.addEventListener('abort', abort);
      const result = await vae.decode(latents, this.#moduleOptions(options, output), cancel, this.#progress(options.onProgress));
      this.#note(result);
      return await this.#deliver(canvases, options, result);
    } finally {
      signal.removeEventListener('abort', abort);
      cancel.free();
      latents.free();
    }
  }

  /**
   * @param {LatentsInput} input
   * @param {AbortSignal} signal
   */
  async #readShape(input, signal) {
    const latents = await this.#openLatents(input, signal);
    const shape = [...latents.shape()];
    if (isFile(input) && !signal.aborted) this.#keep({ input, latents });
    else latents.free();
    return shape;
  }

  /** @param {{ input: LatentsInput, latents: import('../pkg/wgvae.js').Latents } | undefined} opened */
  #keep(opened) {
    this.#opened?.latents.free();
    this.#opened = opened;
  }

  /**
   * @param {LatentsInput} input
   * @param {AbortSignal} signal
   */
  async #openLatents(input, signal) {
    if (this.#opened?.input === input) {
      const { latents } = this.#opened;
      this.#opened = undefined;
      return latents;
    }
    // Not in the cache: latents are small, and others the next time.
    return openLatents(this.#wasm, input, new Access(signal, this.#access.notify, false));
  }

  /**
   * What the module is asked for, after a look at whether the canvas can take it: before the work, not after.
   * @param {DecodeOptions} options
   * @param {Uint32Array} shape [n, c, h, w] or [c, h, w]
   */
  #outputFor({ canvas, output = 'bitmap' }, shape) {
    const scale = this.info.pixels_per_latent;
    const size = { width: scale * shape[shape.length - 1], height: scale * shape[shape.length - 2] };
    if (canvas) {
      checkCanvas(this.device, canvas, size);
      return 'canvas';
    }
    if (output === 'bitmap' && (!globalThis.OffscreenCanvas || !fitsCanvas(this.device, size))) return 'rgba8';
    return OUTPUTS[output];
  }

  /**
   * @param {import('./canvas.js').Canvases} canvases of the device that it was decoded on
   * @param {DecodeOptions} options
   * @param {any} result of the module
   */
  async #deliver(canvases, { canvas, output = 'bitmap' }, { width, height, data, picture }) {
    if (picture) {
      const shown = { picture: { ...picture, format: canvasFormat() }, size: { width, height } };
      this.#shown = shown;
      if (!canvas) return canvases.toBitmap(shown.picture, shown.size);
      await canvases.present(canvas, shown.picture, shown.size);
      return undefined;
    }
    if (output === 'raw') return { data, shape: [3, height, width] };
    const image = new ImageData(data, width, height);
    return output === 'bitmap' ? bitmapOf(image) : image;
  }

  /** @param {any} result of the module */
  #note({ report }) {
    this.#report = report;
    if (report.fallback_text) this.#access.notify({ code: 'fallback', message: report.fallback_text });
  }

  /** @param {DecodeOptions['onProgress']} [onProgress] */
  async #recover(onProgress) {
    const { notify } = this.#access;
    notify({ code: 'device-recovered', message: 'the GPU device was lost: loading the weights onto a new one and decoding again, in smaller submissions' });
    const target = (this.#submissionTarget ?? this.#engine.submissionTarget) * RECOVERY_PART;
    const engine = await startEngine(this.#wasm, this.#options, this.#model, guarded(onProgress ?? this.#options.onProgress));
    this.#engine.free();
    this.#engine = engine;
    this.#info = infoOf(this.#model, engine);
    this.#submissionTarget = target;
  }

  /**
   * @param {DecodeOptions['onProgress']} onProgress
   * @returns {(progress: { done: number, total: number, stage: string }) => void}
   */
  #progress(onProgress = this.#options.onProgress) {
    const listener = guarded(onProgress);
    return ({ done, total, stage }) => listener({ phase: 'decode', done, total, step: stage });
  }

  /**
   * @param {{ memoryBudget?: number, index?: number, output?: import('./index.js').Output }} options
   * @param {'canvas' | 'rgba8' | 'raw'} [output]
   */
  #moduleOptions({ memoryBudget = this.#options.memoryBudget, index, output: asked = 'bitmap' }, output = OUTPUTS[asked]) {
    return { output, format: canvasFormat(), memoryBudget, parking: this.#options.parking, submissionTarget: this.#submissionTarget, index };
  }

  #throwIfDestroyed() {
    this.#lifetime.signal.throwIfAborted();
  }
}

/**
 * @param {import('./model.js').Model} model
 * @param {import('./engine.js').Engine} engine
 * @returns {import('./index.js').DecoderInfo}
 */
function infoOf(model, { vae, adapter }) {
  return { ...model.checkpoint.info(), ...vae.info(), adapter };
}

/** @param {unknown} value */
function isCanvas(value) {
  const kinds = [globalThis.HTMLCanvasElement, globalThis.OffscreenCanvas];
  return kinds.some((kind) => kind && value instanceof kind);
}

/**
 * @param {AbortSignal | undefined} first
 * @param {AbortSignal} second
 */
function either(first, second) {
  return first ? AbortSignal.any([first, second]) : second;
}
