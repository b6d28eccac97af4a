// @ts-check
// The compared systems, and the largest allowed error of each.

/**
 * @typedef {object} System
 * @property {string} module in page/
 * @property {'f32' | 'f16'} [precision]
 * @property {'webgpu' | 'cpu'} [device]
 * @property {number} levels largest allowed error, 8-bit levels
 * @property {number} relative largest allowed error, relative to the picture's largest value
 */

const SINGLE = { levels: 1, relative: 1e-3 };

/** @type {Record<string, System>} */
export const SYSTEMS = {
  'wgvae': { module: 'wgvae.js', precision: 'f32', ...SINGLE },
  // Weights and activations are halves; torch's own f16 has an error of 0.0016
  // (tests/fixtures/README.md).
  'wgvae-f16': { module: 'wgvae.js', precision: 'f16', levels: 3, relative: 1e-2 },
  // Without WebGPU, on the threads that ort-wasm has.
  'wgvae-cpu': { module: 'wgvae.js', precision: 'f32', device: 'cpu', ...SINGLE },
  'ort-webgpu': { module: 'ort-webgpu.js', ...SINGLE },
  'ort-wasm': { module: 'ort-wasm.js', ...SINGLE },
};
