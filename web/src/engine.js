// @ts-check
// What lives on one device: the device, the weights on it, and the planner. Replaced as a whole when the device is lost.

import { Canvases } from './canvas.js';
import { deviceLost, isLoss } from './loss.js';

/** @typedef {import('./wasm.js').Wasm} Wasm */
/** @typedef {import('./index.js').DecoderOptions} DecoderOptions */
/** @typedef {import('./index.js').Progress} Progress */

export class Engine {
  /**
   * @param {import('../pkg/wgvae.js').Gpu} gpu
   * @param {import('../pkg/wgvae.js').Vae} vae
   * @param {boolean} isAdopted whether the device is a caller's
   */
  constructor(gpu, vae, isAdopted) {
    this.gpu = gpu;
    this.vae = vae;
    this.isAdopted = isAdopted;
    this.planner = vae.planner();
    /** @type {GPUDevice} */
    this.device = gpu.device();
    this.adapter = gpu.adapter();
    this.canvases = new Canvases(this.device);
    /** @type {number} milliseconds */
    this.submissionTarget = vae.info().submission_target;
  }

  /**
   * Frees all that is on the device, and the device if it is ours. Returns the ledger after that.
   * @returns {import('./index.js').Ledger}
   */
  free() {
    // What a canvas shows of a caller's device stays there.
    if (!this.isAdopted) this.canvases.release();
    this.planner.free();
    this.vae.free();
    const ledger = this.gpu.ledger();
    this.gpu.lose();
    this.gpu.free();
    return ledger;
  }
}

/**
 * Gets a device and loads the weights onto it.
 * @param {Wasm} wasm
 * @param {DecoderOptions} options
 * @param {import('./model.js').Model} model
 * @param {(progress: Progress) => void} onProgress
 */
export async function startEngine(wasm, options, model, onProgress) {
  onProgress({ phase: 'load', done: 0, total: 0, step: 'device' });
  const gpu = await openGpu(wasm, options);
  try {
    model.beginLoad((done, total) => onProgress({ phase: 'load', done, total, step: 'weights' }));
    const vae = await wasm.Vae.load(gpu, model.checkpoint, {
      precision: options.precision ?? 'auto',
      unscaled: options.unscaled ?? false,
      // Only a plan with a budget can fetch weights from the host; without one they would be there twice.
      weightsOnHost: options.memoryBudget !== undefined,
    });
    return new Engine(gpu, vae, options.device !== undefined);
  } catch (error) {
    const lost = await isLoss(error, gpu.device());
    gpu.lose();
    gpu.free();
    throw lost ? deviceLost(error) : error;
  } finally {
    model.endLoad();
  }
}

/**
 * @param {Wasm} wasm
 * @param {DecoderOptions} options
 */
function openGpu(wasm, { device, powerPreference, defaultLimits }) {
  if (device) return wasm.Gpu.adopt(device);
  return wasm.Gpu.request({ powerPreference: powerPreference ?? 'high-performance', defaultLimits: defaultLimits ?? false });
}
