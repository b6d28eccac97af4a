// @ts-check
// What is compared, and how close each must come.

/**
 * @typedef {object} System
 * @property {string} module in page/
 * @property {'f32' | 'f16'} [precision]
 * @property {number} levels 8-bit levels that its picture may be off
 * @property {number} relative what it may be off, relative to the picture's largest value
 */

const SINGLE = { levels: 1, relative: 1e-3 };

/** @type {Record<string, System>} */
export const SYSTEMS = {
  'wgvae': { module: 'wgvae.js', precision: 'f32', ...SINGLE },
  // Weights and activations in halves; torch's own f16 is off by 0.0016 (tests/fixtures/README.md).
  'wgvae-f16': { module: 'wgvae.js', precision: 'f16', levels: 3, relative: 1e-2 },
  'ort-webgpu': { module: 'ort-webgpu.js', ...SINGLE },
  'ort-wasm': { module: 'ort-wasm.js', ...SINGLE },
};
