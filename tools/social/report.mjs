// @ts-check
// Makes docs/drawings/report.png for the guide: the page of memory reports with those in results/.
// Needs dist/ and what the browser tests need: node tools/social/report.mjs

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { launch } from '../../tests/browser/browsers.mjs';
import { startServer } from '../../tests/browser/server.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Size of the picture, CSS pixels. */
const VIEW = { width: 1100, height: 900 };

const reports = (await readdir(join(ROOT, 'results'))).filter((name) => name.endsWith('.json')).map((name) => join(ROOT, 'results', name));
const server = await startServer({ root: join(ROOT, 'dist') });
const { browser, close } = await launch('chromium');
try {
  const page = await browser.newPage();
  await page.setViewport(VIEW);
  await page.goto(server.url('/reports.html'));
  const input = /** @type {import('puppeteer-core').ElementHandle<HTMLInputElement>} */ (await page.waitForSelector('#reports-file'));
  await input.uploadFile(...reports);
  await page.waitForSelector('main svg');
  // Each file is shown when it has been read.
  let [said, before] = ['', ' '];
  while (said !== before) {
    await new Promise((resolve) => setTimeout(resolve, 2000));
    [before, said] = [said, await page.$eval('main', (main) => main.textContent ?? '')];
  }
  await page.screenshot({ path: join(ROOT, 'docs', 'drawings', 'report.png') });
} finally {
  await close();
  await server.close();
}
