// @ts-check
// Zooming of the picture, and pasting onto the page.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { inBrowsers } from './session.mjs';
import { FILE, MODEL, openSmall, reach, text } from './visitor.mjs';

/** @typedef {import('puppeteer-core').Page} Page */

/** Width of the small model's picture, pixels. */
const WIDTH = 88;

/** @param {Page} page */
function look(page) {
  return page.evaluate(() => {
    const [frame, canvas] = ['#frame', '#picture'].map((id) => /** @type {HTMLElement} */ (document.querySelector(id)));
    const { scrollLeft, scrollWidth, clientWidth } = frame;
    return { width: canvas.getBoundingClientRect().width * devicePixelRatio, scrollLeft, isLarger: scrollWidth > clientWidth };
  });
}

/**
 * Pastes text, or files by their addresses.
 * @param {Page} page
 * @param {{ text?: string, urls?: string[] }} pasted
 */
function paste(page, { text = '', urls = [] }) {
  return page.evaluate(async (text, urls) => {
    const files = await Promise.all(urls.map(async (url) => new File([await (await fetch(url)).blob()], url.split('/').at(-1) ?? '')));
    const event = new Event('paste', { bubbles: true, cancelable: true });
    Object.defineProperty(event, 'clipboardData', { value: { files, getData: () => text } });
    document.body.dispatchEvent(event);
    return event.defaultPrevented;
  }, text, urls);
}

inBrowsers({ models: [MODEL], device: 'cpu' }, (session) => {
  async function openDecoded() {
    const page = await openSmall(session);
    await page.click('#decode');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    return page;
  }

  it('zooms by buttons and keys, scrolls what is larger, and fits again', async () => {
    const page = await openDecoded();
    assert.equal((await look(page)).width, WIDTH);
    await page.click('#zoom-in');
    assert.equal((await look(page)).width, 2 * WIDTH);
    assert.equal(await text(page, 'zoom-value'), '200 %');
    await page.focus('#frame');
    for (let presses = 0; presses < 6; presses += 1) await page.keyboard.press('+');
    const most = await look(page);
    assert.deepEqual([most.width, most.isLarger], [16 * WIDTH, true], 'no more than that');
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), true, 'the page stays as it is');
    // The middle stays where it is.
    const middle = await page.evaluate(() => {
      const [frame, canvas] = ['#frame', '#picture'].map((id) => /** @type {HTMLElement} */ (document.querySelector(id)).getBoundingClientRect());
      return (frame.left + frame.width / 2 - canvas.left) / canvas.width;
    });
    assert.ok(Math.abs(middle - 0.5) < 0.01, `${middle}`);
    // Drags the picture.
    const box = await (await page.$('#frame'))?.boundingBox();
    assert.ok(box);
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 2 - 50, box.y + box.height / 2, { steps: 5 });
    await page.mouse.up();
    const dragged = (await look(page)).scrollLeft - most.scrollLeft;
    assert.ok(dragged > 30 && dragged <= 51, `${dragged} pixels`);
    await page.keyboard.press('1');
    assert.equal((await look(page)).width, WIDTH);
    await page.keyboard.press('+');
    await page.keyboard.press('0');
    assert.deepEqual(await look(page), { width: WIDTH, scrollLeft: 0, isLarger: false });
    assert.equal(await text(page, 'zoom-value'), '100 %');
    // In a narrower frame.
    await page.$eval('#frame', (frame, width) => { /** @type {HTMLElement} */ (frame).style.width = `${width}px`; }, WIDTH / 2);
    await page.waitForFunction(() => document.querySelector('#zoom-value')?.textContent === '50 %');
  });

  it('zooms at the pointer with Ctrl and the wheel, and by double clicks', async () => {
    const page = await openDecoded();
    // Synthetic events, because the browsers' drivers turn wheels in different ways.
    const at = (/** @type {string} */ type, /** @type {object} */ more) => page.$eval('#frame', (frame, type, more) => {
      const canvas = /** @type {Element} */ (document.querySelector('#picture'));
      const [{ left, width }, { top }] = [frame.getBoundingClientRect(), canvas.getBoundingClientRect()];
      const [clientX, clientY] = [Math.round(left + 0.51 * width), Math.round(top + 1)];
      const under = () => (clientX - canvas.getBoundingClientRect().left) / canvas.getBoundingClientRect().width;
      const before = under();
      const Kind = type === 'wheel' ? WheelEvent : MouseEvent;
      canvas.dispatchEvent(new Kind(type, { bubbles: true, cancelable: true, clientX, clientY, ...more }));
      return under() - before;
    }, type, more);
    const stays = (/** @type {number} */ moved) => assert.ok(Math.abs(moved) < 0.005, `what is under the pointer moved by ${moved} of the picture`);
    stays(await at('wheel', { deltaY: -960, ctrlKey: true }));
    assert.equal((await look(page)).width, 16 * WIDTH);
    stays(await at('wheel', { deltaY: 24, ctrlKey: true }));
    const { width } = await look(page);
    assert.ok(width < 16 * WIDTH && width > 14 * WIDTH, `${width}`);
    await at('wheel', { deltaY: -100 });
    assert.equal((await look(page)).width, width, 'without Ctrl it is left to the browser');
    await at('dblclick', {});
    assert.equal((await look(page)).width, WIDTH, 'as it fits');
    await at('dblclick', {});
    assert.equal((await look(page)).width, 2 * WIDTH);
  });

  if (session.kind === 'chromium') {
    it('zooms by two fingers', async () => {
      const page = await openDecoded();
      await page.$eval('#picture', (canvas) => {
        const { left, top } = canvas.getBoundingClientRect();
        const touch = (/** @type {number} */ identifier, /** @type {number} */ x) => new Touch({ identifier, target: canvas, clientX: left + x, clientY: top + 10 });
        for (const [type, x] of /** @type {[string, number][]} */ ([['touchstart', 30], ['touchmove', 50], ['touchmove', 90]])) {
          canvas.dispatchEvent(new TouchEvent(type, { bubbles: true, cancelable: true, touches: [touch(0, 10), touch(1, x)] }));
        }
        canvas.dispatchEvent(new TouchEvent('touchend', { bubbles: true, cancelable: true, touches: [touch(0, 10)] }));
      });
      assert.equal(Math.round((await look(page)).width), 4 * WIDTH);
    });
  }

  it('takes files and addresses that are pasted, but not where text is written', async () => {
    const page = await openSmall(session);
    const folder = session.model(`${MODEL}/`);
    assert.equal(await paste(page, { text: 'some words' }), false);
    assert.equal(await paste(page, { urls: [`${folder}latents.safetensors`] }), true);
    await page.waitForFunction(() => !location.search.includes('latents='));
    assert.equal(await reach(page, 'ready', 'failed'), 'ready', await text(page, 'problem'));
    assert.equal(await paste(page, { text: `${folder}latents.safetensors\n` }), true);
    await page.waitForFunction(() => location.search.includes('latents='));
    assert.equal(await paste(page, { text: ` ${folder}${FILE}` }), true);
    await page.waitForFunction(() => !location.search.includes('config='));
    assert.equal(new URLSearchParams(await page.evaluate(() => location.search)).get('model'), folder + FILE);
    await page.focus('#model-url');
    const before = await page.evaluate(() => location.search);
    await page.evaluate(() => {
      const event = new Event('paste', { bubbles: true, cancelable: true });
      Object.defineProperty(event, 'clipboardData', { value: { files: [], getData: () => 'https://example.org/a.safetensors' } });
      document.querySelector('#model-url')?.dispatchEvent(event);
    });
    assert.equal(await page.evaluate(() => location.search), before);
  });
});
