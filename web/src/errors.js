// @ts-check
// Errors of the package: one class with a code, for failures of files, the network, and the wasm
// module.

/** An error with a `code` for programs and a message for people. */
export class WgvaeError extends Error {
  /**
   * @param {string} code
   * @param {string} message lower case, without a final dot: the subject, the expectation, the
   * finding
   * @param {Record<string, unknown>} [facts] facts of the message as values; `cause` is passed on
   * as in any Error
   */
  constructor(code, message, { cause, ...facts } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    Object.assign(this, facts);
    this.name = 'WgvaeError';
    this.code = code;
  }
}

/**
 * Returns the error for a value that differs from the expected one.
 * @param {string} code
 * @param {string} what
 * @param {string} expected
 * @param {string} found
 * @param {unknown} [cause]
 */
export function mismatch(code, what, expected, found, cause) {
  const facts = cause === undefined ? { expected, found } : { expected, found, cause };
  return new WgvaeError(code, `${what}: expected ${expected}, found ${found}`, facts);
}

/**
 * Turns errors of the wasm module into ours. Returns anything else unchanged, above all a caller's
 * abort reason.
 * @param {unknown} error
 */
export function wgvaeError(error) {
  if (error instanceof WgvaeError || !(error instanceof Error)) return error;
  if (!('code' in error) || typeof error.code !== 'string') return error;
  return new WgvaeError(error.code, error.message, { .../** @type {any} */ (error), cause: error });
}

/**
 * Reports a caller's error that must not end the work, as browsers do for listeners. Node 20 has no
 * such function.
 * @param {unknown} error
 */
export function reportAside(error) {
  (globalThis.reportError ?? console.error)(error);
}

/**
 * Returns the message of any thrown value.
 * @param {unknown} error
 */
export function messageOf(error) {
  return error instanceof Error ? error.message || error.name : String(error);
}
