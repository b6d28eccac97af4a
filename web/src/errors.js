// @ts-check
// Errors of the package: one class with a code, for failures of files, the network, and the wasm
// module.

/** Every code. @type {Record<import('./index.js').ErrorCode, true>} */
const CODES = {
  format: true, tensor: true, 'missing-tensors': true, config: true, input: true, budget: true, 'too-large': true, 'not-finite': true, 'host-memory': true,
  io: true, cancelled: true, 'no-adapter': true, 'adapter-too-small': true, 'device-refused': true, 'out-of-memory': true, 'device-lost': true, 'device-failed': true,
  'no-webgpu': true, http: true, network: true, truncated: true, changed: true, canvas: true, destroyed: true, replaced: true, wasm: true, internal: true,
};

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

/** Returns what a value is, for errors. @param {unknown} value */
export function kindOf(value) {
  if (value === null || value === undefined) return String(value);
  return typeof value === 'object' ? (value.constructor?.name ?? 'an object') : typeof value;
}

/**
 * Turns errors of the wasm module into ours. Returns anything else unchanged, above all a caller's
 * abort reason.
 * @param {unknown} error
 */
export function wgvaeError(error) {
  if (error instanceof WgvaeError || !(error instanceof Error)) return error;
  // Errors of Node and of callers have codes of their own.
  if (!('code' in error) || typeof error.code !== 'string' || !Object.hasOwn(CODES, error.code)) return error;
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
