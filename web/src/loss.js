// @ts-check
// Detection of lost devices. Calls on a lost device fail in many ways, some before the browser
// reports the loss.

import { WgvaeError } from './errors.js';

/**
 * Time that a browser may take to report a loss, milliseconds. Firefox hears of it from another
 * process.
 */
const LOSS_DELAY = 500;

/**
 * True if a failure comes from the loss of `device`.
 * @param {unknown} error
 * @param {GPUDevice | undefined} device undefined for the CPU, which is never lost
 */
export async function isLoss(error, device) {
  // The module knows for sure, even if the browser reports the loss late.
  return device !== undefined && (codeOf(error) === 'device-lost' || (isOfDevice(error) && (await isLost(device))));
}

/**
 * Returns the error for a lost device, made from the error that it caused.
 * @param {unknown} cause
 */
export function deviceLost(cause) {
  const error = /** @type {Error & { code?: string }} */ (cause);
  return error.code === 'device-lost' ? error : new WgvaeError('device-lost', `the GPU device was lost: ${error.message}`, { cause });
}

/**
 * True if a device is lost and the browser reports it in time.
 * @param {GPUDevice} device
 */
export function isLost(device) {
  /** @type {Promise<boolean>} */
  const late = new Promise((resolve) => setTimeout(resolve, LOSS_DELAY, false));
  return Promise.race([device.lost.then(() => true), late]);
}

/**
 * True if a failure may come from a lost device. The module does not always notice the loss before
 * the failing call.
 * @param {unknown} error
 */
function isOfDevice(error) {
  // The browser's own calls reject with this when the GPU process is gone.
  if (error instanceof DOMException) return error.name === 'OperationError';
  return ['device-lost', 'device-failed', 'out-of-memory', 'canvas'].includes(codeOf(error));
}

/** @param {unknown} error */
function codeOf(error) {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
