// @ts-check
// The verdicts of benches/browser: a wrong picture must be called wrong. No browser is needed.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';

import { judge, refuse } from '../../benches/browser/lib/bench.mjs';
import { distance, median } from '../../benches/browser/lib/compare.mjs';
import { readCases, readGolden } from '../../benches/browser/lib/model.mjs';
import { adapters, ratios, table } from '../../benches/browser/lib/table.mjs';

const CASE = { size: 64, flop: 4e9, latents: 'latents-64.f32', golden: 'golden-64.f32' };

const DISTANCES = [
  { name: 'the same', found: [0, 1, -1], levels: 0, relative: 0 },
  { name: 'one level', found: [0.015625, 1, -1], levels: 1, relative: 0.015625 },
  { name: 'beyond white is white in 8 bits, but not as a number', found: [0, 1.5, -1], levels: 0, relative: 0.5 },
  { name: 'black for white', found: [0, -1, -1], levels: 255, relative: 2 },
  { name: 'not a number', found: [0, NaN, -1], levels: Infinity, relative: Infinity },
  { name: 'infinite', found: [0, Infinity, -1], levels: Infinity, relative: Infinity },
];

for (const { name, found, ...wanted } of DISTANCES) {
  it(`measures how far pictures are apart: ${name}`, () => {
    assert.deepEqual(distance(Float32Array.from(found), Float32Array.of(0, 1, -1)), wanted);
  });
}

it('compares no pictures of different sizes', () => {
  assert.throws(() => distance(new Float32Array(3), new Float32Array(12)), /expected 12 values, found 3/);
});

it('takes the middle of the times', () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
  assert.equal(median([7]), 7);
});

it('calls a picture wrong that is two levels off, and says from which', () => {
  const references = new Map([['torch', Float32Array.of(0, 0.5)], ['wgvae', Float32Array.of(0.016, 0.5)]]);
  const measured = { openSeconds: 1, seconds: [9, 2, 4, 3], about: {} };
  const right = judge('ort-wasm', CASE, measured, Float32Array.of(0, 0.5), new Map([['torch', Float32Array.of(0, 0.5)]]));
  assert.equal(right.outcome, 'ok');
  assert.deepEqual([right.firstSeconds, right.medianSeconds, right.gflops], [9, 3, 4 / 3]);
  const wrong = judge('ort-wasm', CASE, measured, Float32Array.of(0, 0.5), references);
  assert.equal(wrong.outcome, 'wrong');
  assert.match(wrong.reason ?? '', /^2 levels, .* from wgvae: at most 1/);
  const black = judge('ort-wasm', CASE, measured, Float32Array.of(NaN, NaN), references);
  assert.equal(black.outcome, 'wrong');
});

it('leaves out what would take longer than one has patience for', () => {
  /** @type {import('../../benches/browser/lib/bench.mjs').Row[]} */
  const rows = [{ system: 'ort-webgpu', size: 64, outcome: 'ok', gflops: 0.5 }];
  const options = { systems: [], cases: [], folder: '', runs: 1, patience: 120 };
  const larger = { ...CASE, size: 256, flop: 64e9 };
  assert.match(refuse(rows, 'ort-webgpu', larger, options)?.reason ?? '', /would take about 128 s/);
  assert.equal(refuse(rows, 'ort-webgpu', larger, { ...options, patience: 128 }), null);
  assert.equal(refuse(rows, 'wgvae', larger, options), null);
});

it('says what is missing in the model folder', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'wgvae-bench-'));
  try {
    await assert.rejects(readCases(folder, [64]), /cases\.json: ENOENT; .*make_model\.py/);
    await writeFile(join(folder, 'cases.json'), JSON.stringify([CASE]));
    await assert.rejects(readCases(folder, [96]), /no size 96, only 64/);
    assert.deepEqual(await readCases(folder, [64]), [CASE]);
    await writeFile(join(folder, CASE.golden), new Uint8Array(Float32Array.of(0.25, -1).buffer));
    assert.deepEqual(await readGolden(folder, CASE), Float32Array.of(0.25, -1));
    assert.equal(await readGolden(folder, { ...CASE, golden: null }), null);
  } finally {
    await rm(folder, { recursive: true });
  }
});

it('notices that two systems decoded on different adapters', () => {
  /** @type {(adapter?: string) => import('../../benches/browser/lib/bench.mjs').Row} */
  const row = (adapter) => ({ system: 'any', size: 64, outcome: 'ok', about: { adapter } });
  assert.deepEqual(adapters([row('intel xe'), row(), row('intel xe')]), ['intel xe']);
  assert.deepEqual(adapters([row('intel xe'), row('nvidia ada')]), ['intel xe', 'nvidia ada']);
});

it('prints failures, too, and compares speeds', () => {
  /** @type {import('../../benches/browser/lib/bench.mjs').Row[]} */
  const rows = [
    { system: 'wgvae', size: 64, outcome: 'ok', gflops: 9 },
    { system: 'ort-wasm', size: 64, outcome: 'ok', gflops: 36 },
    { system: 'ort-webgpu', size: 64, outcome: 'failed', reason: 'no adapter' },
  ];
  const lines = table(rows, 'wgvae').split('\n');
  assert.equal(lines.length, 5);
  assert.equal(new Set(lines.map(({ length }) => length)).size, 1, 'columns are aligned');
  assert.match(lines[4], /failed: no adapter +\|$/);
  assert.deepEqual(ratios(rows, 'wgvae'), [{ size: 64, system: 'ort-wasm', speedup: 0.25 }]);
});
