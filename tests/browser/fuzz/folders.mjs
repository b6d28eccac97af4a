// @ts-check
// The origin private file system in memory, as slow and as unreliable as a case wants.

import { MemoryFile } from './blobs.mjs';

/** Errors of browsers that refuse access. */
const REFUSALS = ['QuotaExceededError', 'NoModificationAllowedError', 'InvalidStateError', 'NotFoundError', 'SecurityError', 'UnknownError'];

/**
 * State that all handles of one file system share. `hasStreams`: true to write files as streams,
 * whole or not at all; false to write in place, like Safari.
 * @typedef {{ random: import('./random.mjs').Random, clock: import('./clock.mjs').Clock, faults:
 * number, hasStreams: boolean }} Disk
 */

/** Takes some time, perhaps, and fails, perhaps. @param {Disk} disk */
async function access({ random, clock, faults }) {
  if (random.chance(0.1)) await clock.wait(random.below(50));
  if (random.chance(faults)) throw new DOMException('refused', random.pick(REFUSALS));
}

/** @param {string} name */
const missing = (name) => new DOMException(`${name} is not there`, 'NotFoundError');

export class MemoryFolder {
  kind = /** @type {const} */ ('directory');
  isRemoved = false;
  /** @type {Map<string, MemoryFolder | MemoryFileHandle>} */
  entries = new Map();
  #disk;

  /** @param {string} name @param {Disk} disk */
  constructor(name, disk) {
    this.name = name;
    this.#disk = disk;
  }

  /** @param {string} name @param {{ create?: boolean }} [options] */
  async getDirectoryHandle(name, { create = false } = {}) {
    const found = await this.#find(name, create, () => new MemoryFolder(name, this.#disk));
    if (found instanceof MemoryFolder) return found;
    throw new DOMException(`${name} is a file`, 'TypeMismatchError');
  }

  /** @param {string} name @param {{ create?: boolean }} [options] */
  async getFileHandle(name, { create = false } = {}) {
    const found = await this.#find(name, create, () => new MemoryFileHandle(name, this.#disk));
    if (found instanceof MemoryFileHandle) return found;
    throw new DOMException(`${name} is a folder`, 'TypeMismatchError');
  }

  /** @param {string} name @param {{ recursive?: boolean }} [options] */
  async removeEntry(name, { recursive = false } = {}) {
    await access(this.#disk);
    const entry = this.entries.get(name);
    if (this.isRemoved || !entry) throw missing(name);
    if (entry instanceof MemoryFolder && entry.entries.size > 0 && !recursive) throw new DOMException('not empty', 'InvalidModificationError');
    entry.remove();
    this.entries.delete(name);
  }

  async *values() {
    for (const entry of [...this.entries.values()]) {
      await access(this.#disk);
      yield entry;
    }
  }

  remove() {
    this.isRemoved = true;
    for (const entry of this.entries.values()) entry.remove();
  }

  /**
   * @param {string} name
   * @param {boolean} create
   * @param {() => MemoryFolder | MemoryFileHandle} make
   */
  async #find(name, create, make) {
    await access(this.#disk);
    if (this.isRemoved) throw missing(this.name);
    const found = this.entries.get(name);
    if (found) return found;
    if (!create) throw missing(name);
    const made = make();
    this.entries.set(name, made);
    return made;
  }
}

class MemoryFileHandle {
  kind = /** @type {const} */ ('file');
  isRemoved = false;
  #disk;
  #content = new Uint8Array();
  /** Exists only if files are written as streams. @type {(() => Promise<unknown>) | undefined} */
  createWritable;

  /** @param {string} name @param {Disk} disk */
  constructor(name, disk) {
    this.name = name;
    this.#disk = disk;
    if (disk.hasStreams) this.createWritable = () => this.#writable();
    else delete this.createWritable;
  }

  remove() {
    this.isRemoved = true;
  }

  async getFile() {
    await access(this.#disk);
    if (this.isRemoved) throw missing(this.name);
    return new MemoryFile([this.#content], this.name);
  }

  /** The content, read without faults. */
  get content() {
    return this.#content;
  }

  async #writable() {
    await access(this.#disk);
    if (this.isRemoved) throw missing(this.name);
    let written = new Uint8Array();
    return {
      write: async (/** @type {any} */ bytes) => {
        await access(this.#disk);
        written = new MemoryFile([bytes], '').bytes.slice();
      },
      close: async () => {
        await access(this.#disk);
        if (this.isRemoved) throw missing(this.name);
        this.#content = written;
      },
    };
  }

  async createSyncAccessHandle() {
    await access(this.#disk);
    if (this.isRemoved) throw missing(this.name);
    const { random, faults } = this.#disk;
    return {
      truncate: () => { this.#content = new Uint8Array(); },
      write: (/** @type {Uint8Array} */ bytes) => {
        const isFull = random.chance(faults);
        this.#content = bytes.slice(0, isFull ? random.below(bytes.length + 1) : bytes.length);
        if (isFull && random.chance(0.5)) throw new DOMException('full', 'QuotaExceededError');
        return this.#content.length;
      },
      close: () => {},
    };
  }
}

/** Web Locks of one page, as far as they are used. */
export class MemoryLocks {
  /** @type {Set<string>} */
  #held = new Set();

  /**
   * @param {string} name
   * @param {any} options
   * @param {any} [task]
   */
  async request(name, options, task = options) {
    if (this.#held.has(name)) return task(null);
    this.#held.add(name);
    try {
      return await task({ name });
    } finally {
      this.#held.delete(name);
    }
  }
}
