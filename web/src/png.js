// @ts-check
// Encoding of pictures as PNG files, without a canvas. So it works in Node, for any size, and in
// browsers that change the pixels that pages read.

const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);

/**
 * 8 bits, red, green and blue or these and alpha; compression, filter and order as in all PNG
 * files.
 */
const FORMATS = { 3: [8, 2, 0, 0, 0], 4: [8, 6, 0, 0, 0] };

/** Rendering intent in the chunk that says that levels are those of sRGB. */
const PERCEPTUAL = Uint8Array.of(0);

/** Filter of a row: each byte minus the byte above. */
const UP = 2;

/** CRC-32 of each byte value. @type {Uint32Array | undefined} */
let remainders;

/**
 * @param {Uint8ClampedArray} rgba `[height, width, 4]`, straight alpha
 * @param {number} width
 * @param {number} height
 * @param {3 | 4} channels to write; with 3, alpha is dropped
 * @returns {Promise<Blob>}
 */
export async function pngOf(rgba, width, height, channels) {
  const header = new Uint8Array(13);
  new DataView(header.buffer).setUint32(0, width);
  new DataView(header.buffer).setUint32(4, height);
  header.set(FORMATS[channels], 8);
  const packed = new Blob([rows(rgba, width, height, channels)]).stream().pipeThrough(new CompressionStream('deflate'));
  const data = new Uint8Array(await new Response(packed).arrayBuffer());
  return new Blob([SIGNATURE, chunk('IHDR', header), chunk('sRGB', PERCEPTUAL), chunk('IDAT', data), chunk('IEND', new Uint8Array())], { type: 'image/png' });
}

/**
 * @param {Uint8ClampedArray} rgba
 * @param {number} width
 * @param {number} height
 * @param {number} channels
 */
function rows(rgba, width, height, channels) {
  const all = new Uint8Array(height * (1 + channels * width));
  let to = 0;
  for (let row = 0; row < height; row += 1) {
    all[to++] = UP;
    for (let from = 4 * width * row; from < 4 * width * (row + 1); from += 4) {
      for (let channel = from; channel < from + channels; channel += 1) all[to++] = rgba[channel] - (row > 0 ? rgba[channel - 4 * width] : 0);
    }
  }
  return all;
}

/**
 * @param {string} type
 * @param {Uint8Array} data
 */
function chunk(type, data) {
  const bytes = new Uint8Array(12 + data.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, data.length);
  bytes.set(new TextEncoder().encode(type), 4);
  bytes.set(data, 8);
  view.setUint32(8 + data.length, crc32(bytes.subarray(4, 8 + data.length)));
  return bytes;
}

/** Returns the CRC-32 that PNG, gzip and others use. @param {Uint8Array} bytes */
function crc32(bytes) {
  remainders ??= Uint32Array.from({ length: 256 }, (_, byte) => {
    for (let bit = 0; bit < 8; bit += 1) byte = byte & 1 ? (byte >>> 1) ^ 0xedb88320 : byte >>> 1;
    return byte;
  });
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ remainders[(crc ^ byte) & 255];
  return ~crc >>> 0;
}
