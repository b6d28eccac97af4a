// @ts-check
// Blobs and files in memory instead of Node's, which read on other threads: with these, a case is
// reproducible.

/**
 * Fault of a blob that stands for a file on disk.
 * @typedef {'none' | 'gone' | 'shrunk' | 'broken'} BlobFault
 */

/** @param {BlobPart} part */
function bytesOf(part) {
  if (part instanceof MemoryBlob) return part.bytes;
  if (typeof part === 'string') return new TextEncoder().encode(part);
  if (part instanceof ArrayBuffer) return new Uint8Array(part);
  const view = /** @type {Uint8Array} */ (part);
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
}

/** @typedef {string | ArrayBuffer | Uint8Array | MemoryBlob} BlobPart */

export class MemoryBlob {
  /** @type {Uint8Array} */
  bytes;
  /** @type {BlobFault} */
  fault = 'none';

  /** @param {BlobPart[]} [parts] */
  constructor(parts = []) {
    const pieces = parts.map(bytesOf);
    this.bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
    let offset = 0;
    for (const piece of pieces) {
      this.bytes.set(piece, offset);
      offset += piece.length;
    }
  }

  get size() {
    return this.bytes.length;
  }

  /** @param {number} [start] @param {number} [end] */
  slice(start = 0, end = this.size) {
    const part = new MemoryBlob([this.bytes.subarray(start, end)]);
    part.fault = this.fault;
    return part;
  }

  async arrayBuffer() {
    if (this.fault === 'gone') throw new DOMException('the file could not be read', 'NotReadableError');
    if (this.fault === 'broken') throw new DOMException('the disk is broken', 'EncodingError');
    return this.bytes.slice(0, this.fault === 'shrunk' ? this.size >> 1 : this.size).buffer;
  }

  async text() {
    return new TextDecoder().decode(await this.arrayBuffer());
  }
}

export class MemoryFile extends MemoryBlob {
  /** @param {BlobPart[]} parts @param {string} name */
  constructor(parts, name) {
    super(parts);
    this.name = name;
  }
}
