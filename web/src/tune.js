// @ts-check
// Measurement of which of a device's possible kernels are fastest.

import { checkBrowser, closeDevice, isDevice, openDevice } from './device.js';
import { wgvaeError } from './errors.js';
import { hearingOfKernels } from './listener.js';
import { deviceLost, isLoss } from './loss.js';
import { checkOptions, checkValue, FLAG, pick } from './options.js';
import { either, orAborted } from './queue.js';
import { rememberKernels } from './tuned.js';
import { startWasm } from './wasm.js';

/** @typedef {import('./index.js').TuneOptions} TuneOptions */

/** @type {import('./options.js').Checks} */
const OPTIONS = { ...pick('powerPreference', 'defaultLimits', 'gpu', 'device', 'wasm', 'onProgress', 'signal'), remember: FLAG };

/**
 * @param {TuneOptions} [options]
 * @returns {Promise<import('./index.js').Tuning>}
 */
export async function tune(options = {}) {
  checkOptions(options, OPTIONS);
  const callers = options.signal ?? new AbortController().signal;
  callers.throwIfAborted();
  try {
    checkBrowser(options);
    if (options.device) checkValue('device', options.device, [isDevice, 'a GPUDevice, or none']);
    const wasm = await orAborted(startWasm(options.wasm), callers);
    return await orAborted(measure(wasm, options, callers), either(callers, wasm.broken));
  } catch (error) {
    throw wgvaeError(error);
  }
}

/**
 * @param {import('./wasm.js').Wasm} wasm
 * @param {TuneOptions} options
 * @param {AbortSignal} signal
 */
async function measure(wasm, options, signal) {
  const opened = await openDevice(wasm, options);
  try {
    signal.throwIfAborted();
    opened.handle.watch(hearingOfKernels(options.onProgress));
    const tuning = await opened.handle.tune();
    const isWanted = (options.remember ?? true) && !signal.aborted;
    return { ...tuning, remembered: isWanted && (await rememberKernels(opened.handle.tuningKey(), tuning.kernels)) };
  } catch (error) {
    throw (await isLoss(error, opened.device)) ? deviceLost(error) : error;
  } finally {
    closeDevice(opened);
  }
}
