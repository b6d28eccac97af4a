// @ts-check
// The page stays usable while its worker decodes, and fits every screen. Leaves screenshots in target/browser/ for somebody to look at.

import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';

import { inBrowsers, ROOT } from './session.mjs';

const MODEL = 'toy_wide';

const SHOTS = join(ROOT, 'target', 'browser');

const WIDTHS = { phone: 390, desktop: 1280 };

/** Most milliseconds of work in one task on the page's thread. */
const LONGEST_TASK = 50;

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
      await page.click('#decode');
      await reached(page, 'done');
      const trace = await page.tracing.stop();
      const { work, wall, count } = longestTask(new TextDecoder().decode(trace));
      t.diagnostic(`${count} tasks, the longest took ${work.toFixed(1)} ms of work; the longest from begin to end ${wall.toFixed(1)} ms`);
      assert.ok(count > 100, `${count} tasks in the trace`);
      assert.ok(work < LONGEST_TASK, `${work} ms`);
    });
  } else {
    it('keeps the page free while it decodes', async (t) => {
      const page = await session.open(address());
      await reached(page, 'ready');
      // Without traces: a timer tells how long the thread was not free, other programs on the machine included.
      await page.evaluate(() => {
        const ticks = { longest: 0, count: 0, last: performance.now() };
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
      const { longest, count } = await page.evaluate(() => /** @type {any} */ (globalThis).ticks);
      t.diagnostic(`${count} ticks, the longest after ${longest.toFixed(1)} ms`);
      assert.ok(count > 10 && longest < 500, `the thread was not free for ${longest} ms`);
    });
  }

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
      /** @type {[string, number][]} */
      const turns = [...Object.entries(WIDTHS), ['phone-again', WIDTHS.phone]];
      for (const [name, width] of turns) {
        await page.setViewport({ width, height: 844 });
        // The chart is drawn again when it has its new width.
        const fits = () => document.documentElement.scrollWidth <= document.documentElement.clientWidth;
        const isFit = await page.waitForFunction(fits, { timeout: 3000 }).then(() => true, () => false);
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
  await page.waitForFunction(isThere, { timeout: 120_000 }, state);
  const problem = await page.evaluate(() => document.body.dataset.problem && document.getElementById('problem')?.textContent);
  assert.ok(!problem, `expected the state ${state}, found ${problem}`);
}

/**
 * The longest task of the page's main thread. `work` is the processor's time, `wall` includes that of other programs on the machine.
 * @param {string} text of a trace of Chromium
 */
function longestTask(text) {
  /** @type {{ name: string, pid: number, tid: number, dur?: number, tdur?: number, args?: { name?: string } }[]} */
  const events = JSON.parse(text).traceEvents;
  const mains = events.filter(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain');
  const isMain = (/** @type {{ pid: number, tid: number }} */ { pid, tid }) => mains.some((main) => main.pid === pid && main.tid === tid);
  const tasks = events.filter((event) => /RunTask$/.test(event.name) && isMain(event));
  const most = (/** @type {(number | undefined)[]} */ values) => values.reduce((/** @type {number} */ longest, value) => Math.max(longest, value ?? 0), 0) / 1000;
  return { count: tasks.length, work: most(tasks.map(({ tdur }) => tdur)), wall: most(tasks.map(({ dur }) => dur)) };
}
