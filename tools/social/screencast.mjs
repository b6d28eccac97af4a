// @ts-check
// Records assets/page.webp for README: the page decodes its demo, then a memory budget is lowered
// for a plan of SD 1.5. Needs dist/, ffmpeg, and what the browser tests need:
// node tools/social/screencast.mjs

import { execFileSync } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { launch } from '../../tests/browser/browsers.mjs';
import { startServer } from '../../tests/browser/server.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const FRAMES = join(ROOT, 'target', 'screencast');

/** Size of the recorded page, CSS pixels. */
const VIEW = { width: 1200, height: 760 };

/** Width of the recording, pixels. */
const WIDTH = 840;

/** Frames per second of the recording. */
const RATE = 10;

/** Time between two frames while the page decodes: a CPU takes seconds for what a GPU does at once. */
const PACE = 250;

/** Steps of the budget's slider from one frame to the next. */
const STRIDE = 2;

const server = await startServer({ root: join(ROOT, 'dist') });
const { browser, close } = await launch('chromium');
try {
  await rm(FRAMES, { recursive: true, force: true });
  await mkdir(FRAMES, { recursive: true });
  const page = await browser.newPage();
  await page.setViewport(VIEW);

  let count = 0;
  /** Adds what the page shows, for so many frames. */
  const add = async (frames = 1) => {
    const shot = await page.screenshot();
    for (let frame = 0; frame < frames; frame += 1) {
      await writeFile(join(FRAMES, `${String(count).padStart(4, '0')}.png`), shot);
      count += 1;
    }
  };

  await page.goto(server.url('/?plan=sd15,1024x1024,f16'));
  while ((await page.evaluate(() => document.body.dataset.state)) !== 'done') {
    await add();
    await new Promise((resolve) => setTimeout(resolve, PACE));
  }
  await add(2 * RATE);

  await page.$eval('#explore', (section) => section.scrollIntoView({ block: 'end', behavior: 'instant' }));
  await page.waitForFunction(() => !(/** @type {HTMLInputElement} */ (document.querySelector('#explore-budget'))).disabled);
  await page.focus('#explore-budget');
  await add(RATE);
  const [least, most] = await page.$eval('#explore-budget', (range) => [Number(/** @type {HTMLInputElement} */ (range).min), Number(/** @type {HTMLInputElement} */ (range).max)]);
  // As far as the budget of a quarter of the memory: sixteen positions halve it.
  for (let at = most - STRIDE; at > Math.max(least, most - 32); at -= STRIDE) {
    await page.$eval('#explore-budget', (range, at) => {
      /** @type {HTMLInputElement} */ (range).value = String(at);
      range.dispatchEvent(new Event('input'));
    }, at);
    await page.waitForNetworkIdle({ idleTime: 300 });
    await add(3);
  }
  await add(2 * RATE);
} finally {
  await close();
  await server.close();
}
execFileSync('ffmpeg', [
  '-y', '-loglevel', 'error', '-framerate', String(RATE), '-i', join(FRAMES, '%04d.png'),
  '-vf', `scale=${WIDTH}:-1:flags=lanczos`, '-c:v', 'libwebp_anim', '-quality', '70', '-compression_level', '6', '-loop', '0',
  join(ROOT, 'assets', 'page.webp'),
], { stdio: 'inherit' });
