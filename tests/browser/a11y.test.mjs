// @ts-check
// axe-core finds no accessibility problems on the pages. One browser suffices: axe-core sees the
// same in all.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { it } from 'node:test';

import { reportFiles } from './native.mjs';
import { inBrowsers } from './session.mjs';
import { choose, MODEL, openAddress, openSmall, reach, text } from './visitor.mjs';

/** @typedef {import('puppeteer-core').Page} Page */

const AXE = await readFile(fileURLToPath(import.meta.resolve('axe-core')), 'utf8');

/**
 * Checks the page on a desktop and a phone, in light and in dark.
 * @param {Page} page
 * @param {string} state name in messages
 */
async function check(page, state) {
  await page.evaluate(AXE);
  for (const [width, scheme] of /** @type {[number, string][]} */ ([[1280, 'light'], [360, 'dark'], [360, 'light'], [1280, 'dark']])) {
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }, { name: 'prefers-reduced-motion', value: 'reduce' }]);
    await page.setViewport({ width, height: 800 });
    const { rules, violations } = await page.evaluate(async () => {
      const { passes, violations } = await /** @type {any} */ (globalThis).axe.run();
      const words = (/** @type {any} */ { id, nodes }) => `${id}: ${nodes.map((/** @type {any} */ { html, failureSummary }) => `${html}\n${failureSummary}`).join('\n')}`;
      return { rules: passes.length, violations: violations.map(words) };
    });
    assert.deepEqual(violations, [], `${state}, ${width} pixels, ${scheme}`);
    assert.ok(rules > 5, `${rules} rules had something to look at`);
    const [inside, outside] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    assert.ok(inside <= outside, `${state}: ${inside} pixels in ${outside}`);
  }
}

inBrowsers({ kinds: ['chromium'], models: [MODEL], device: 'cpu' }, (session) => {
  it('finds nothing on the page: with a picture, everything open, a question and a problem', async () => {
    const page = await openSmall(session);
    await page.click('#decode');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    await page.$eval('#explore', (section) => section.scrollIntoView());
    await page.waitForSelector('#explore-chart svg');
    await check(page, 'a picture');
    await page.$$eval('details', (all) => { for (const one of all) one.open = true; });
    await check(page, 'everything open');
    await page.click('#zoom-in');
    await page.evaluate(() => /** @type {HTMLDialogElement} */ (document.querySelector('#ask')).showModal());
    await check(page, 'a question');
    await page.evaluate(() => /** @type {HTMLDialogElement} */ (document.querySelector('#ask')).close());
    await openAddress(page, 'model', '/nothing.safetensors');
    await page.waitForSelector('#problem:not([hidden])');
    await check(page, 'a problem');
  });

  it('finds nothing on the page of memory reports, with those of the repository', async () => {
    const page = await session.open('/reports.html');
    await check(page, 'no reports');
    await choose(page, 'reports-file', ...(await reportFiles()));
    await page.waitForSelector('#reports[aria-busy="false"] #reports-plots svg');
    await check(page, 'reports');
  });

  for (const path of ['/manual.html', '/package.html', '/docs/index.html', '/docs/guide/cli.html']) {
    it(`finds nothing on ${path}`, async () => check(await session.open(path), path));
  }
});
