// @ts-check
// What the package throws: one class with a code, whether the failure came from a file, the
// network, or the module in wasm.

/** A failure with a `code` that programs can tell apart and a message that people can read. */
export class WgvaeError extends Error {
  /**
   * @param {string} code
   * @param {string} message lower case, without a final dot: what it is about, what was expected,
   * what was found @param {Record<string, unknown>} [facts] what the message says, as values;
   * `cause` is passed on as in any Error
   */
  constructor(code, message, { cause, ...facts } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    Object.assign(this, facts);
    this.name = 'WgvaeError';
    this.code = code;
  }
}

/**
 * The failure of one thing that should have been another.
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
 * Errors of the wasm module become ours; anything else, a caller's abort reason above all, stays
 * the very value that it was.
 * @param {unknown} error
 */
export function wgvaeError(error) {
  if (error instanceof WgvaeError || !(error instanceof Error)) return error;
  if (!('code' in error) || typeof error.code !== 'string') return error;
  return new WgvaeError(error.code, error.message, { .../** @type {any} */ (error), cause: error });
}

/**
 * What an unknown thrown value says.
 * @param {unknown} error
 */
export function messageOf(error) {
  return error instanceof Error ? error.message || error.name : String(error);
}
