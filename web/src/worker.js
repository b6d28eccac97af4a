// @ts-check
// The package in a worker of its own, with the same methods: what takes time on a thread takes it there, and pictures come as they are, without a copy.

import { messageOf, mismatch, WgvaeError } from './errors.js';
import { drawableOf } from './images.js';
import { isIterable } from './iterate.js';
import { Link, transfer } from './link.js';
import { isTensor, valuesOf } from './onnx.js';
import { ON_DEVICE } from './outputs.js';
import { orAborted } from './queue.js';

export { transfer };

/** @typedef {import('./worker.js').WorkerOptions} Options */
/** @typedef {{ signal?: AbortSignal, output?: string }} CallOptions */

const NEVER = new AbortController().signal;

/** @param {Options} options */
export const createDecoder = (options) => create('decode', options);

/** @param {Options} options */
export const createEncoder = (options) => create('encode', options);

/** @param {Options} options */
export const createVae = (options) => create('both', options);

/**
 * @param {'decode' | 'encode' | 'both'} directions
 * @param {Options} options
 * @returns {Promise<any>}
 */
async function create(directions, { worker, ...options }) {
  checkOwn(options);
  const { link, started, end } = start(worker);
  // Its listeners hear of decodes, too: they are let go of with the model.
  const { answer, release } = link.call('create', [directions, options]);
  try {
    const { id, info } = await orAborted(answer, options.signal ?? NEVER);
    return new Remote(link, { id, info, end: () => (release(), end()) });
  } catch (error) {
    // An abort does not wait for the load: it ends with the worker.
    answer.then(({ id }) => link.call('ask', [id, 'destroy', []]).answer, () => {}).finally(release);
    end();
    throw error;
  } finally {
    started();
  }
}

/**
 * @param {import('./worker.js').WorkerTuneOptions} [options]
 * @returns {Promise<import('./index.js').Tuning>}
 */
export async function tune({ worker, ...options } = {}) {
  checkOwn(options);
  const { link, started, end } = start(worker);
  const { answer, release } = link.call('tune', [options]);
  try {
    return await orAborted(answer, options.signal ?? NEVER);
  } finally {
    started();
    release();
    end();
  }
}

/** Refuses what is of this thread, and nothing where it is too late. @param {{ signal?: AbortSignal }} options */
function checkOwn(options) {
  for (const name of ['device', 'gpu', 'fetch']) {
    if (name in options) throw mismatch('input', name, 'none for a worker, which has its own', 'one of this thread');
  }
  options.signal?.throwIfAborted();
}

/**
 * A worker, and the way to it. `started` says that it was: what nobody catches there later, listeners' errors above all, ends nothing.
 * @param {Worker | undefined} callers
 */
function start(callers) {
  // Written like this so that bundlers see the file and take it along.
  const worker = callers ?? new Worker(new URL('./worker-host.js', import.meta.url), { type: 'module', name: 'wgvae' });
  const link = new Link(worker, { gives: false });
  const failing = (/** @type {Event} */ event) => {
    event.preventDefault();
    link.fail(new WgvaeError('internal', `the worker did not start: ${/** @type {ErrorEvent} */ (event).message ?? 'it could not be loaded'}`));
  };
  worker.addEventListener('error', failing);
  const end = () => {
    if (!callers) worker.terminate();
  };
  return { link, started: () => worker.removeEventListener('error', failing), end };
}

/** A model in a worker. */
class Remote {
  #link;
  #id;
  #end;
  /** @type {Promise<void> | undefined} */
  #destroyed;

  /**
   * @param {Link} link
   * @param {{ id: number, info: import('./index.js').ModelInfo, end(): void }} model
   */
  constructor(link, { id, info, end }) {
    this.#link = link;
    this.#id = id;
    this.#end = end;
    this.info = info;
    /** @type {import('./index.js').Report | undefined} */
    this.report = undefined;
  }

  /** @param {unknown} options */
  plan(options) {
    return this.#ask('plan', [options]);
  }

  /** @param {unknown} options */
  planClip(options) {
    return this.#ask('planClip', [options]);
  }

  /** @param {unknown} options */
  planEncode(options) {
    return this.#ask('planEncode', [options]);
  }

  /** @param {unknown} options */
  planEncodeClip(options) {
    return this.#ask('planEncodeClip', [options]);
  }

  ledger() {
    return this.#ask('ledger', []);
  }

  /**
   * @param {unknown} latents
   * @param {CallOptions} [options]
   */
  async shapeOf(latents, options) {
    return this.#ask('shapeOf', [await sendable(latents, 'latents')], options);
  }

  /**
   * @param {unknown} latents
   * @param {CallOptions & { canvas?: HTMLCanvasElement | OffscreenCanvas }} [options]
   */
  async decode(latents, { canvas, ...options } = {}) {
    if (!canvas && ON_DEVICE.includes(options.output ?? '')) throw mismatch('input', 'output', 'none on the device of a worker', `${options.output}`);
    if (!canvas) return this.#ask('decode', [await sendable(latents, 'latents')], options);
    const context = bitmapContext(canvas);
    show(canvas, context, await this.#ask('decode', [await sendable(latents, 'latents')], { ...options, output: 'bitmap' }));
    return undefined;
  }

  /** @param {HTMLCanvasElement | OffscreenCanvas} canvas */
  async present(canvas) {
    const context = bitmapContext(canvas);
    show(canvas, context, await this.#ask('bitmap', []));
  }

  /**
   * @param {unknown} latents
   * @param {CallOptions} [options]
   */
  clip(latents, options) {
    return this.#each('clip', 'latents', latents, options);
  }

  /**
   * @param {unknown} image
   * @param {CallOptions} [options]
   */
  async encode(image, options = {}) {
    return this.#ask('encode', [await sendable(image, 'image')], options);
  }

  /**
   * @param {unknown} frames
   * @param {CallOptions} [options]
   */
  encodeClip(frames, options) {
    return this.#each('encodeClip', 'image', frames, options);
  }

  destroy() {
    this.#destroyed ??= this.#ask('destroy', []).finally(this.#end);
    return this.#destroyed;
  }

  [Symbol.asyncDispose]() {
    return this.destroy();
  }

  /**
   * @param {string} method
   * @param {unknown[]} parameters
   * @param {CallOptions} [options]
   */
  async #ask(method, parameters, options) {
    const { answer, release } = this.#call(method, parameters, options);
    try {
      // What no other thread can give back is the reason of the caller's signal.
      const { value, report, info } = await orAborted(answer, options?.signal ?? NEVER);
      if (report) this.report = report;
      if (info) this.info = info;
      return value;
    } finally {
      release();
    }
  }

  /**
   * Values of a generator in the worker, for which it is asked one by one.
   * @param {string} method
   * @param {string} what it takes
   * @param {unknown} input one, or several
   * @param {CallOptions} [options]
   */
  async *#each(method, what, input, options) {
    const signal = options?.signal ?? NEVER;
    const inputs = isIterable(input) && !isTensor(input) ? eachSendable(input, what) : await sendable(input, what);
    const { answer, release } = this.#call(method, [inputs], options);
    try {
      const { value: values } = await orAborted(answer, signal);
      try {
        for (let next = await orAborted(values.next(), signal); !next.done; next = await orAborted(values.next(), signal)) yield next.value;
      } finally {
        // An abort has ended it there by itself.
        if (!signal.aborted) await values.return();
      }
    } finally {
      release();
    }
  }

  /**
   * @param {string} method
   * @param {unknown[]} parameters
   * @param {CallOptions} [options]
   */
  #call(method, parameters, options) {
    if (this.#destroyed && method !== 'destroy') throw new WgvaeError('destroyed', 'the model was destroyed');
    options?.signal?.throwIfAborted();
    return this.#link.call('ask', [this.#id, method, [...parameters, options]]);
  }
}

/**
 * @param {Iterable<unknown> | AsyncIterable<unknown>} inputs
 * @param {string} what they are
 */
async function* eachSendable(inputs, what) {
  for await (const input of inputs) yield await sendable(input, what);
}

/**
 * Latents or a picture as they can be sent: what is drawn of an element is nobody else's, and of a tensor it is the values.
 * @param {unknown} input
 * @param {string} what it is
 */
async function sendable(input, what) {
  if (isTensor(input)) return valuesOf(input, what);
  const drawable = await drawableOf(input);
  return drawable === input ? input : transfer(/** @type {ImageBitmap} */ (drawable), [/** @type {ImageBitmap} */ (drawable)]);
}

/** @param {HTMLCanvasElement | OffscreenCanvas} canvas */
function bitmapContext(canvas) {
  let context;
  try {
    context = /** @type {ImageBitmapRenderingContext | null} */ (canvas.getContext('bitmaprenderer'));
  } catch (cause) {
    throw new WgvaeError('canvas', `the canvas cannot be used: ${messageOf(cause)}`, { cause });
  }
  if (!context) throw mismatch('canvas', 'canvas', 'one without a context, or with one for bitmaps', 'a context of another kind');
  return context;
}

/**
 * @param {HTMLCanvasElement | OffscreenCanvas} canvas
 * @param {ImageBitmapRenderingContext} context
 * @param {ImageBitmap} bitmap
 */
function show(canvas, context, bitmap) {
  [canvas.width, canvas.height] = [bitmap.width, bitmap.height];
  context.transferFromImageBitmap(bitmap);
}
