// @ts-check
// Tiles of other tools on the page: the command line's tiled picture beside the exact one, and
// their difference.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';

import { decodeNatively } from './native.mjs';
import { inBrowsers } from './session.mjs';
import { apart, keepDownloads, MODEL, openSmall, reach, save, screenshot, text } from './visitor.mjs';

/** @typedef {import('puppeteer-core').Page} Page */

/** Less than the picture, which has 88 by 40 pixels. */
const SIDE = 64;

/**
 * @param {Page} page
 * @param {string} tiling
 * @param {number} side
 */
async function compare(page, tiling, side) {
  await page.$eval('#advanced', (details) => { /** @type {HTMLDetailsElement} */ (details).open = true; });
  await page.select('#tiles-kind', tiling);
  await page.$eval('#tiles-size', (input, side) => { /** @type {HTMLInputElement} */ (input).value = `${side}`; }, side);
  await page.click('#tiles-compare');
}

/** @param {string} file */
const dataUrl = async (file) => `data:image/png;base64,${await readFile(file, 'base64')}`;

inBrowsers({ models: [MODEL], device: 'cpu' }, (session) => {
  it('wipes between the exact picture and that of tiles, and amplifies the difference', async () => {
    const folder = join(session.folder, MODEL);
    const exact = await dataUrl(await decodeNatively(folder, 'exact.png', 'f32'));
    const page = await openSmall(session, { precision: 'f32' });
    await keepDownloads(page);
    for (const tiling of ['blend', 'cosine']) {
      const tiled = await dataUrl(await decodeNatively(folder, `${tiling}.png`, 'f32', '--tiling', tiling, '--tile-size', `${SIDE}`));
      const apartness = await apart(page, exact, tiled, 2);
      assert.ok(apartness > 1, `${tiling}: two pictures that can be told apart`);
      await compare(page, tiling, SIDE);
      await page.waitForFunction((tiling) => document.querySelector('#wipe-right')?.textContent === tiling, {}, tiling);
      assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
      const { name, data } = await save(page);
      assert.equal(name, `latents-${tiling}.png`);
      assert.ok((await apart(page, data, tiled)) < 1, `${tiling}: the command line's`);
      // Alpha is equal, and not counted.
      const psnr = 10 * Math.log10((255 ** 2 * 0.75) / apartness);
      const said = Number(/^PSNR ([\d.]+) dB$/.exec(await text(page, 'psnr'))?.[1]);
      assert.ok(Math.abs(said - psnr) < 0.3, `${said}, not ${psnr}`);
      assert.match(await text(page, 'tiles-parts'), new RegExp(`Exact\\s+\\d.*s, \\d.*iB\\s+${tiling}, [2-9] tiles of ${SIDE} pixels\\s+\\d.*s, \\d.*iB`));
    }
    await page.focus('#wipe');
    await page.keyboard.press('End');
    assert.ok((await apart(page, `data:image/png;base64,${await screenshot(page)}`, exact)) < 5, 'the exact one, but for the line at the border');
    // The difference of the last pair.
    await page.click('#tiles-difference');
    await page.waitForFunction(() => document.querySelector('#wipe-right')?.textContent === 'Difference, 8 times');
    const { name, data } = await save(page);
    assert.equal(name, 'latents-difference.png');
    const expected = await page.evaluate(async (urls) => {
      const context = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d', { willReadFrequently: true }));
      const read = async (/** @type {string} */ url) => {
        const image = Object.assign(new Image(), { src: url });
        await image.decode();
        Object.assign(context.canvas, { width: image.naturalWidth, height: image.naturalHeight });
        context.drawImage(image, 0, 0);
        return context.getImageData(0, 0, image.naturalWidth, image.naturalHeight);
      };
      const [{ data, width, height }, { data: tiled }] = [await read(urls[0]), await read(urls[1])];
      const amplified = new ImageData(data.map((value, index) => (index % 4 === 3 ? 255 : 8 * Math.abs(value - tiled[index]))), width, height);
      context.putImageData(amplified, 0, 0);
      return context.canvas.toDataURL();
    }, [exact, await dataUrl(join(folder, 'cosine.png'))]);
    // A level of either picture counts eight times here.
    assert.ok((await apart(page, data, expected)) < 6, 'eight times the difference of the command line\'s pictures');
    await page.click('#decode');
    await page.waitForFunction(() => /** @type {HTMLElement} */ (document.querySelector('#tiles-shown')).hidden);
    assert.equal(await text(page, 'wipe-row'), '', 'one picture again');
  });

  it('says that a picture is a single tile', async () => {
    const page = await openSmall(session);
    await compare(page, 'blend', 512);
    await page.waitForFunction(() => document.body.dataset.problem === 'input');
    assert.match(await text(page, 'problem'), /88x40 pixels is a single tile/);
    await page.click('#decode');
    await reach(page, 'decoding', 'done');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    // The link keeps the requested tiling.
    await page.select('#tiles-kind', 'cosine');
    assert.match(await page.evaluate(() => location.search), /&tiling=blend,512$/);
    await page.reload();
    const filled = await page.$$eval('#tiles-kind, #tiles-size', (all) => all.map((one) => /** @type {HTMLInputElement} */ (one).value));
    assert.deepEqual(filled, ['blend', '512']);
  });
});
