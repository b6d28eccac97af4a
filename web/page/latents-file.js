// @ts-check
// Latents as a .safetensors file.

/**
 * @param {string} name of the encoded file
 * @param {{ data: Float32Array, shape: readonly number[] }} latents
 */
export function latentsFile(name, { data, shape }) {
  const tensor = { dtype: 'F32', shape, data_offsets: [0, data.byteLength] };
  const json = JSON.stringify({ latents: tensor });
  // Data begins at a multiple of 8 bytes.
  const header = new TextEncoder().encode(json.padEnd(Math.ceil(json.length / 8) * 8));
  const length = new DataView(new ArrayBuffer(8));
  length.setBigUint64(0, BigInt(header.length), true);
  const values = /** @type {Float32Array<ArrayBuffer>} */ (data);
  return new File([length, header, values], `${name.replace(/\.[^.]*$/, '')}-latents.safetensors`, { type: 'application/octet-stream' });
}
