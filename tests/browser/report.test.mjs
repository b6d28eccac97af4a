// @ts-check
// The file that `wgvae memory --html` writes, in browsers: it loads nothing, and shows what was
// measured. The program in it is the one of reports.html.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { promisify } from 'node:util';

import { reportFiles, WGVAE } from './native.mjs';
import { inBrowsers, ROOT } from './session.mjs';

const HOSTILE = '</script><script>top.hacked = 1</script><img src=x onerror="top.hacked = 1">';

inBrowsers({}, (session) => {
  it('shows the reports of the repository with the estimates of others', async () => {
    const page = await open(session, await reportFiles());
    const shown = await contents(page);
    assert.match(shown.text, /in (\d+) of \1 the measured peak equals the predicted one to the byte/);
    for (const words of ['InvokeAI', 'SD1.5 VRAM calculator', 'MLX im2col', 'RTX 4090', '16932.0', 'Peak of GPU memory, decodes in f16', 'Peak of GPU memory, decodes in f32']) {
      assert.ok(shown.text.includes(words), words);
    }
    assert.deepEqual(shown.guides, [3, 3], 'lines of estimates, for f16 and for f32');
    assert.ok(!shown.text.includes('Memory against frames'), 'no clips yet');
    assert.deepEqual(session.server.seen().map(({ path }) => path), ['/report.html']);
  });

  it('tells encodes, clips and failures from decodes', async () => {
    const page = await open(session, [await report(session, { encode: { operation: 'encode' }, decode: {}, clips: [5, 17], fails: 'the <driver> crashed' })]);
    const { text, headings, rows, failed } = await contents(page);
    assert.match(text, /1 decode, 2 decodes of clips and 1 encode measured, each in a process of its own; 1 failed; in 4 of 4 the measured/);
    const ends = headings.map((heading) => heading.split(': ')[1]).filter(Boolean);
    assert.deepEqual(ends, ['decodes', 'decodes of clips', 'encodes']);
    for (const words of ['Peak of GPU memory, encodes in f32', 'Peak of GPU memory, decodes of clips in f32', 'Memory against frames', 'InvokeAI, in use: 2200', 'InvokeAI, in use: 1100']) {
      assert.ok(text.includes(words), words);
    }
    assert.deepEqual(failed, ['failed: the <driver> crashed']);
    const clips = rows.filter((row) => row[2] === '5' || row[2] === '17');
    // Estimates of others and numbers per pixel exist for images only, so each clip has one row.
    assert.deepEqual(clips.map((row) => row.slice(0, 10)), ['5', '17'].map((frames) => ['sd15', '512 × 512', frames, 'f32', '–', '300.0', '200.0', '50.0', '300.0', 'yes']));
  });

  it('shows hostile names as text', async () => {
    const page = await open(session, [await report(session, { decode: { model: HOSTILE }, fails: HOSTILE }, HOSTILE)]);
    const shown = await contents(page);
    for (const words of [`${HOSTILE}, Mesa`, `failed: ${HOSTILE}`]) assert.ok(shown.text.includes(words), words);
    assert.equal(shown.rows.filter(([model]) => model === HOSTILE).length, 2, 'in the measurements and the estimates');
    const found = await page.evaluate(() => ({ hacked: 'hacked' in globalThis, images: document.images.length, scripts: document.scripts.length }));
    assert.deepEqual(found, { hacked: false, images: 0, scripts: 2 });
    assert.equal(shown.names, 1, 'the adapter has a row of its own');
  });

  // Firefox cannot switch JavaScript off for a page.
  it('needs no JavaScript for the main figures', { skip: session.kind === 'firefox' }, async () => {
    const page = await open(session, [await report(session, { decode: {} }, HOSTILE)]);
    await page.setJavaScriptEnabled(false);
    await page.reload();
    const text = await page.$eval('pre', (pre) => pre.textContent ?? '');
    assert.ok(text.startsWith(`decodes on ${HOSTILE}`), text);
    assert.match(text, /sd15 +512x512 +f32 +- +300\.0 MiB +300\.0 MiB/);
    await page.setJavaScriptEnabled(true);
  });
});

/**
 * Writes reports as one page, and opens it.
 * @param {import('./session.mjs').Session} session
 * @param {string[]} files
 */
async function open(session, files) {
  const file = join(session.folder, 'report.html');
  await promisify(execFile)(WGVAE, ['memory', '--merge', ...files, '--html', file]);
  session.server.route('/report.html', { file });
  for (const { path } of session.server.seen()) session.server.forget(path);
  return session.open('/report.html');
}

/** @param {import('puppeteer-core').Page} page */
function contents(page) {
  return page.$eval('main', (main) => {
    const texts = (/** @type {string} */ selector) => [...main.querySelectorAll(selector)].map((one) => one.textContent ?? '');
    return {
      text: main.textContent ?? '',
      headings: texts('h3'),
      rows: [...main.querySelectorAll('tr')].map((row) => [...row.cells].map((cell) => cell.textContent ?? '')),
      failed: texts('.failed td:last-child'),
      guides: [...main.querySelectorAll('svg[aria-labelledby^="peaks"]')].map((plot) => plot.querySelectorAll('.guide').length),
      names: main.querySelector('tbody')?.rows.length,
    };
  });
}

/**
 * Writes a report of made-up rows.
 * @param {import('./session.mjs').Session} session
 * @param {{ decode?: object, encode?: object, clips?: number[], fails?: string }} runs
 * @param {string} [name] of the adapter
 */
async function report(session, { decode, encode, clips = [], fails }, name = 'card') {
  const example = JSON.parse(await readFile(join(ROOT, 'results', 'lavapipe-26.2.json'), 'utf8'));
  const mib = 2 ** 20;
  const parts = { weights: 100 * mib, slots: 200 * mib, parameters: 0, staging: 0, host: 0, transferred: 0 };
  const measured = { ...example.measurements[0].measured, ledger_peak: 300 * mib };
  const row = { ...example.measurements[0], adapter: 0, model: 'sd15', operation: 'decode', width: 512, height: 512, storage: 'f32', budget: null, predicted: { peak: 300 * mib, ...parts }, measured, error: null };
  const predicted = { ...row.predicted, slots: 50 * mib, host: 50 * mib, states: { total: 200 * mib, gpu: 150 * mib } };
  const measurements = [
    ...(decode ? [{ ...row, ...decode }] : []),
    ...clips.map((frames) => ({ ...row, frames, predicted })),
    ...(encode ? [{ ...row, ...encode }] : []),
    ...(fails ? [{ ...row, measured: null, error: fails }] : []),
  ];
  const file = join(session.folder, 'report.json');
  await writeFile(file, JSON.stringify({ ...example, version: 2, adapters: [{ ...example.adapters[0], name }], measurements }));
  return file;
}
