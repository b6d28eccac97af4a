// @ts-check
// Callers' functions that listen to events.

import { reportAside } from './errors.js';

/**
 * Returns `listener` as a browser's event listener: an exception in it is reported as uncaught, and
 * has no other effect.
 * @template {unknown[]} P
 * @param {((...parameters: P) => void) | undefined} listener
 * @returns {(...parameters: P) => void}
 */
export function guarded(listener) {
  return (...parameters) => {
    try {
      listener?.(...parameters);
    } catch (error) {
      reportAside(error);
    }
  };
}

/**
 * Returns `onProgress` in the form that the module calls for each kernel that a device compiles.
 * @param {import('./index.js').ModelOptions['onProgress']} onProgress
 */
export function hearingOfKernels(onProgress) {
  const listener = guarded(onProgress);
  return (/** @type {{ done: number, total: number, kernel: string }} */ { done, total, kernel }) => listener({ phase: 'compile', done, total, step: kernel });
}
