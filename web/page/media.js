// @ts-check
// The library that reads and writes video files, for the page and its worker. It is large, so it is
// loaded on first use.

/** @typedef {typeof import('../vendor/node_modules/mediabunny/dist/modules/src/index.js')} Media */

/** @returns {Promise<Media>} */
export function loadMedia() {
  // @ts-ignore only dist/ has it: `cargo xtask web` puts it there
  return import('../vendor/mediabunny.mjs');
}
