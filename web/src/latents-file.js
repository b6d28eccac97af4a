// @ts-check
// Latents as files, as `wgvae encode` writes them: .safetensors and .npy.

/** Multiples of bytes at which the values of a file begin. */
const ALIGNMENT = { safetensors: 8, npy: 64 };

/**
 * Latents to write. `unscaled`: true if they are the VAE's own.
 * @typedef {{ data: Float32Array, shape: readonly number[], unscaled?: boolean }} Latents
 */

/** Functions that make a file, by the name of its kind. */
export const FILES = { safetensors: safetensorsOf, npy: npyOf };

/**
 * Returns a .safetensors file with the tensor `latents`, which says whose scale they have.
 * @param {Latents} latents
 */
export function safetensorsOf({ data, shape, unscaled = false }) {
  const tensor = { dtype: 'F32', shape, data_offsets: [0, data.byteLength] };
  const json = JSON.stringify({ __metadata__: { unscaled: `${unscaled}` }, latents: tensor });
  const header = json.padEnd(Math.ceil(json.length / ALIGNMENT.safetensors) * ALIGNMENT.safetensors);
  const length = new DataView(new ArrayBuffer(8));
  length.setBigUint64(0, BigInt(header.length), true);
  return fileOf(length, header, data);
}

/**
 * Returns a .npy file, version 1.0. It cannot say whose scale the latents have.
 * @param {Latents} latents
 */
function npyOf({ data, shape }) {
  const text = `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape.join(', ')}), }`;
  const [mark, end] = ['\x93NUMPY\x01\x00', '\n'];
  const start = mark.length + 2;
  const whole = Math.ceil((start + text.length + end.length) / ALIGNMENT.npy) * ALIGNMENT.npy;
  const header = text.padEnd(whole - start - end.length) + end;
  const preamble = new DataView(new ArrayBuffer(start));
  [...mark].forEach((letter, at) => preamble.setUint8(at, letter.charCodeAt(0)));
  preamble.setUint16(mark.length, header.length, true);
  return fileOf(preamble, header, data);
}

/**
 * @param {DataView<ArrayBuffer>} preamble
 * @param {string} header of ASCII
 * @param {Float32Array} data
 */
function fileOf(preamble, header, data) {
  return new Blob([preamble, header, /** @type {Float32Array<ArrayBuffer>} */ (data)], { type: 'application/octet-stream' });
}
