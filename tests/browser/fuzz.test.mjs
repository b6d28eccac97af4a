// @ts-check
// Random cases for the package's modules, without a browser, and regressions that they found.
// fuzz/run.mjs runs more cases.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { readQuery } from '../../web/page/query.js';
import { WgvaeError } from '../../web/src/errors.js';
import { fetchText } from '../../web/src/http.js';
import { areOnGpu, openLatents } from '../../web/src/latents.js';
import { Access } from '../../web/src/sources.js';
import { Random } from './fuzz/random.mjs';
import { fuzz } from './fuzz/run.mjs';
import { keepSurroundings, makeWorld, replace } from './fuzz/world.mjs';

const access = new Access(new AbortController().signal, () => {}, false);

it('keeps its promises in random cases', async () => {
  const seed = 20260731;
  const counts = await fuzz({ cases: 2000, seed });
  console.log(`seed ${seed}:`, counts);
  assert.ok(Object.keys(counts).length >= 9, 'every kind of case is among them');
});

it('does not take a text for whole that ends before its length', async (t) => {
  t.after(keepSurroundings());
  const { clock } = makeWorld(new Random(1));
  replace('fetch', async () => new Response('{"half": ', { headers: { 'Content-Length': '20' } }));
  const text = fetchText(new URL('https://page.test/config.json'), access);
  assert.ok(await clock.runUntil(text), 'an end after three tries');
  await assert.rejects(text, { code: 'truncated', message: 'https://page.test/config.json: expected 20 bytes, found 9 bytes' });
});

it('calls latents that are none an input error', async () => {
  const wasm = /** @type {any} */ ({});
  const shape = [1, 4, 2, 2];
  const strange = [
    { buffer: undefined, shape }, { buffer: {}, shape }, { buffer: { size: NaN }, shape }, { buffer: { size: 64 }, shape, offset: '4' },
    { data: new Float32Array(4), shape: Symbol('shape') }, { data: new Float32Array(4), shape: [Symbol('side'), 1, 2] }, { dims: Object.create(null), type: 'float32' },
  ];
  for (const input of strange) {
    await assert.rejects(openLatents(wasm, /** @type {any} */ (input), access), (error) => error instanceof WgvaeError && error.code === 'input');
  }
  assert.equal(areOnGpu(/** @type {any} */ (null)), false);
});

it('does not take infinity for a budget', (t) => {
  t.after(keepSurroundings());
  replace('document', { baseURI: 'https://page.test/' });
  assert.deepEqual(['Infinity', '1e999', '-1', '640'].map((budget) => readQuery(`?budget=${budget}`).budget), [undefined, undefined, undefined, 640]);
});
