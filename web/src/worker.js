// @ts-check
// The package in a worker, with the same methods. Work that takes time runs there, and pictures
// come back without a copy.

import { streamOf } from './clip-stream.js';
import { clipNow, latentsNow, pictureNow, picturesNow } from './copies.js';
import { kindOf, messageOf, mismatch, WgvaeError } from './errors.js';
import { hub, HubModel } from './hub.js';
import { drawableOf } from './images.js';
import { isIterable, Values } from './iterate.js';
import { Latest, MAX_SIDE } from './latest.js';
import { limitsOf } from './limits.js';
import { isTensor, valuesInMemory, valuesOf } from './onnx.js';
import { checkObject, checkValue, FLAG, SIGNAL } from './options.js';
import { checkAlone, ON_DEVICE } from './outputs.js';
import { either, orAborted, whenAborted } from './queue.js';
import { isA } from './realms.js';
import { stoppable } from './stoppable.js';
import { transfer } from './transfer.js';
import { ask, destroyed, NEVER, reach, tellStart } from './worker-link.js';

export { hub, transfer, WgvaeError };

/** @typedef {import('./worker.js').WorkerOptions} Options */
/** @typedef {{ signal?: AbortSignal, output?: string }} CallOptions */
/**
 * @typedef {CallOptions & { canvas?: HTMLCanvasElement | OffscreenCanvas, maxSide?: number,
 * replace?: boolean }} Pictured
 */

/** @param {Options} options */
export const createDecoder = (options) => create('decode', options);

/** @param {Options} options */
export const createEncoder = (options) => create('encode', options);

/** @param {Options} options */
export const createVae = (options) => create('both', options);

/** @param {import('./worker.js').OnWorker} [options] */
export async function families(options = {}) {
  const { worker, wasm } = withoutThreads(options, []);
  return ask(worker, 'families', [wasm]);
}

/** @param {import('./worker.js').OnWorker} [options] */
export async function version(options = {}) {
  const { worker, wasm } = withoutThreads(options, []);
  return ask(worker, 'version', [wasm]);
}

/**
 * Never rejects: a worker that cannot start can do nothing, and the reason says why.
 * @param {import('./worker.js').SupportOptions} [options]
 * @returns {Promise<import('./index.js').Support>}
 */
export async function isSupported(options) {
  try {
    const { worker, ...others } = options ?? {};
    return await ask(worker, 'isSupported', [others]);
  } catch (error) {
    return { webgpu: false, f16: false, cpu: false, reason: messageOf(error) };
  }
}

/** @param {import('./worker.js').InspectOptions} options */
export async function inspect(options) {
  const { worker, ...others } = withoutThreads(options, ['fetch']);
  return ask(worker, 'inspect', [others], others.signal);
}

/**
 * @param {import('./worker.js').PlanForOptions} options
 * @returns {Promise<any>}
 */
export async function planFor(options) {
  const { worker, ...others } = withoutThreads(options, ['fetch']);
  // An adapter cannot be sent.
  if (others.limits) others.limits = limitsOf(others.limits);
  return ask(worker, 'planFor', [others]);
}

/**
 * @param {unknown} latents
 * @param {import('./worker.js').LinearPreviewOptions} options
 * @returns {Promise<any>}
 */
export async function preview(latents, options) {
  const { worker, ...others } = withoutThreads(options, ['fetch']);
  // Values in memory are copied now.
  const sent = sendable(latents, 'latents');
  return ask(worker, 'preview', [sent instanceof Promise ? await sent : sent, others], others.signal);
}

/** @param {import('./worker.js').SelftestOptions} options */
export async function selftest(options) {
  const { worker, ...others } = withoutThreads(options, ['device', 'gpu', 'fetch']);
  return ask(worker, 'selftest', [others], others.signal);
}

/** @param {import('./worker.js').TuneOptions} [options] */
export async function tune(options = {}) {
  const { worker, ...others } = withoutThreads(options, ['device', 'gpu', 'fetch']);
  return ask(worker, 'tune', [others], others.signal);
}

/** @param {{ worker?: Worker }} [options] */
export async function cacheUsage(options = {}) {
  return ask(withoutThreads(options, []).worker, 'cacheUsage', []);
}

/**
 * @param {string | URL} [address]
 * @param {{ worker?: Worker }} [options]
 */
export async function clearCache(address, options = {}) {
  return ask(withoutThreads(options, []).worker, 'clearCache', [address]);
}

/**
 * Returns the options. Throws if one of them belongs to this thread.
 * @template {object} T
 * @param {T} options
 * @param {string[]} names
 */
function withoutThreads(options, names) {
  checkObject(options);
  const given = /** @type {Record<string, any>} */ (options);
  for (const name of names) {
    const own = given[name] ?? (name === 'fetch' && given.model instanceof HubModel ? given.model.options.fetch : undefined);
    if (own !== undefined) throw mismatch('input', name, 'none for a worker, which has its own', 'one of this thread');
  }
  if ('signal' in options) checkValue('signal', options.signal ?? null, SIGNAL);
  return options;
}

/**
 * @param {'decode' | 'encode' | 'both'} directions
 * @param {Options} all
 * @returns {Promise<any>}
 */
async function create(directions, all) {
  const { worker, ...options } = withoutThreads(all, ['gpu', 'fetch']);
  if (options.device && typeof options.device === 'object') throw mismatch('input', 'device', 'its kind for a worker, which has its own', 'one of this thread');
  options.signal?.throwIfAborted();
  const { link, end } = reach(worker);
  // Its listeners also receive the progress of decodes: they are released with the model.
  const { answer, release } = link.call('create', [directions, options]);
  try {
    const { id, ...facts } = await orAborted(answer, options.signal ?? NEVER);
    return new Remote(link, { id, ...facts, end: () => (release(), end()) });
  } catch (error) {
    // An abort does not wait for the load, which may still succeed: nobody hears of it any more.
    release();
    answer.then(({ id }) => link.call('ask', [id, 'destroy', []]).answer).catch(() => {});
    end();
    throw error;
  }
}

/** A model in a worker. */
class Remote {
  #link;
  #id;
  #end;
  /** Decodes of which only the newest counts. */
  #latest = new Latest();
  /** Aborted by `destroy`. */
  #lifetime = new AbortController();
  /** @type {Promise<void> | undefined} */
  #destroyed;
  /** Ledger at the end. @type {import('./index.js').Ledger | undefined} */
  #lastLedger;

  /**
   * @param {import('./link.js').Link} link
   * @param {{ id: number, info: import('./index.js').ModelInfo, limits: Record<string, number>,
   * end(): void }} model
   */
  constructor(link, { id, info, limits, end }) {
    this.#link = link;
    this.#id = id;
    this.#end = end;
    this.info = info;
    this.limits = limits;
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

  async ledger() {
    return this.#lastLedger ?? this.#ask('ledger', []);
  }

  /**
   * @param {unknown} latents
   * @param {CallOptions} [options]
   */
  async shapeOf(latents, options) {
    return this.#ask('shapeOf', [sendable(latents, 'latents')], options);
  }

  /**
   * @param {unknown} latents
   * @param {Pictured} [options]
   */
  async preview(latents, options = {}) {
    checkObject(options);
    const { maxSide = MAX_SIDE, ...others } = options;
    return this.decode(latents, { ...others, maxSide, replace: true });
  }

  /**
   * @param {unknown} latents
   * @param {Pictured} [options]
   */
  async decode(latents, options = {}) {
    checkObject(options);
    const { canvas, replace = false, ...others } = options;
    checkValue('replace', replace, FLAG);
    if (canvas === undefined && ON_DEVICE.includes(others.output ?? '')) throw onDevice(others.output);
    if (canvas !== undefined) checkAlone(others);
    const context = canvas === undefined ? undefined : bitmapContext(canvas);
    // Here, as the order of the calls is known only on this thread.
    if (replace) others.signal = this.#latest.begin(others.signal);
    if (!canvas || !context) return this.#ask('decode', [sendable(latents, 'latents')], others);
    show(canvas, context, await this.#ask('decode', [sendable(latents, 'latents')], { ...others, output: 'bitmap' }));
    return undefined;
  }

  /**
   * @param {unknown} latents
   * @param {CallOptions} [options]
   */
  decodeEach(latents, options) {
    return this.#each('decodeEach', 'latents', latentsNow(latents), options);
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
    return this.#each('clip', 'latents', clipNow(latents), options);
  }

  /**
   * @param {unknown} latents
   * @param {import('./index.js').ClipOptions} [options]
   */
  clipStream(latents, options) {
    return streamOf((ended) => this.clip(latents, ended), options);
  }

  /**
   * @param {unknown} image
   * @param {CallOptions} [options]
   */
  async encode(image, options = {}) {
    return this.#ask('encode', [sendable(image, 'image')], options);
  }

  /**
   * @param {unknown} frames
   * @param {CallOptions} [options]
   */
  encodeClip(frames, options) {
    const kept = picturesNow(frames, sendableNow);
    return this.#each('encodeClip', 'image', kept.frames, options, kept.free);
  }

  destroy() {
    if (!this.#destroyed) this.#lifetime.abort(destroyed());
    this.#destroyed ??= this.#ask('destroy', []).then((ledger) => void (this.#lastLedger = ledger)).finally(this.#end);
    return this.#destroyed;
  }

  [Symbol.asyncDispose]() {
    return this.destroy();
  }

  /**
   * Sends the parameters at once, or when those that are promises have settled.
   * @param {string} method
   * @param {unknown[]} parameters
   * @param {CallOptions} [options]
   */
  async #ask(method, parameters, options) {
    const sent = parameters.some((each) => each instanceof Promise) ? await Promise.all(parameters) : parameters;
    const { answer, release } = this.#call(method, sent, options);
    try {
      // The reason of the caller's signal must come from this thread.
      return this.#take(await orAborted(answer, options?.signal ?? NEVER));
    } catch (error) {
      // A bitmap that comes after the abort is nobody's.
      answer.then(({ value }) => value?.close?.(), () => {});
      throw error;
    } finally {
      release();
    }
  }

  /**
   * Takes over the facts about the model, and returns the value.
   * @param {{ value: any, report?: import('./index.js').Report, info?:
   * import('./index.js').ModelInfo }} told
   */
  #take({ value, report, info }) {
    if (report) this.report = report;
    if (info) this.info = info;
    return value;
  }

  /**
   * Returns a generator of the values of one in the worker, which requests them one by one.
   * @param {string} method
   * @param {string} what name of the input in errors
   * @param {unknown} input one input, or an iterable
   * @param {CallOptions} [options]
   * @param {() => void} [free] frees the copies of the input
   */
  #each(method, what, input, options, free) {
    const values = isIterable(input) && !isTensor(input) ? new Values(input, what) : undefined;
    const inputs = async () => (values ? eachSendable(values, what) : sendable(input, what));
    return stoppable((stop) => this.#values(method, inputs, options, stop), () => (free?.(), values?.free()));
  }

  /**
   * Yields the values.
   * @param {string} method
   * @param {() => Promise<unknown>} inputs
   * @param {CallOptions | undefined} options
   * @param {AbortSignal} stop
   */
  async *#values(method, inputs, options = {}, stop) {
    checkObject(options);
    checkValue('signal', options.signal ?? null, SIGNAL);
    if (ON_DEVICE.includes(options.output ?? '')) throw onDevice(options.output);
    const signal = either(options.signal ?? undefined, either(stop, this.#lifetime.signal));
    const { answer, release } = this.#call(method, [await orAborted(inputs(), signal)], { ...options, signal });
    try {
      const { value: values } = await orAborted(answer, signal);
      // A generator that is paused for ever keeps the model in the worker.
      const leave = whenAborted(this.#lifetime.signal, () => (values.return().catch(() => {}), release()));
      const nextOf = () => orAborted(closedIfLate(values.next(), signal), signal);
      try {
        for (let next = await nextOf(); !next.done; next = await nextOf()) yield this.#take(next.value);
      } finally {
        leave();
        const ended = values.return().catch(() => {});
        // An abort does not wait for the part that it stops.
        if (!signal.aborted) await ended;
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
    if (method !== 'destroy') this.#lifetime.signal.throwIfAborted();
    checkValue('signal', options?.signal ?? null, SIGNAL);
    options?.signal?.throwIfAborted();
    tellStart(this.#link);
    return this.#link.call('ask', [this.#id, method, [...parameters, options]]);
  }
}

/**
 * Closes a frame that comes after the abort, when nobody waits for it.
 * @param {Promise<IteratorResult<any, void>>} coming
 * @param {AbortSignal} signal
 */
async function closedIfLate(coming, signal) {
  const next = await coming;
  if (signal.aborted) next.value?.value.close?.();
  return next;
}

/**
 * Returns an iterable of values in a form that can be sent. Unlike a generator it ends at once,
 * also before its first value, and while it waits for one.
 * @param {Values} values
 * @param {string} what their name in errors
 */
function eachSendable(values, what) {
  return {
    next: async () => {
      const { done, value } = await values.next(NEVER);
      return done ? { done } : { value: await sendable(value, what) };
    },
    return: () => values.free(),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/**
 * Returns latents or a picture in a form that can be sent: a bitmap of an element, the values of a
 * tensor. Returns a promise if that takes time.
 * @param {unknown} input
 * @param {string} what its name in errors
 * @returns {unknown}
 */
function sendable(input, what) {
  if (isTensor(input)) return valuesInMemory(input) ?? valuesOf(input, what);
  const drawn = drawableOf(input);
  return drawn === input ? input : /** @type {Promise<ImageBitmap>} */ (drawn).then((bitmap) => transfer(bitmap, [bitmap]));
}

/**
 * Copies a picture as it is now, to send it later.
 * @param {unknown} input
 * @returns {import('./copies.js').Kept}
 */
function sendableNow(input) {
  const drawn = sendable(input, 'image');
  if (!(drawn instanceof Promise) || drawn === input) return pictureNow(input);
  // Its error is handled when its turn comes.
  drawn.catch(() => {});
  return { picture: drawn, free: () => drawn.then((bitmap) => bitmap.close?.(), () => {}) };
}

/** Returns the error for an output that cannot leave the worker. @param {string} [output] */
function onDevice(output) {
  return mismatch('input', 'output', 'none on the device of a worker', `${output}`);
}

/** @param {HTMLCanvasElement | OffscreenCanvas} canvas */
function bitmapContext(canvas) {
  if (!isA(canvas, 'HTMLCanvasElement', 'OffscreenCanvas')) throw mismatch('canvas', 'canvas', 'an HTMLCanvasElement or an OffscreenCanvas', kindOf(canvas));
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
