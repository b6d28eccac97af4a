// @ts-check
// Read-ahead for a reader whose reads are known in advance. Neighbours are fetched together, and
// the next pieces are fetched while one is processed. The bytes in memory are bounded.

/** Most bytes of one fetch that joins several reads. A single longer read is fetched as it is. */
const GROUP_BYTES = 4 << 20;

/** Largest gap between two reads that is cheaper to fetch than a second request, bytes. */
const GAP_BYTES = 4 << 10;

/** Most bytes that are fetched and not yet read. */
const HELD_BYTES = 24 << 20;

/** Most fetches in flight. */
const FETCHES = 4;

/** @typedef {{ offset: number, length: number }} Range */
/**
 * @typedef {{ offset: number, length: number, reads: number, bytes?:
 * Promise<Uint8Array<ArrayBuffer>>, arrived: boolean }} Group
 */

/** Reads with `fetchRange`, and ahead of the reader after a call of `expect`. */
export class ReadAhead {
  #fetchRange;
  /** Groups in the order of their first reads. @type {Group[]} */
  #groups = [];

  /** @param {(offset: number, length: number) => Promise<Uint8Array<ArrayBuffer>>} fetchRange */
  constructor(fetchRange) {
    this.#fetchRange = fetchRange;
  }

  /**
   * Sets the coming reads, in order.
   * @param {Range[]} reads
   */
  expect(reads) {
    this.#groups = groupReads(reads);
  }

  /**
   * @param {number} offset
   * @param {number} length
   * @returns {Promise<Uint8Array<ArrayBuffer>>}
   */
  async read(offset, length) {
    const group = this.#groups.find((group) => group.offset <= offset && offset + length <= group.offset + group.length);
    if (!group) return this.#fetchRange(offset, length);
    this.#start(group);
    this.#startNext();
    const bytes = await /** @type {Promise<Uint8Array<ArrayBuffer>>} */ (group.bytes);
    group.reads -= 1;
    if (group.reads <= 0) this.#groups = this.#groups.filter((other) => other !== group);
    this.#startNext();
    return bytes.subarray(offset - group.offset, offset - group.offset + length);
  }

  /** Forgets the expected reads and the fetched bytes. */
  clear() {
    this.#groups = [];
  }

  /** @param {Group} group */
  #start(group) {
    if (group.bytes) return;
    group.bytes = this.#fetchRange(group.offset, group.length);
    // The reader gets the error. A piece that is never read must not raise an unhandled rejection.
    group.bytes.then(() => { group.arrived = true; }, () => { group.arrived = true; });
  }

  #startNext() {
    const started = this.#groups.filter((group) => group.bytes);
    let held = started.reduce((sum, group) => sum + group.length, 0);
    let underWay = started.filter((group) => !group.arrived).length;
    for (const group of this.#groups) {
      if (group.bytes) continue;
      if (underWay >= FETCHES || held + group.length > HELD_BYTES) return;
      this.#start(group);
      held += group.length;
      underWay += 1;
    }
  }
}

/**
 * Joins reads that lie side by side in the file.
 * @param {Range[]} reads in order
 * @returns {Group[]} in the order of their first reads
 */
export function groupReads(reads) {
  const places = reads.map((read, order) => ({ ...read, order })).sort((a, b) => a.offset - b.offset);
  /** @type {(Group & { order: number })[]} */
  const groups = [];
  for (const { offset, length, order } of places) {
    const last = groups.at(-1);
    const end = offset + length;
    if (last && offset <= last.offset + last.length + GAP_BYTES && end - last.offset <= GROUP_BYTES) {
      last.length = Math.max(last.length, end - last.offset);
      last.order = Math.min(last.order, order);
      last.reads += 1;
    } else {
      groups.push({ offset, length, order, reads: 1, arrived: false });
    }
  }
  return groups.sort((a, b) => a.order - b.order);
}
