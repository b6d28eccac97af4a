// @ts-check
// Foundations of the other tests: the formula's weights, and the faults of the test server. No
// browser is needed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readFile } from 'node:fs/promises';

import { decoderShapes, encoderShapes, fill, fixture, fnv1a64 } from './fixtures.mjs';
import { startServer } from './server.mjs';

test('the formula gives the values of tests/fixtures/README.md', async () => {
  const table = await readFile(new URL('../fixtures/README.md', import.meta.url), 'utf8');
  const rows = [...table.matchAll(/^\| (\S+) \| 0x([0-9a-f]{16}) \| ([\d.]+), ([\d.]+) \| (\S+), (\S+), (\S+) \|$/gm)];
  assert.equal(rows.length, 4, 'rows to check a formula by');
  for (const [, name, hash, offset, scale, ...first] of rows) {
    assert.equal(fnv1a64(name), BigInt(`0x${hash}`), name);
    assert.deepEqual([...fill(name, 3, Number(offset), Number(scale))], first.map(Number), name);
  }
});

test('the formula is the same in exact integers', () => {
  const exact = (/** @type {bigint} */ index) => {
    let z = BigInt.asUintN(64, fnv1a64('decoder.conv_in.weight') + (index + 1n) * 0x9e3779b97f4a7c15n);
    z = BigInt.asUintN(64, (z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = BigInt.asUintN(64, (z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    return Number((z ^ (z >> 31n)) >> 40n) / 8388608 - 1;
  };
  const values = fill('decoder.conv_in.weight', 5000, 0, 1);
  values.forEach((value, index) => assert.equal(value, exact(BigInt(index)), `value ${index}`));
});

test('names and shapes are those of the published model', async () => {
  const folder = new URL('../fixtures/', import.meta.url);
  const published = JSON.parse(await readFile(new URL('keys/sd15.diffusers.json', folder), 'utf8'));
  const config = JSON.parse(await readFile(new URL('configs/sd15.json', folder), 'utf8'));
  const sorted = (/** @type {[string, unknown][]} */ entries) => entries.sort(([a], [b]) => (a < b ? -1 : 1));
  assert.deepEqual(sorted([...decoderShapes(config), ...encoderShapes(config)]), sorted(Object.entries(published)));
});

test('a fixture has its latents and its picture, and the moments of another', async () => {
  const { latents, image, f16Error, encode } = await fixture('toy_odd');
  assert.deepEqual([encode?.image.shape, encode?.moments.shape], [[1, 3, 43, 94], [1, 8, 5, 11]]);
  assert.deepEqual(latents.shape, [1, 4, 5, 11]);
  assert.deepEqual(image.shape, [1, 3, 40, 88]);
  assert.equal(image.data.length, 3 * 40 * 88);
  assert.ok(f16Error > 1e-4 && f16Error < 1e-2, `${f16Error}`);
});

test('the server has ranges, and can do without', async (t) => {
  const server = await startServer({ root: '.' });
  t.after(() => server.close());
  const good = server.route('/good', { bytes: 'abcdefgh', etag: '"1"' });
  const range = await fetch(good, { headers: { Range: 'bytes=2-4' } });
  assert.deepEqual([range.status, range.headers.get('Content-Range'), await range.text()], [206, 'bytes 2-4/8', 'cde']);
  const stale = await fetch(good, { headers: { 'Range': 'bytes=2-4', 'If-Range': '"0"' } });
  assert.deepEqual([stale.status, await stale.text()], [200, 'abcdefgh']);
  const past = await fetch(good, { headers: { Range: 'bytes=8-9' } });
  assert.equal(past.status, 416);
  const plain = await fetch(server.route('/plain', { bytes: 'abcdefgh', ranges: false }), { headers: { Range: 'bytes=2-4' } });
  assert.deepEqual([plain.status, await plain.text()], [200, 'abcdefgh']);
  assert.deepEqual(server.seen('/good').map(({ status, bytes }) => [status, bytes]), [[206, 3], [200, 8], [416, 0]]);
  assert.equal(server.bytes('/good'), 11);
});

test('the server breaks off and lies when asked to', async (t) => {
  const server = await startServer({ root: '.' });
  t.after(() => server.close());
  const bytes = new Uint8Array(200_000);
  for (const behaviour of [{ stopAfter: 100_000 }, { claim: 300_000 }]) {
    const response = await fetch(server.route('/bad', { bytes, ...behaviour }));
    await assert.rejects(response.arrayBuffer(), JSON.stringify(behaviour));
  }
  const short = await fetch(server.route('/short', { bytes, shortBy: 10 }), { headers: { Range: 'bytes=0-99' } });
  assert.equal((await short.arrayBuffer()).byteLength, 90);
  assert.equal((await fetch(server.route('/gone', { bytes, status: 404 }))).status, 404);
  assert.equal((await fetch(server.url('/../../../../etc/passwd'))).status, 404);
  assert.equal((await fetch(server.url('/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd'))).status, 404);
});
