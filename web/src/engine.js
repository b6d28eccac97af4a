// @ts-check
// Everything that lives on one device: the device, the weights on it, and the planner. A lost
// device replaces all of it.

import { Canvases } from './canvas.js';
import { closeDevice, openDevice, takeKernels } from './device.js';
import { deviceLost, isLoss } from './loss.js';

/** @typedef {import('./wasm.js').Wasm} Wasm */
/** @typedef {import('./device.js').Opened} Opened */
/** @typedef {import('./index.js').ModelOptions} ModelOptions */
/** @typedef {import('./index.js').Progress} Progress */

/**
 * Devices whose loss is known.
 * @type {WeakSet<GPUDevice>}
 */
const lost = new WeakSet();

/**
 * Notes the loss of `device`. It keeps nothing but the device: a caller's outlives its engines.
 * @param {GPUDevice} device
 */
function watch(device) {
  device.lost.then(() => { lost.add(device); });
}

export class Engine {
  #opened;

  /**
   * @param {Opened} opened
   * @param {import('../pkg/wgvae.js').Vae} vae
   */
  constructor(opened, vae) {
    this.#opened = opened;
    this.handle = opened.handle;
    this.vae = vae;
    this.planner = vae.planner();
    this.device = opened.device;
    if (opened.device) watch(opened.device);
    this.adapter = opened.handle.adapter();
    /** Undefined on the CPU. */
    this.canvases = opened.device && new Canvases(opened.device);
    /** @type {number} milliseconds */
    this.submissionTarget = vae.info().submission_target;
  }

  /** True once the loss of the device is known. */
  get isLost() {
    return this.device !== undefined && lost.has(this.device);
  }

  /** Notes a loss that the browser may report later. */
  noteLoss() {
    if (this.device) lost.add(this.device);
  }

  /**
   * Frees everything on the device, and the device if it is ours. Returns the ledger after that.
   * @returns {import('./index.js').Ledger}
   */
  free() {
    try {
      // On a caller's device, canvases keep their pictures.
      if (this.#opened.isOurs) this.canvases?.release();
      this.planner.free();
      this.vae.free();
      return this.handle.ledger();
    } finally {
      closeDevice(this.#opened);
    }
  }
}

/**
 * Gets a device and loads the weights onto it.
 * @param {Wasm} wasm
 * @param {ModelOptions} options
 * @param {import('./model.js').Model} model
 * @param {(progress: Progress) => void} onProgress
 */
export async function startEngine(wasm, options, model, onProgress) {
  onProgress({ phase: 'load', done: 0, total: 0, step: 'device' });
  const opened = await openDevice(wasm, options);
  try {
    if (opened.device) await takeKernels(opened.handle, options.kernels);
    model.beginLoad((done, total, downloaded) => onProgress({ phase: 'load', done, total, downloaded, step: 'weights' }));
    const vae = await wasm.Vae.load(opened.handle, model.checkpoint, {
      precision: options.precision ?? 'auto',
      unscaled: options.unscaled ?? false,
      // Only a plan with a budget can fetch weights from the host. Without one they would be in
      // memory twice.
      weightsOnHost: options.memoryBudget !== undefined,
    });
    return new Engine(opened, vae);
  } catch (error) {
    const lost = await isLoss(error, opened.device);
    closeDevice(opened);
    throw lost ? deviceLost(error) : error;
  } finally {
    model.endLoad();
  }
}
