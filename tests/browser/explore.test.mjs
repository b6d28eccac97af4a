// @ts-check
// The explorer of plans: the command line's numbers, budgets that are kept, and no plan before the
// page's own work is done.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { formatBytes } from '../../web/page/format.js';
import { planNatively } from './native.mjs';
import { inBrowsers } from './session.mjs';
import { before, MODEL, openSmall, patchWorker, reach, text } from './visitor.mjs';

/** @typedef {import('puppeteer-core').Page} Page */

/**
 * Scrolls to the explorer, and waits for a plan.
 * @param {Page} page
 */
async function look(page) {
  await page.$eval('#explore', (section) => section.scrollIntoView());
  await page.waitForSelector('#explore-chart svg');
  await settle(page);
}

/** @param {Page} page */
async function settle(page) {
  await page.waitForSelector('#explore[aria-busy="false"]');
}

/**
 * Moves a slider over some places to the last of them.
 * @param {Page} page
 * @param {string} id
 * @param {...number} places values, or fractions of the range up to 1
 */
async function slide(page, id, ...places) {
  await page.$eval(`#${id}`, async (input, places) => {
    const range = /** @type {HTMLInputElement} */ (input);
    const [min, max] = [Number(range.min), Number(range.max)];
    for (const place of places) {
      range.value = String(place > 1 ? place : Math.round(min + place * (max - min)));
      range.dispatchEvent(new Event('input'));
      await new Promise(requestAnimationFrame);
    }
  }, places);
  await settle(page);
}

/** @param {Page} page */
async function figures(page) {
  const values = await page.$$eval('#explore-figures dd', (all) => all.map((one) => one.textContent ?? ''));
  return { peak: values[0], work: values[1], transfers: values[2] };
}

/** @param {any} plan @param {any} [whole] */
function expected(plan, whole = plan) {
  const more = plan.macs / whole.macs;
  const work = `${(plan.macs / 1e12).toPrecision(3)} T${more > 1.005 ? `, ${more.toFixed(2)} times` : ''}`;
  return { peak: formatBytes(plan.predicted_peak_bytes), work, transfers: formatBytes(plan.transferred_bytes) };
}

/** @param {Page} page */
const asked = async (page) => new URLSearchParams(await page.evaluate(() => location.search)).get('plan');

/** Script of the planner's worker. The worker of models has it bundled in its own script. */
const HOST = '/web/src/worker-host.js';

inBrowsers({ models: [MODEL], device: 'cpu' }, (session) => {
  const workers = () => session.server.seen(HOST).length;

  it('plans as the command line when it is looked at, for what the sliders say', async () => {
    session.server.forget(HOST);
    const page = await openSmall(session);
    assert.equal(workers(), 0, 'nobody has looked yet');
    await look(page);
    const sizes = (/** @type {string} */ size, /** @type {string[]} */ ...more) => planNatively('--size', size, '--precision', 'f16', ...more);
    assert.deepEqual(await figures(page), expected(await sizes('1024x1024', '--family', 'flux1')));
    assert.equal(await asked(page), null, 'nobody has asked for anything');
    const families = await page.$$eval('#explore-family option', (options) => options.map((option) => option.value));
    assert.ok(families.includes('sd15') && new Set(families).size === families.length, families.join());
    await page.select('#explore-family', 'sd15');
    await slide(page, 'explore-width', 960, 640, 512);
    await slide(page, 'explore-height', 256, 320);
    assert.deepEqual(await figures(page), expected(await sizes('512x320', '--family', 'sd15')));
    await page.select('#explore-direction', 'encode');
    await settle(page);
    assert.deepEqual(await figures(page), expected(await sizes('512x320', '--family', 'sd15', '--encode')));
    assert.equal(await asked(page), 'sd15,512x320,f16,encode');
    assert.equal(workers(), 1);
  });

  it('plans nothing before the first picture is there', async (t) => {
    session.server.forget(HOST);
    // The picture waits for a message.
    await patchWorker(t, session, before(`{
      const { postMessage } = self;
      let held = [];
      new BroadcastChannel('come').onmessage = () => {
        for (const parameters of held ?? []) postMessage.apply(self, parameters);
        held = undefined;
      };
      self.postMessage = (...parameters) => {
        if (held && (held.length > 0 || parameters[0].$wgvaeLink?.value?.value instanceof ImageBitmap)) held.push(parameters);
        else postMessage.apply(self, parameters);
      };
    }`));
    const page = await session.open('/tests/blank.html');
    // So high that nothing needs scrolling.
    await page.setViewport({ width: 1280, height: 3000 });
    await page.goto(session.server.url('/'));
    assert.equal(await reach(page, 'decoding', 'failed'), 'decoding', await text(page, 'problem'));
    assert.equal(workers(), 0);
    await page.waitForFunction(() => {
      // Repeats until the worker listens.
      new BroadcastChannel('come').postMessage('');
      return document.body.dataset.state === 'done' && document.querySelector('#explore-chart svg') !== null;
    });
  });

  it('keeps a budget, says which would be the least, and is opened by a link', async () => {
    const page = await openSmall(session, { plan: 'sd15,512x512,f32,200' });
    await look(page);
    const native = (/** @type {string[]} */ ...more) => planNatively('--family', 'sd15', '--size', '512x512', '--precision', 'f32', ...more);
    const whole = await native();
    assert.deepEqual(await figures(page), expected(await native('--memory-budget', '200MiB'), whole));
    assert.equal(await text(page, 'explore-budget-value'), '200 MiB');
    assert.equal(await page.$$eval('#explore-chart .other', (paths) => paths.length), 1, 'the plan without a budget stands behind');
    assert.equal(await text(page, 'explore-said'), '');
    // Down to the smallest budget.
    await slide(page, 'explore-budget', 0.95, 0.5, 0);
    const said = await text(page, 'explore-said');
    const [, least] = /^No plan found for .*B\. This one takes the least: (.*)\.$/.exec(said) ?? [];
    assert.ok(least, said);
    const found = (await figures(page)).peak;
    assert.ok(parseFloat(found) <= parseFloat(least) && found.endsWith('MiB') && least.endsWith('MiB'), `${found} of ${least}`);
    // Up to the largest: no budget.
    await slide(page, 'explore-budget', 1);
    assert.deepEqual(await figures(page), expected(whole));
    assert.equal(await text(page, 'explore-budget-value'), 'none');
    assert.equal(await page.$('#explore-chart .other'), null);
    assert.equal(await asked(page), 'sd15,512x512,f32');
  });

  it('says what is wrong with a link, and goes on', async () => {
    const page = await openSmall(session, { plan: 'nothing,512x512,f16' });
    await page.$eval('#explore', (section) => section.scrollIntoView());
    await page.waitForFunction(() => /family/i.test(document.querySelector('#explore-said')?.textContent ?? ''));
    await page.select('#explore-family', 'taesd');
    await page.waitForSelector('#explore-chart svg');
    await settle(page);
    assert.equal(await text(page, 'explore-said'), '');
  });
});
