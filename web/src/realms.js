// @ts-check
// Classes by name. A value of another window, frame or context of Node has classes of its own, so
// `instanceof` does not know it.

/**
 * True for a value of one of these classes, or of a subclass, of this realm or another.
 * @param {unknown} value
 * @param {...string} classes some do not exist in every browser or thread
 */
export function isA(value, ...classes) {
  const tag = Object.prototype.toString.call(value).slice('[object '.length, -1);
  return classes.some((name) => tag === name || (name in globalThis && value instanceof /** @type {any} */ (globalThis)[name]));
}

/** @param {unknown} value @returns {value is Blob} */
export const isBlob = (value) => isA(value, 'Blob', 'File');

/** @param {unknown} value @returns {value is ArrayBuffer | Uint8Array} */
export const isMemory = (value) => isA(value, 'ArrayBuffer', 'Uint8Array');

/** @param {unknown} value @returns {value is URL} */
export const isUrl = (value) => isA(value, 'URL');
