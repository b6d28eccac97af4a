// @ts-check
// Whether a failure is that of a lost device. Calls on one fail in many ways, and some before the
// browser says why.

import { WgvaeError } from './errors.js';

/**
 * Milliseconds that a browser may take to say that a device is lost. Firefox hears of it from
 * another process.
 */
const LOSS_DELAY = 500;

/**
 * Whether a failure comes from the loss of `device`.
 * @param {unknown} error
 * @param {GPUDevice} device
 */
export async function isLoss(error, device) {
  // The module knows: a browser that is late to say so must not make it doubtful.
  return codeOf(error) === 'device-lost' || (isOfDevice(error) && (await isLost(device)));
}

/**
 * The error for a lost device, made of the one that came of it.
 * @param {unknown} cause
 */
export function deviceLost(cause) {
  const error = /** @type {Error & { code?: string }} */ (cause);
  return error.code === 'device-lost' ? error : new WgvaeError('device-lost', `the GPU device was lost: ${error.message}`, { cause });
}

/**
 * Whether a device is lost, as far as the browser says so in time.
 * @param {GPUDevice} device
 */
export function isLost(device) {
  /** @type {Promise<boolean>} */
  const late = new Promise((resolve) => setTimeout(resolve, LOSS_DELAY, false));
  return Promise.race([device.lost.then(() => true), late]);
}

/**
 * Whether a failure may come from a lost device. The module does not always find out before the
 * call that failed.
 * @param {unknown} error
 */
function isOfDevice(error) {
  // What the browser's own calls reject with when the process that drives the GPU is gone.
  if (error instanceof DOMException) return error.name === 'OperationError';
  return ['device-lost', 'device-failed', 'out-of-memory', 'canvas'].includes(codeOf(error));
}

/** @param {unknown} error */
function codeOf(error) {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
