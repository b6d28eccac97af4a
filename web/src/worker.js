// @ts-check
// The package in a worker of its own, with the same methods: what takes time on a thread takes it there, and pictures come as they are, without a copy.

import { messageOf, mismatch, WgvaeError } from './errors.js';
import { drawableOf } from './images.js';
import { isIterable } from './iterate.js';
import { Link, transfer } from './link.js';
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
async function create(directions, { worker: callers, ...options }) {
  for (const name of ['device', 'gpu', 'fetch']) {
    if (name in options) throw mismatch('input', name, 'none for a worker, which has its own', 'one of this thread');
  }
  options.signal?.throwIfAborted();
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
    // What nobody catches there later, listeners' errors above all, ends nothing.
    worker.removeEventListener('error', failing);
  }
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
  shapeOf(latents, options) {
    return this.#ask('shapeOf', [latents], options);
  }

  /**
   * @param {unknown} latents
   * @param {CallOptions & { canvas?: HTMLCanvasElement | OffscreenCanvas }} [options]
   */
  async decode(latents, { canvas, ...options } = {}) {
    if (options.output === 'texture') throw mismatch('input', 'output', 'no texture of a worker, whose device it would be on', options.output);
    if (!canvas) return this.#ask('decode', [latents], options);
    const context = bitmapContext(canvas);
    show(canvas, context, await this.#ask('decode', [latents], { ...options, output: 'bitmap' }));
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
    return this.#each('clip', latents, options);
  }

  /**
   * @param {unknown} image
   * @param {CallOptions} [options]
   */
  async encode(image, options = {}) {
    return this.#ask('encode', [await drawn(image)], options);
  }

  /**
   * @param {unknown} frames
   * @param {CallOptions} [options]
   */
  encodeClip(frames, options) {
    return this.#each('encodeClip', isIterable(frames) ? eachDrawn(frames) : frames, options);
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
   * @param {unknown} input
   * @param {CallOptions} [options]
   */
  async *#each(method, input, options) {
    const signal = options?.signal ?? NEVER;
    const { answer, release } = this.#call(method, [input], options);
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
 * Each of what the worker shall draw.
 * @param {Iterable<unknown> | AsyncIterable<unknown>} pictures
 */
async function* eachDrawn(pictures) {
  for await (const picture of pictures) yield await drawn(picture);
}

/** As it can be sent. What is made of an element is nobody else's. @param {unknown} picture */
async function drawn(picture) {
  const drawable = await drawableOf(picture);
  return drawable === picture ? picture : transfer(/** @type {ImageBitmap} */ (drawable), [/** @type {ImageBitmap} */ (drawable)]);
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
