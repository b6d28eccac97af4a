// @ts-check
// Makes the pictures that others show of the page: assets/social.jpg, which links to it show, of
// the demo's picture and the chart of its plan, and the icons of assets/icon.svg as bitmaps, for
// those who take no SVG. Needs dist/ and what the browser tests need: node tools/social/make.mjs

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { launch } from '../../tests/browser/browsers.mjs';
import { startServer } from '../../tests/browser/server.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** As the makers of previews ask for. */
const SOCIAL = { width: 1200, height: 630 };

/** Sides: for home screens, and for their start. */
const ICONS = [192, 512];

const server = await startServer({ root: join(ROOT, 'dist'), mounts: { '/social/': fileURLToPath(new URL('.', import.meta.url)), '/assets/': join(ROOT, 'assets') } });
const { browser, close } = await launch('chromium');
try {
  const page = await browser.newPage();
  await page.setViewport(SOCIAL);
  await page.goto(server.url('/'));
  await page.waitForFunction(() => document.body.dataset.state === 'done', { timeout: 600_000 });
  const chart = await page.$eval('#plan-chart svg', (svg) => svg.outerHTML);
  await page.goto(server.url('/social/picture.html'), { waitUntil: 'networkidle0' });
  await page.$eval('#chart', (host, chart) => { host.innerHTML = chart; }, chart);
  await page.screenshot({ path: join(ROOT, 'assets', 'social.jpg'), type: 'jpeg', quality: 88 });
  for (const side of ICONS) {
    await page.setViewport({ width: side, height: side });
    await page.goto(server.url('/assets/icon.svg'));
    await page.screenshot({ path: /** @type {`${string}.png`} */ (join(ROOT, 'assets', `icon-${side}.png`)), omitBackground: true });
  }
} finally {
  await close();
  await server.close();
}
