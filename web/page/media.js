// @ts-check
// What reads and writes video files, in the page and in its worker: loaded when the first is
// wanted, as it is large.

/** @typedef {typeof import('../vendor/node_modules/mediabunny/dist/modules/src/index.js')} Media */

/** @returns {Promise<Media>} */
export function loadMedia() {
  // @ts-ignore only dist/ has it: `cargo xtask web` puts it there
  return import('../vendor/mediabunny.mjs');
}
