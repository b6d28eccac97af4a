// @ts-check
// Checks of a file before a browser decodes it. Browsers show as much of a truncated picture as
// there is, and the encode would be of another picture.

/**
 * True if the file holds floats, as .npy or .safetensors, by its first 16 bytes.
 * @param {Uint8Array} mark
 */
export function isFloats(mark) {
  // The header's length in 64 bits, then the header, which is JSON.
  const isSafetensors = mark.length > 8 && mark[8] === 0x7b && mark[7] === 0 && mark[6] === 0 && mark[5] === 0;
  return isSafetensors || text(mark, 1, 6) === 'NUMPY';
}

/**
 * True if the file is an SVG, by its beginning.
 * @param {Uint8Array} bytes
 */
export function isSvg(bytes) {
  return /^\s*(<\?xml[^>]*>|<!--[^]*?-->|<!DOCTYPE[^>]*>|\s)*<svg\b/i.test(text(bytes, 0, 1024));
}

/**
 * True if a PNG, JPEG or WebP file has its end. Other files are left to the browser.
 * @param {Uint8Array} bytes
 */
export function isWhole(bytes) {
  if (text(bytes, 1, 4) === 'PNG') return hasEndOfPng(bytes);
  if (bytes[0] === 0xff && bytes[1] === 0xd8) return hasEndOfJpeg(bytes);
  if (text(bytes, 0, 4) === 'RIFF' && text(bytes, 8, 12) === 'WEBP') return view(bytes).getUint32(4, true) + 8 <= bytes.length;
  return true;
}

/**
 * Walks the chunks. Each is its length, its name, that many bytes and a checksum.
 * @param {Uint8Array} bytes
 */
function hasEndOfPng(bytes) {
  const numbers = view(bytes);
  for (let at = 8; at + 12 <= bytes.length; at += 12 + numbers.getUint32(at)) {
    if (text(bytes, at + 4, at + 8) === 'IEND') return true;
  }
  return false;
}

/**
 * Walks the segments. A segment is its mark and its length, which spans pictures inside it. Between
 * segments lie the pixels, in which a 0xff is followed by 0 or by a number that is no mark. Cameras
 * append data after the end.
 * @param {Uint8Array} bytes
 */
function hasEndOfJpeg(bytes) {
  const numbers = view(bytes);
  let at = bytes.indexOf(0xff, 2);
  while (at >= 0 && at + 1 < bytes.length) {
    const mark = bytes[at + 1];
    if (mark === 0xd9) return true;
    const isAlone = mark === 0 || mark === 1 || (mark >= 0xd0 && mark <= 0xd7);
    if (mark === 0xff) at += 1;
    else if (isAlone) at += 2;
    else if (at + 4 > bytes.length) return false;
    else at += 2 + numbers.getUint16(at + 2);
    at = bytes.indexOf(0xff, at);
  }
  return false;
}

/**
 * @param {Uint8Array} bytes
 * @param {number} from
 * @param {number} to
 */
function text(bytes, from, to) {
  return String.fromCharCode(...bytes.subarray(from, to));
}

/** @param {Uint8Array} bytes */
function view({ buffer, byteOffset, byteLength }) {
  return new DataView(buffer, byteOffset, byteLength);
}
