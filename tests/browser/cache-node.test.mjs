// @ts-check
// The cache on a disk in memory: its list, its limit, and which files are evicted first.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { cachedFiles, cacheUsage, clearCache, openCachedFile, persistCache } from '../../web/src/cache.js';
import { MemoryFile } from './fuzz/blobs.mjs';
import { MemoryFolder } from './fuzz/folders.mjs';

const PART = 1000;

/** Bytes of a cached file beside its parts. */
const SLACK = 200;

/**
 * Sets up a disk that never fails, and a clock that the test moves.
 * @param {import('node:test').TestContext} t
 */
function world(t) {
  const disk = /** @type {any} */ ({ random: { chance: () => false }, faults: 0, hasStreams: true });
  const root = new MemoryFolder('', disk);
  const before = new Map(['navigator', 'File', 'Blob'].map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]));
  const put = (/** @type {string} */ name, /** @type {unknown} */ value) => Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  put('navigator', { storage: { getDirectory: async () => root, persist: async () => true } });
  put('File', MemoryFile);
  t.after(async () => {
    await clearCache();
    for (const [name, property] of before) property ? Object.defineProperty(globalThis, name, property) : Reflect.deleteProperty(globalThis, name);
  });
  t.mock.timers.enable({ apis: ['Date'], now: 1_700_000_000_000 });
  return { root };
}

/** @param {string} name */
const url = (name) => `https://host/${name}`;

/**
 * Loads `parts` parts of a file. Returns how many came from the cache, and the notices.
 * @param {import('node:test').TestContext} t
 * @param {string} name
 * @param {{ parts?: number, limit?: number, validator?: string, isHeld?: boolean }} [options]
 * `isHeld`: true if it stays in use afterwards
 */
async function load(t, name, { parts = 4, limit, validator = '"one"', isHeld = false } = {}) {
  t.mock.timers.tick(1000);
  /** @type {string[]} */
  const notices = [];
  const file = await openCachedFile({ url: url(name), validator, length: parts * PART }, ({ code, message }) => notices.push(`${code}: ${message}`), limit);
  assert.ok(file);
  let kept = 0;
  for (let part = 0; part < parts; part += 1) {
    kept += Number(await file.keeps(part * PART, PART));
    await file.getOr(part * PART, PART, async () => new Uint8Array(PART).fill(part));
  }
  await cacheUsage();
  if (!isHeld) file.release();
  return { kept, notices, release: () => file.release() };
}

const names = async () => (await cachedFiles()).map(({ url }) => url.split('/').at(-1));

describe('what is kept', () => {
  it('is listed, and removed by its address', async (t) => {
    world(t);
    assert.deepEqual(await cachedFiles(), []);
    for (const name of ['a', 'b', 'c']) await load(t, name);
    assert.equal((await load(t, 'a')).kept, 4);
    const files = await cachedFiles();
    assert.deepEqual(files.map((file) => file.url), ['b', 'c', 'a'].map(url));
    assert.ok(files.every(({ length, bytes }) => length === 4 * PART && bytes >= length && bytes <= length + SLACK), JSON.stringify(files));
    assert.deepEqual(files.map(({ used }) => used.getTime() - 1_700_000_000_000), [2000, 3000, 4000]);
    assert.equal(files.reduce((sum, { bytes }) => sum + bytes, 0), (await cacheUsage()).bytes);
    await clearCache(url('b'));
    await clearCache(new URL(url('never')));
    assert.deepEqual(await names(), ['c', 'a']);
    assert.equal((await load(t, 'b')).kept, 0);
    await clearCache();
    assert.deepEqual(await cachedFiles(), []);
    await assert.rejects(clearCache('http://['), { code: 'input' });
  });

  it('is kept for good where the browser agrees', async (t) => {
    world(t);
    assert.equal(await persistCache(), true);
    Reflect.deleteProperty(navigator.storage, 'persist');
    assert.equal(await persistCache(), false);
  });

  it('survives what a tab has left half written', async (t) => {
    const { root } = world(t);
    await load(t, 'a');
    const cache = /** @type {any} */ (root.entries.get('wgvae')).entries.get('cache');
    const [file] = cache.entries.values();
    for (const name of ['half', 'whole']) await file.getDirectoryHandle(name, { create: true });
    assert.deepEqual(await names(), ['a']);
    const [version] = [...file.entries.values()].filter((entry) => entry.entries.has('identity.json'));
    version.entries.delete('used');
    assert.deepEqual((await cachedFiles()).map(({ used }) => used.getTime()), [0]);
  });
});

describe('a limit', () => {
  it('makes those make room that were used longest ago', async (t) => {
    world(t);
    const limit = 10 * PART;
    for (const name of ['a', 'b']) assert.deepEqual((await load(t, name, { limit })).notices, []);
    await load(t, 'a', { limit });
    assert.deepEqual((await load(t, 'c', { limit })).notices, []);
    assert.deepEqual(await names(), ['a', 'c']);
    assert.ok((await cacheUsage()).bytes <= limit + 2 * SLACK);
    assert.deepEqual(await load(t, 'a', { limit }).then(({ kept, notices }) => [kept, notices]), [4, []]);
  });

  it('leaves alone what is in use, and says that there is no room', async (t) => {
    world(t);
    const limit = 6 * PART;
    const { release } = await load(t, 'a', { limit, isHeld: true });
    const { notices } = await load(t, 'b', { limit });
    assert.deepEqual(notices, ['cache-full: the rest of the model is not kept for next time: all that is kept would be more than 6000 bytes']);
    assert.deepEqual(await load(t, 'a', { limit }).then(({ kept }) => kept), 4);
    release();
    assert.deepEqual((await load(t, 'c', { limit })).notices, []);
    assert.deepEqual((await names()).includes('a'), false);
  });

  it('is too small for one file: then its beginning is kept', async (t) => {
    world(t);
    const { notices } = await load(t, 'a', { limit: 3 * PART });
    assert.equal(notices.length, 1);
    assert.ok((await cacheUsage()).bytes <= 3 * PART + SLACK);
    assert.equal((await load(t, 'a', { limit: 3 * PART })).kept, 3);
  });

  it('holds for what was kept under a higher one', async (t) => {
    world(t);
    for (const name of ['a', 'b', 'c']) await load(t, name);
    assert.equal((await load(t, 'b', { limit: 8 * PART + 2 * SLACK })).kept, 4);
    assert.deepEqual(await names(), ['c', 'b']);
    assert.equal((await load(t, 'b', { limit: 2 * PART })).kept, 0);
    assert.ok((await cacheUsage()).bytes <= 2 * PART + SLACK);
    await load(t, 'b', { limit: 0 });
    assert.deepEqual(await names(), []);
  });

  it('holds while one file is opened and another evicts', async (t) => {
    world(t);
    const limit = 12 * PART + 3 * SLACK;
    for (const name of ['a', 'b', 'c']) await load(t, name, { limit });
    // Turns of the opening come between all turns of the eviction.
    for (let turns = 0; turns < 60; turns += 1) {
      const evicting = load(t, `new${turns}`, { limit });
      for (let turn = 0; turn < turns; turn += 1) await undefined;
      await Promise.all([evicting, load(t, 'c', { limit })]);
      assert.equal((await names()).length, 3, `after ${turns} turns`);
      assert.ok((await cacheUsage()).bytes <= limit + SLACK);
    }
  });

  it('evicts no file while its last range is written', async (t) => {
    world(t);
    const limit = 3 * PART;
    const file = await openCachedFile({ url: url('a'), validator: '"one"', length: 4 * PART }, () => {}, limit);
    assert.ok(file);
    for (let part = 0; part < 4; part += 1) await file.getOr(part * PART, PART, async () => new Uint8Array(PART));
    file.release();
    await cacheUsage();
    assert.equal((await load(t, 'a', { limit })).kept, 3);
  });

  it('counts again what was cleared, and nothing without a limit', async (t) => {
    world(t);
    const limit = 5 * PART;
    await load(t, 'a', { limit });
    await clearCache();
    assert.deepEqual((await load(t, 'b', { limit })).notices, []);
    assert.deepEqual((await load(t, 'c')).notices, []);
    assert.deepEqual(await names(), ['b', 'c']);
  });
});
