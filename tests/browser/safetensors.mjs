// @ts-check
// Reads and writes .safetensors and reads .npy, independently of the crate's code.

/** @typedef {{ shape: number[], data: Float32Array }} Tensor */

/**
 * Writes f32 tensors to a file, in the given order.
 * @param {[string, Tensor][]} tensors
 * @param {{ hole?: number }} [options] `hole`: bytes of another tensor, `other.weight` of f32
 * zeros, before the first, as in a larger checkpoint
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function writeSafetensors(tensors, { hole = 0 } = {}) {
  /** @type {Record<string, { dtype: string, shape: number[], data_offsets: [number, number] }>} */
  const header = {};
  if (hole) header['other.weight'] = { dtype: 'F32', shape: [hole / 4], data_offsets: [0, hole] };
  let end = hole;
  for (const [name, { shape, data }] of tensors) {
    header[name] = { dtype: 'F32', shape, data_offsets: [end, end + data.byteLength] };
    end += data.byteLength;
  }
  const text = JSON.stringify(header);
  // Data begins at a multiple of 8 bytes.
  const json = new TextEncoder().encode(text + ' '.repeat((8 - (text.length % 8)) % 8));
  const file = new Uint8Array(8 + json.length + end);
  new DataView(file.buffer).setBigUint64(0, BigInt(json.length), true);
  file.set(json, 8);
  for (const [name, { data }] of tensors) {
    file.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), 8 + json.length + header[name].data_offsets[0]);
  }
  return file;
}

/**
 * @param {Uint8Array} file
 * @returns {{ metadata: Record<string, string>, names: string[], tensor(name: string): Tensor,
 * levels(name: string): { shape: number[], data: Uint8Array } }}
 */
export function readSafetensors(file) {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const begin = 8 + Number(view.getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(file.subarray(8, begin)));
  const tensor = (/** @type {string} */ name) => {
    const { dtype, shape, data_offsets: [from, to] } = header[name];
    if (dtype === 'F32') return { shape, data: new Float32Array(copy(file, begin + from, begin + to)) };
    throw new Error(`tensor "${name}": expected F32, found ${dtype}`);
  };
  const levels = (/** @type {string} */ name) => {
    const { dtype, shape, data_offsets: [from, to] } = header[name];
    if (dtype === 'U8') return { shape, data: new Uint8Array(copy(file, begin + from, begin + to)) };
    throw new Error(`tensor "${name}": expected U8, found ${dtype}`);
  };
  const { __metadata__: metadata = {}, ...tensors } = header;
  return { metadata, names: Object.keys(tensors), tensor, levels };
}

/**
 * @param {Uint8Array} file
 * @returns {Tensor}
 */
export function readNpy(file) {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const [lengthBytes, length] = file[6] === 1 ? [2, view.getUint16(8, true)] : [4, view.getUint32(8, true)];
  const begin = 8 + lengthBytes + length;
  const header = new TextDecoder().decode(file.subarray(8 + lengthBytes, begin));
  if (!header.includes("'<f4'")) throw new Error(`expected an .npy file of <f4, found ${header}`);
  const shape = /'shape': \(([^)]*)\)/.exec(header)?.[1].split(',').filter((text) => text.trim()).map(Number) ?? [];
  return { shape, data: new Float32Array(copy(file, begin, file.length)) };
}

/**
 * Copies bytes. `slice` of Node's Buffer copies nothing, and floats must begin at a multiple of 4
 * bytes.
 * @param {Uint8Array} file
 * @param {number} first
 * @param {number} end
 */
function copy(file, first, end) {
  return Uint8Array.prototype.slice.call(file, first, end).buffer;
}
