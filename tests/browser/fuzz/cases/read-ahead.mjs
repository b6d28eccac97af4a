// @ts-check
// Reads that are known in advance: read-ahead.js alone.

import assert from 'node:assert/strict';

import { groupReads, ReadAhead } from '../../../../web/src/read-ahead.js';

/** Most bytes that may wait for their reader, besides one longer read. */
const MOST_HELD = 24 << 20;

/** The file, whose bytes tell their offset. */
const WHOLE = new Uint8Array(40_000_000);

/** @param {import('../world.mjs').World} world */
export async function readsAhead({ random, clock }) {
  const size = random.pick([100, 10_000, WHOLE.length]);
  const reads = Array.from({ length: random.between(1, 30) }, () => {
    const offset = random.below(size);
    return { offset, length: random.below(Math.min(size - offset, random.pick([10, 5000, 9_000_000])) + 1) };
  });
  if (random.chance(0.7)) reads.sort((a, b) => a.offset - b.offset);
  for (const { offset, length } of reads) {
    const isWithin = groupReads(reads).some((group) => group.offset <= offset && offset + length <= group.offset + group.length);
    assert.ok(isWithin, `a read from ${offset} in no group`);
  }
  let underWay = 0;
  const ahead = new ReadAhead(async (offset, length) => {
    underWay += 1;
    assert.ok(length <= Math.max(MOST_HELD, 9_000_000), `a fetch of ${length} bytes`);
    // Four ahead, and unexpected reads of the reader.
    assert.ok(underWay <= 5 + reads.length, `${underWay} fetches at once`);
    if (random.chance(0.5)) await clock.wait(random.below(100));
    underWay -= 1;
    if (random.chance(0.02)) throw new TypeError('network error');
    return WHOLE.subarray(offset, offset + length);
  });
  const isExpected = random.chance(0.8);
  if (isExpected) ahead.expect(reads);
  const take = async (/** @type {{ offset: number, length: number }} */ { offset, length }) => {
    const found = await ahead.read(offset, length).catch((error) => error);
    if (found instanceof TypeError) return;
    assert.ok(found instanceof Uint8Array && found.buffer === WHOLE.buffer, 'a part of the file');
    assert.deepEqual([found.byteOffset, found.length], [offset, length]);
  };
  const all = (async () => {
    for (const read of reads) await take(read);
  })();
  assert.ok(await clock.runUntil(all), 'a read never ends');
  await all;
  ahead.clear();
  await clock.runOut();
  assert.equal(underWay, 0, 'fetches are under way when nobody reads');
}
