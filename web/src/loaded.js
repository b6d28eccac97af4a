// @ts-check
// A model on a device: runs its tasks one after the other, and handles aborts and lost devices.
// decoding.js and encoding.js have the tasks.

import { checkKernels, chooseDevice } from './device.js';
import { startEngine } from './engine.js';
import { messageOf, reportAside, WgvaeError, wgvaeError } from './errors.js';
import { guarded, hearingOfKernels } from './listener.js';
import { deviceLost, isLoss } from './loss.js';
import { openModel } from './model.js';
import { budgetOf, planError } from './module-memory.js';
import { checkOptions, OF_MODELS } from './options.js';
import { planned } from './plans.js';
import { either, orAborted, Queue, whenAborted } from './queue.js';
import { Access } from './sources.js';
import { startWasm } from './wasm.js';

/** @typedef {import('./index.js').ModelOptions} ModelOptions */
/** @typedef {import('./wasm.js').Wasm} Wasm */
/** @typedef {import('./model.js').Directions} Directions */

/** Factor on the target time of a submission after the device was lost. */
const RECOVERY_PART = 1 / 4;

/**
 * Opens a model and loads it onto a device.
 * @param {ModelOptions} options
 * @param {Directions} directions
 * @returns {Promise<Loaded>}
 */
export async function loadModel(options, directions) {
  checkOptions(options, OF_MODELS);
  checkKernels(options.kernels);
  const lifetime = new AbortController();
  const signal = either(options.signal, lifetime.signal);
  signal.throwIfAborted();
  const loading = load(options, directions, lifetime, signal);
  try {
    return await orAborted(loading, signal);
  } catch (error) {
    // An abort does not wait for the load, which may still succeed later.
    loading.then((loaded) => loaded.destroy(), () => {});
    lifetime.abort(error);
    throw wgvaeError(error);
  }
}

/**
 * @param {ModelOptions} options
 * @param {Directions} directions
 * @param {AbortController} lifetime
 * @param {AbortSignal} signal
 */
async function load(options, directions, lifetime, signal) {
  const { kind, threads, without } = await chooseDevice(options);
  signal.throwIfAborted();
  const access = new Access(signal, guarded(options.onNotice), options.cache ?? false, options.fetch);
  const wasm = await startOn(kind, threads, options, access.notify);
  wasm.broken.throwIfAborted();
  signal.throwIfAborted();
  // A broken module ends all running and later calls of this model.
  const leave = whenAborted(wasm.broken, () => lifetime.abort(wasm.broken.reason));
  whenAborted(lifetime.signal, leave);
  if (without) access.notify({ code: 'cpu', message: `${without.message}; so the CPU computes, which takes many times as long` });
  const model = await openModel(wasm, options, directions, access);
  try {
    signal.throwIfAborted();
    const engine = await startEngine(wasm, options, model, guarded(options.onProgress));
    return new Loaded(wasm, options, { access, model, engine, lifetime });
  } catch (error) {
    model.free();
    throw error;
  }
}

/**
 * Starts the module. Where threads cannot be started that the caller did not ask for, starts the
 * one with a single thread.
 * @param {import('./wasm.js').Kind} kind
 * @param {number | undefined} threads
 * @param {ModelOptions} options
 * @param {Access['notify']} notify
 */
async function startOn(kind, threads, options, notify) {
  try {
    return await startWasm(options.wasm, kind, threads);
  } catch (error) {
    if (threads === undefined || threads === 1 || options.threads !== undefined) throw error;
    notify({ code: 'threads', message: `${messageOf(error)}; so one thread computes instead of ${threads}` });
    return startWasm(options.wasm, kind);
  }
}

export class Loaded {
  #access;
  #model;
  #lifetime;
  #queue = new Queue();
  /**
   * Target time of a submission, milliseconds; undefined for the module's own choice.
   * @type {number | undefined}
   */
  #submissionTarget;
  /** @type {Promise<void> | undefined} */
  #destroyed;
  /** Ledger at the end. @type {import('./index.js').Ledger | undefined} */
  #lastLedger;
  /** Functions to call when everything is freed. @type {(() => void)[]} */
  #freed = [];
  /**
   * Clips that have states on the device.
   * @type {Set<import('./clip-run.js').ClipRun>}
   */
  clips = new Set();
  /** Report of the last task. @type {import('./index.js').Report | undefined} */
  report;
  /**
   * Function that shows the picture of the last task on a canvas, while that picture is still in
   * the memory of the device.
   * @type {((canvas: HTMLCanvasElement | OffscreenCanvas) => Promise<void>) | undefined}
   */
  shown;

  /**
   * @param {Wasm} wasm
   * @param {ModelOptions} options
   * @param {{ access: Access, model: import('./model.js').Model, engine:
   * import('./engine.js').Engine, lifetime: AbortController }} parts
   */
  constructor(wasm, options, { access, model, engine, lifetime }) {
    this.wasm = wasm;
    this.options = options;
    this.#access = access;
    this.#model = model;
    this.engine = engine;
    this.#lifetime = lifetime;
    /** Kept here, so that it outlives the module's part. @type {import('./index.js').ModelInfo} */
    this.info = infoOf(model, engine);
  }

  get notify() {
    return this.#access.notify;
  }

  ledger() {
    if (this.#lastLedger) return this.#lastLedger;
    this.wasm.broken.throwIfAborted();
    return this.engine.handle.ledger();
  }

  get #isOnCpu() {
    return this.wasm.kind === 'cpu';
  }

  throwIfDestroyed() {
    this.#lifetime.signal.throwIfAborted();
  }

  /**
   * @param {Parameters<typeof planned>[2]} job
   */
  plan(job) {
    return planned(this.engine.planner, { scale: this.info.decoded_pixels_per_latent, isOnCpu: this.#isOnCpu }, job);
  }

  /**
   * Returns a signal that aborts with `signal`, or when the model ends.
   * @param {AbortSignal | undefined} signal
   */
  signalOf(signal) {
    return either(signal, this.#lifetime.signal);
  }

  /**
   * Returns access to a caller's files. They are not cached: they are small, and different each
   * time.
   * @param {AbortSignal} signal
   */
  accessOf(signal) {
    return new Access(signal, this.notify, false, this.options.fetch);
  }

  /**
   * Runs `task` after all tasks before it, and runs it again if the device was lost meanwhile.
   * @template T
   * @param {{ onProgress?: ModelOptions['onProgress'], signal?: AbortSignal }} options
   * @param {boolean} isRepeatable true if its inputs survive the loss of the device
   * @param {(signal: AbortSignal) => Promise<T>} task
   * @returns {Promise<T>}
   */
  async run({ onProgress, signal: callers }, isRepeatable, task) {
    const signal = this.signalOf(callers);
    try {
      return await this.#queue.run(() => this.#runNow(onProgress, isRepeatable, signal, task), signal);
    } catch (error) {
      throw planError(this.#isOnCpu, error);
    }
  }

  /**
   * @template T
   * @param {ModelOptions['onProgress']} onProgress
   * @param {boolean} isRepeatable
   * @param {AbortSignal} signal
   * @param {(signal: AbortSignal) => Promise<T>} task
   */
  async #runNow(onProgress, isRepeatable, signal, task) {
    this.#access.signal = signal;
    this.shown = undefined;
    const watched = () => this.#watched(onProgress, () => task(signal));
    try {
      return await watched();
    } catch (error) {
      if (signal.aborted || !(await isLoss(error, this.engine.device))) throw error;
      // We cannot replace a caller's device, nor inputs that were on the lost one.
      if ((this.options.device && typeof this.options.device === 'object') || !isRepeatable) throw deviceLost(error);
    }
    await this.#recover(onProgress);
    signal.throwIfAborted();
    try {
      return await watched();
    } catch (error) {
      throw (await isLoss(error, this.engine.device)) ? deviceLost(error) : error;
    }
  }

  /**
   * Runs `task`, and reports the kernels that are compiled for it.
   * @template T
   * @param {ModelOptions['onProgress']} onProgress
   * @param {() => Promise<T>} task
   */
  async #watched(onProgress = this.options.onProgress, task) {
    const { handle } = this.engine;
    handle.watch(hearingOfKernels(onProgress));
    try {
      return await task();
    } finally {
      handle.watch(undefined);
    }
  }

  /**
   * Calls the module with a handle that stops it when `signal` is aborted, and keeps the report of
   * the result.
   * @template {{ report: import('./index.js').Report } | undefined} R
   * @param {AbortSignal} signal
   * @param {(cancel: import('../pkg/wgvae.js').Cancel) => Promise<R>} call
   */
  async cancellable(signal, call) {
    const cancel = new this.wasm.Cancel();
    const abort = () => cancel.cancel();
    try {
      signal.throwIfAborted();
      signal.addEventListener('abort', abort);
      const result = await call(cancel);
      // Nothing was left to run.
      if (!result) return result;
      this.report = result.report;
      const { fallback_text: fallback } = result.report;
      if (fallback) this.notify({ code: 'fallback', message: fallback });
      return result;
    } finally {
      signal.removeEventListener('abort', abort);
      cancel.free();
    }
  }

  /** @param {ModelOptions['onProgress']} [onProgress] */
  async #recover(onProgress) {
    this.notify({ code: 'device-recovered', message: 'the GPU device was lost: loading the weights onto a new one and starting again, in smaller submissions' });
    const target = (this.#submissionTarget ?? this.engine.submissionTarget) * RECOVERY_PART;
    const engine = await startEngine(this.wasm, this.options, this.#model, guarded(onProgress ?? this.options.onProgress));
    this.engine.free();
    this.engine = engine;
    this.info = infoOf(this.#model, engine);
    this.#submissionTarget = target;
  }

  /**
   * Returns the function that the module calls while it works.
   * @param {'decode' | 'encode'} phase
   * @param {ModelOptions['onProgress']} onProgress
   * @returns {(progress: { done: number, total: number, stage: string }) => void}
   */
  listener(phase, onProgress = this.options.onProgress) {
    const listener = guarded(onProgress);
    return ({ done, total, stage }) => listener({ phase, done, total, step: stage });
  }

  /**
   * Returns the module's options for both directions.
   * @param {{ memoryBudget?: number, index?: number }} options
   */
  moduleOptions({ memoryBudget = this.options.memoryBudget, index }) {
    const { leastMemory, parking } = this.options;
    return { memoryBudget: budgetOf(this.#isOnCpu, memoryBudget), leastMemory, parking, submissionTarget: this.#submissionTarget, index };
  }

  /** @param {() => void} free */
  whenFreed(free) {
    this.#freed.push(free);
  }

  destroy() {
    this.#destroyed ??= this.#destroy();
    return this.#destroyed;
  }

  async #destroy() {
    this.#lifetime.abort(new WgvaeError('destroyed', 'the model was destroyed'));
    await this.#queue.idle();
    this.shown = undefined;
    // Their iterators may be paused for ever. How long the callers' inputs take to end does not
    // matter here.
    const clips = [...this.clips];
    await Promise.all(clips.map((clip) => clip.freeStates()));
    for (const clip of clips) clip.free().catch(reportAside);
    for (const free of this.#freed) free();
    const ledger = this.engine.free();
    // A broken module counts nothing.
    if (!this.wasm.broken.aborted) this.#lastLedger = ledger;
    this.#model.free();
  }
}

/**
 * @param {import('./model.js').Model} model
 * @param {import('./engine.js').Engine} engine
 * @returns {import('./index.js').ModelInfo}
 */
function infoOf(model, { vae, adapter }) {
  return { ...model.checkpoint.info(), ...vae.info(), adapter };
}
