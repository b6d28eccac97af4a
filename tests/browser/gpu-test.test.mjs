// @ts-check
// "Test my GPU" on the page: its measurements and checks, and the file with both.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';

import { DIST, inBrowsers, ROOT } from './session.mjs';
import { FILE, keepDownloads, MODEL, openSmall, text } from './visitor.mjs';

// Chromium compiles for seconds, and tuning.test.mjs measures there.
inBrowsers({ kinds: ['firefox'], models: [MODEL] }, (session) => {
  it('measures and checks, shows what it found, and gives it as a file', async () => {
    // A small model stands in for the demo's, which has more kernels and compiles for minutes.
    const files = { [`model/${FILE}`]: FILE, 'model/config.json': 'config.json', 'selftest.safetensors': 'reference.safetensors' };
    for (const [name, file] of Object.entries(files)) {
      const path = join('assets', 'demo', name);
      assert.ok((await readFile(join(DIST, path))).equals(await readFile(join(ROOT, path))), `${path} is not the page's`);
      session.server.route(`/assets/demo/${name}`, { file: join(session.folder, MODEL, file) });
    }
    const page = await openSmall(session);
    await keepDownloads(page);
    await page.$eval('#advanced', (details) => { /** @type {HTMLDetailsElement} */ (details).open = true; });
    assert.equal(await text(page, 'gpu-save'), '', 'nothing to save yet');
    await page.click('#gpu-run');
    await page.waitForSelector('#gpu-shown:not([hidden]), #problem:not([hidden])');
    assert.equal(await text(page, 'problem'), '');
    await page.click('#gpu-check');
    await page.waitForSelector('#gpu-checked:not([hidden]), #problem:not([hidden])');
    assert.equal(await text(page, 'problem'), '');
    await page.click('#gpu-save');
    const { tuning, selftest, wgvae, adapter, browser } = JSON.parse(await page.evaluate(() => /** @type {any} */ (globalThis).saved[0].text()));
    assert.match(await text(page, 'gpu-said'), new RegExp(`^All ${tuning.trials.length} give the same bits; the fastest are kept`));
    const rows = await page.$$eval('#gpu-table tr', (all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.equal(rows.length, 1 + tuning.trials.length);
    assert.deepEqual(rows.slice(1).map((row) => row[1]), tuning.trials.map(() => 'yes'));
    const taken = tuning.trials.findIndex((/** @type {import('../../web/src/index.js').Trial} */ trial) => JSON.stringify(trial.kernels) === JSON.stringify(tuning.kernels));
    assert.deepEqual(rows.slice(1).map((row) => row[2]), tuning.trials.map((/** @type {unknown} */ _, /** @type {number} */ index) => (index === taken ? 'yes' : '')));
    assert.equal(rows[1][3], 'chosen by rules');
    assert.ok(rows.slice(2).every(([, , , name]) => /: /.test(name ?? '')), `${rows}`);
    const checked = await page.$$eval('#gpu-check-table tr', (all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.deepEqual(checked.slice(1).map(([verdict, , , bits]) => [verdict, bits]), Array(16).fill(['right', 'yes']));
    assert.equal(await text(page, 'gpu-check-said'), 'All 16 agree with diffusers.');
    assert.equal(selftest.right, true);
    /** @type {import('../../web/src/index.js').SelftestRow[]} */
    const verdicts = selftest.rows;
    assert.deepEqual(verdicts.map(({ elements }) => elements), ['f32', 'f16', 'packed_f16', 'fast'].flatMap((name) => Array(4).fill(name)));
    for (const { error, most } of verdicts) assert.ok(error !== null && error > 0 && error <= most, JSON.stringify(verdicts));
    assert.ok(new Set(verdicts.map(({ kernels }) => JSON.stringify(kernels))).size > 2, 'other kernels');
    assert.ok(wgvae && browser.includes('Firefox') && adapter.backend, JSON.stringify({ wgvae, browser, adapter }));
  });
});
