// @ts-check
// The page stays usable while its worker decodes, and fits every screen. Leaves screenshots in
// target/browser/ to look at.

import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';

import { inBrowsers, ROOT } from './session.mjs';

const MODEL = 'toy_direct_long';

const SHOTS = join(ROOT, 'target', 'browser');

const WIDTHS = { phone: 390, desktop: 1280 };

/**
 * Largest part of a decode's time that the page's thread may work, or block in one piece: much less
 * than a decode on that thread would take, on any machine.
 */
const MOST_OF_DECODE = 0.5;

inBrowsers({ models: [MODEL] }, (session) => {
  const address = () => {
    const folder = session.model(`${MODEL}/`);
    const query = { model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json`, latents: `${folder}latents.safetensors` };
    return `/?${new URLSearchParams(query)}`;
  };

  if (session.kind === 'chromium') {
    it('keeps the page free while it decodes', async (t) => {
      const page = await session.open(address());
      await reached(page, 'ready');
      await page.tracing.start({ categories: ['toplevel', 'disabled-by-default-devtools.timeline', '__metadata'] });
      const begin = performance.now();
      await page.click('#decode');
      await reached(page, 'done');
      const decode = performance.now() - begin;
      const trace = await page.tracing.stop();
      const { work, longest, count } = tasksOf(new TextDecoder().decode(trace));
      t.diagnostic(`${count} tasks, ${work.toFixed(1)} ms of work within ${decode.toFixed(0)} ms, the longest task ${longest.toFixed(1)} ms`);
      assert.ok(count > 100, `${count} tasks in the trace`);
      assert.ok(work < MOST_OF_DECODE * decode, `${work} ms of ${decode}`);
    });
  } else {
    it('keeps the page free while it decodes', async (t) => {
      const page = await session.open(address());
      await reached(page, 'ready');
      // Without traces, a timer measures how long the thread was busy, including other programs on
      // the machine.
      await page.evaluate(() => {
        const ticks = { longest: 0, count: 0, last: performance.now(), begin: performance.now() };
        Object.assign(globalThis, { ticks });
        setInterval(() => {
          const now = performance.now();
          ticks.longest = Math.max(ticks.longest, now - ticks.last);
          ticks.last = now;
          ticks.count += 1;
        }, 5);
      });
      await page.click('#decode');
      await reached(page, 'done');
      const { longest, count, last, begin } = await page.evaluate(() => /** @type {any} */ (globalThis).ticks);
      t.diagnostic(`${count} ticks in ${(last - begin).toFixed(0)} ms, the longest after ${longest.toFixed(1)} ms`);
      assert.ok(count > 10 && longest < MOST_OF_DECODE * (last - begin), `the thread was not free for ${longest} of ${last - begin} ms`);
    });
  }
});

inBrowsers({ models: [MODEL], device: 'cpu' }, (session) => {
  const address = () => {
    const folder = session.model(`${MODEL}/`);
    const query = { model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json`, latents: `${folder}latents.safetensors` };
    return `/?${new URLSearchParams(query)}`;
  };

  for (const scheme of session.kind === 'chromium' ? ['light', 'dark'] : ['light']) {
    it(`fits a phone and a desktop, and either made the other, in ${scheme}`, async () => {
      await mkdir(SHOTS, { recursive: true });
      const page = await session.open('/tests/blank.html');
      if (session.kind === 'chromium') await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
      await page.setViewport({ width: WIDTHS.phone, height: 844 });
      await page.goto(session.server.url(address()));
      await reached(page, 'ready');
      await page.click('#decode');
      await reached(page, 'done');
      // Before the chart is redrawn for its new width.
      const sticksOut = await page.$eval('#plan-chart', (host) => {
        const place = /** @type {HTMLElement} */ (host);
        place.style.width = '200px';
        const [chart, room] = [place.querySelector('svg'), place.getBoundingClientRect()];
        const right = chart && chart.getBoundingClientRect().right - room.right;
        place.style.width = '';
        return right;
      });
      assert.equal(sticksOut, 0, 'pixels of the chart beside a place that became narrower');
      /** @type {[string, number][]} */
      const turns = [...Object.entries(WIDTHS), ['phone-again', WIDTHS.phone]];
      for (const [name, width] of turns) {
        await page.setViewport({ width, height: 844 });
        // The chart is redrawn once it has its new width.
        const fits = () => document.documentElement.scrollWidth <= document.documentElement.clientWidth;
        const isFit = await page.waitForFunction(fits, { timeout: 60_000 }).then(() => true, () => false);
        await page.screenshot({ path: /** @type {`${string}.png`} */ (join(SHOTS, `${session.kind}-${name}-${scheme}.png`)), fullPage: true });
        assert.ok(isFit, `${name}: something sticks out of ${width} pixels`);
      }
    });
  }
});

/**
 * Waits for a state of the page, and fails on any problem.
 * @param {import('puppeteer-core').Page} page
 * @param {string} state
 */
async function reached(page, state) {
  const isThere = (/** @type {string} */ state) => document.body.dataset.state === state || document.body.dataset.problem !== undefined;
  await page.waitForFunction(isThere, {}, state);
  const problem = await page.evaluate(() => document.body.dataset.problem && document.getElementById('problem')?.textContent);
  assert.ok(!problem, `expected the state ${state}, found ${problem}`);
}

/**
 * Returns the tasks of the page's main thread: their number, and the milliseconds of processor time
 * of all and of the longest.
 * @param {string} text of a trace of Chromium
 */
function tasksOf(text) {
  /**
   * @type {{ name: string, pid: number, tid: number, tdur?: number, args?: { name?: string } }[]}
   */
  const events = JSON.parse(text).traceEvents;
  const mains = events.filter(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain');
  const isMain = (/** @type {{ pid: number, tid: number }} */ { pid, tid }) => mains.some((main) => main.pid === pid && main.tid === tid);
  const times = events.filter((event) => /RunTask$/.test(event.name) && isMain(event)).map(({ tdur = 0 }) => tdur / 1000);
  return { count: times.length, work: times.reduce((sum, time) => sum + time, 0), longest: times.reduce((most, time) => Math.max(most, time), 0) };
}
