// @ts-check
// Decoding of latents to pictures: on a canvas, as a bitmap, or in memory.

import { startOfAddresses } from './address.js';
import { canvasFormat, checkCanvas, fitsCanvas } from './canvas.js';
import { latentsNow } from './copies.js';
import { kindOf, mismatch, wgvaeError } from './errors.js';
import { checkHostCanvas, show } from './host-canvas.js';
import { areOnGpu, HEAD_BYTES, isFile, openLatents } from './latents.js';
import { Latest } from './latest.js';
import { deviceLost, isLoss } from './loss.js';
import { checkOptions, FLAG, LISTENER, oneOf, SIGNAL, SMALL, WHOLE } from './options.js';
import { checkAlone, checkOutput, delivered, hostOutput, isShownFromMemory, ON_DEVICE, OUTPUTS } from './outputs.js';
import { orAborted } from './queue.js';
import { isA } from './realms.js';
import { openSource } from './sources.js';

/** @typedef {import('./index.js').DecodeOptions} DecodeOptions */
/** @typedef {import('./index.js').LatentsInput} LatentsInput */

/** Tilings whose tiles are blended on the host. */
const BLENDED = ['blend', 'cosine'];

/** All tilings. */
export const TILINGS = ['exact', ...BLENDED, 'estimate'];

/** Options of a plan. @type {import('./options.js').Checks} */
const OF_PLANS = { width: SMALL, height: SMALL, output: oneOf(...Object.keys(OUTPUTS)), tiling: oneOf(...TILINGS), tileSize: SMALL, tileOverlap: SMALL, memoryBudget: WHOLE };

/** Options of a decode. @type {import('./options.js').Checks} */
const OF_DECODES = {
  canvas: undefined,
  output: OF_PLANS.output,
  tiling: OF_PLANS.tiling,
  tileSize: SMALL,
  tileOverlap: SMALL,
  index: SMALL,
  maxSide: SMALL,
  memoryBudget: WHOLE,
  replace: FLAG,
  onProgress: LISTENER,
  signal: SIGNAL,
};

/**
 * Options of a decode of each picture: a canvas shows one, which an index chooses.
 * @type {import('./options.js').Checks}
 */
const OF_EACH = Object.fromEntries(Object.entries(OF_DECODES).filter(([name]) => !['canvas', 'index', 'replace'].includes(name)));

/** Decoding by a loaded model. */
export class Decoding {
  #loaded;
  /** Decodes of which only the newest counts. */
  #latest = new Latest();
  /**
   * Latents that `shapeOf` has read, for the next decode of the same file.
   * @type {{ input: unknown, latents: import('../pkg/wgvae.js').Latents } | undefined}
   */
  #opened;

  /** @param {import('./loaded.js').Loaded} loaded */
  constructor(loaded) {
    this.#loaded = loaded;
    loaded.whenFreed(() => this.#keep(undefined));
  }

  /** @param {import('./index.js').PlanOptions} options */
  plan(options) {
    this.#loaded.throwIfDestroyed();
    checkOptions(options, OF_PLANS);
    const { width, height, ...others } = options;
    const output = this.#isFromMemory ? hostOutput(others, !this.#loaded.engine.device) : undefined;
    return this.#loaded.plan({ direction: 'decode', width, height, ...this.#moduleOptions(others, output) });
  }

  /**
   * @param {LatentsInput} input
   * @param {{ signal?: AbortSignal }} [options]
   * @param {boolean} [isKept] false if no later decode can have the same object
   * @returns {Promise<any>}
   */
  async shapeOf(input, options = {}, isKept = isFile(input)) {
    this.#loaded.throwIfDestroyed();
    checkOptions(options, { signal: SIGNAL });
    const signal = this.#loaded.signalOf(options.signal);
    try {
      return await orAborted(this.#readShape(latentsNow(input), signal, isKept), signal);
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
    this.#loaded.throwIfDestroyed();
    checkOptions(options, OF_DECODES);
    return this.#decode(latentsNow(latents), { ...options });
  }

  /**
   * @param {LatentsInput} latents
   * @param {import('./index.js').EachOptions} [options]
   * @returns {AsyncGenerator<any, void, undefined>}
   */
  decodeEach(latents, options = {}) {
    return this.#each(latentsNow(latents), options && { ...options });
  }

  /**
   * @param {LatentsInput} input
   * @param {import('./index.js').EachOptions} options
   * @returns {AsyncGenerator<any, void, undefined>}
   */
  async *#each(input, options) {
    this.#loaded.throwIfDestroyed();
    checkOptions(options, OF_EACH);
    const signal = this.#loaded.signalOf(options.signal);
    // An address is requested once, and not for each picture.
    const latents = isFile(input) ? await orAborted(this.#readWhole(input, signal), signal) : input;
    const [count] = await this.shapeOf(latents, { signal });
    for (let index = 0; index < count; index += 1) yield await this.#decode(latents, { ...options, index });
  }

  /**
   * @param {import('./index.js').FileInput} file
   * @param {AbortSignal} signal
   */
  async #readWhole(file, signal) {
    const source = await openSource(file, this.#loaded.accessOf(signal), { what: 'latents', headBytes: HEAD_BYTES });
    try {
      return await source.read(0, source.length);
    } finally {
      source.release?.();
    }
  }

  /**
   * @param {LatentsInput} input copied at the call
   * @param {DecodeOptions} asked
   * @returns {Promise<any>}
   */
  async #decode(input, asked) {
    const { output = 'bitmap', canvas, tiling = 'exact', maxSide, replace } = asked;
    if (canvas !== undefined) checkAlone(asked);
    else checkOutput(output, OUTPUTS);
    if ((canvas || ON_DEVICE.includes(output)) && BLENDED.includes(tiling)) throw mismatch('input', 'tiling', 'no tiles, which are blended in memory', tiling);
    if (canvas !== undefined && !isA(canvas, 'HTMLCanvasElement', 'OffscreenCanvas')) throw mismatch('canvas', 'canvas', 'an HTMLCanvasElement or an OffscreenCanvas', kindOf(canvas));
    if (replace) asked.signal = this.#latest.begin(asked.signal);
    return this.#loaded.run(asked, !areOnGpu(input), (signal) => this.#attempt(input, asked, signal));
  }

  /** @param {HTMLCanvasElement | OffscreenCanvas} canvas */
  async present(canvas) {
    this.#loaded.throwIfDestroyed();
    const { shown, engine } = this.#loaded;
    if (!shown) throw mismatch('input', 'picture to present', 'that of a decode into a canvas or a bitmap just before', 'none');
    try {
      await shown(canvas);
    } catch (error) {
      throw (await isLoss(error, engine.device)) ? deviceLost(error) : error;
    }
  }

  /**
   * @param {LatentsInput} input
   * @param {DecodeOptions} options
   * @param {AbortSignal} signal
   */
  async #attempt(input, options, signal) {
    const { vae, canvases } = this.#loaded.engine;
    const latents = await this.#latentsFor(input, options, signal);
    try {
      const moduleOptions = this.#moduleOptions(options, this.#outputFor(options, vae.imageSize(latents)));
      const listener = this.#loaded.listener('decode', options.onProgress);
      const result = await this.#loaded.cancellable(signal, (cancel) => vae.decode(latents, moduleOptions, cancel, listener));
      // An abort that comes after the last submission stops no work.
      signal.throwIfAborted();
      const made = await this.#deliver(canvases, options, result);
      if (signal.aborted) discard(made);
      return made;
    } finally {
      latents.free();
    }
  }

  /**
   * Opens the latents to decode: fewer than there are, for a preview.
   * @param {LatentsInput} input
   * @param {DecodeOptions} options
   * @param {AbortSignal} signal
   */
  async #latentsFor(input, { maxSide }, signal) {
    const latents = await this.#openLatents(input, signal);
    if (maxSide === undefined) return latents;
    try {
      return this.#loaded.engine.vae.reducedLatents(latents, maxSide);
    } finally {
      latents.free();
    }
  }

  /**
   * @param {LatentsInput} input
   * @param {AbortSignal} signal
   * @param {boolean} isKept true to keep the latents for the next decode
   */
  async #readShape(input, signal, isKept) {
    const latents = await this.#openLatents(input, signal);
    const shape = [...latents.shape()];
    if (isKept && !signal.aborted) this.#keep({ input: keyOf(input), latents });
    else latents.free();
    return shape;
  }

  /**
   * @param {{ input: unknown, latents: import('../pkg/wgvae.js').Latents } | undefined} opened
   */
  #keep(opened) {
    this.#opened?.latents.free();
    this.#opened = opened;
  }

  /**
   * @param {LatentsInput} input
   * @param {AbortSignal} signal
   */
  async #openLatents(input, signal) {
    if (this.#opened && this.#opened.input === keyOf(input)) {
      const { latents } = this.#opened;
      this.#opened = undefined;
      return latents;
    }
    return openLatents(this.#loaded.wasm, input, this.#loaded.accessOf(signal));
  }

  /**
   * Chooses the output to request of the module. Checks first that the canvas can show it: before
   * the work, not after it.
   * @param {DecodeOptions} options
   * @param {Uint32Array} size of the picture
   */
  #outputFor({ canvas, output = 'bitmap', tiling = 'exact' }, [width, height]) {
    const { device } = this.#loaded.engine;
    const size = { width, height };
    if (canvas && this.#isFromMemory) checkHostCanvas(canvas, size);
    const isFromMemory = this.#isFromMemory && (canvas || !ON_DEVICE.includes(output));
    if (!device || isFromMemory) return hostOutput({ canvas, output }, !device);
    if (canvas) {
      checkCanvas(device, canvas, size);
      return 'canvas';
    }
    if (output === 'texture' && !fitsCanvas(device, size)) {
      const limit = device.limits.maxTextureDimension2D;
      throw mismatch('input', 'picture as a texture', `at most ${limit} pixels a side on this device`, `${width}x${height}`);
    }
    const { maxBufferSize } = device.limits;
    if (output === 'buffer' && 4 * width * height > maxBufferSize) {
      throw mismatch('input', 'picture as a buffer', `at most ${maxBufferSize} bytes on this device`, `${width}x${height}, ${4 * width * height} bytes`);
    }
    if (output === 'bitmap' && (BLENDED.includes(tiling) || !globalThis.OffscreenCanvas || !fitsCanvas(device, size))) return 'rgba8';
    return OUTPUTS[output];
  }

  /**
   * @param {import('./canvas.js').Canvases | undefined} canvases of the device that decoded it
   * @param {DecodeOptions} options
   * @param {any} result of the module
   */
  async #deliver(canvases, { canvas, output = 'bitmap' }, { width, height, data, picture }) {
    if (canvases && picture) {
      const [made, size] = [{ ...picture, format: formatOf({ canvas, output }) }, { width, height }];
      // Its order of channels differs from that of a canvas, so `present` cannot show it.
      if (!canvas && output === 'buffer') return { buffer: await canvases.toBuffer(made, size), shape: [height, width, 4] };
      this.#loaded.shown = (onto) => canvases.present(onto, made, size);
      if (!canvas && output === 'texture') return canvases.toTexture(made, size);
      if (!canvas) return canvases.toBitmap(made, size);
      return canvases.present(canvas, made, size);
    }
    const { out_channels: channels } = this.#loaded.info;
    if (!canvas && (output !== 'bitmap' || !this.#isFromMemory)) return delivered(output, data, width, height, channels);
    const image = new ImageData(data, width, height);
    this.#loaded.shown = (onto) => show(onto, image);
    return canvas ? show(canvas, image) : delivered(output, data, width, height, channels);
  }

  get #isFromMemory() {
    return isShownFromMemory(!this.#loaded.engine.device, this.#loaded.info);
  }

  /**
   * @param {Pick<DecodeOptions, 'canvas' | 'memoryBudget' | 'index' | 'output' | 'tiling' |
   * 'tileSize' | 'tileOverlap'>} options
   * @param {'canvas' | 'rgba8' | 'raw'} [output]
   */
  #moduleOptions({ canvas, output: asked = 'bitmap', tiling, tileSize, tileOverlap, ...options }, output = OUTPUTS[asked]) {
    return { ...this.#loaded.moduleOptions(options), output, format: formatOf({ canvas, output: asked }), tiling, tileSize, tileOverlap };
  }
}

/**
 * Returns what tells an input from others: the start of a relative address may change.
 * @param {LatentsInput} input
 */
function keyOf(input) {
  return typeof input === 'string' ? `${startOfAddresses()} ${input}` : input;
}

/**
 * Frees a picture that nobody waits for: a bitmap, or one on the device.
 * @param {any} made
 */
function discard(made) {
  made?.close?.();
  (made?.buffer ?? made)?.destroy?.();
}

/**
 * Returns the order of channels of a picture on the device. A buffer always has the same.
 * @param {Pick<DecodeOptions, 'canvas' | 'output'>} options
 */
function formatOf({ canvas, output }) {
  return !canvas && output === 'buffer' ? 'rgba8unorm' : canvasFormat();
}
