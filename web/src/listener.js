// @ts-check
// Functions of callers that hear of something.

/**
 * `listener` as browsers call theirs: what it throws is reported as an error that nobody caught,
 * and changes nothing here.
 * @template {unknown[]} P
 * @param {((...parameters: P) => void) | undefined} listener
 * @returns {(...parameters: P) => void}
 */
export function guarded(listener) {
  return (...parameters) => {
    try {
      listener?.(...parameters);
    } catch (error) {
      reportError(error);
    }
  };
}

/**
 * `onProgress` as the module calls what hears of the kernels that a device compiles.
 * @param {import('./index.js').ModelOptions['onProgress']} onProgress
 */
export function hearingOfKernels(onProgress) {
  const listener = guarded(onProgress);
  return (/** @type {{ done: number, total: number, kernel: string }} */ { done, total, kernel }) => listener({ phase: 'compile', done, total, step: kernel });
}
