// @ts-check
// The page's address: links that open things, the address bar, and the question before a large
// download.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';

import { publish } from './hub-server.mjs';
import { inBrowsers } from './session.mjs';
import { before, choose, FILE, MODEL, openAddress, openSmall, patchWorker, reach, text } from './visitor.mjs';

/** @typedef {import('puppeteer-core').Page} Page */

/** @param {Page} page */
async function parameters(page) {
  return Object.fromEntries(new URLSearchParams(await page.evaluate(() => location.search)));
}

/**
 * Collects the page's writes to the clipboard in `globalThis.copied`: texts, and the types of other
 * data.
 * @param {Page} page
 */
async function keepCopies(page) {
  await page.evaluate(() => {
    /** @type {any[]} */
    const copied = [];
    Object.assign(globalThis, { copied });
    const clipboard = {
      writeText: async (/** @type {string} */ text) => { copied.push(text); },
      write: async (/** @type {ClipboardItem[]} */ [item]) => { copied.push(await item.getType('image/png')); },
    };
    Object.defineProperty(navigator, 'clipboard', { value: clipboard });
  });
}

inBrowsers({ models: [MODEL], device: 'cpu' }, (session) => {
  const folder = () => join(session.folder, MODEL);

  /**
   * Changes a setting as a visitor does.
   * @param {Page} page
   * @param {string} id
   * @param {string} value
   */
  const change = (page, id, value) => page.$eval(`#${id}`, (input, value) => {
    Object.assign(input, input instanceof HTMLInputElement && input.type === 'checkbox' ? { checked: value === 'true' } : { value });
    input.dispatchEvent(new Event('change'));
  }, value);

  it('has all that is open in its address, which opens the same again', async () => {
    const page = await openSmall(session);
    const opened = await parameters(page);
    await change(page, 'precision', 'f32');
    await change(page, 'budget', '512');
    await change(page, 'unscaled', 'true');
    await reach(page, 'ready', 'failed');
    assert.deepEqual(await parameters(page), { ...opened, precision: 'f32', budget: '512', unscaled: '1' });
    await page.reload();
    assert.equal(await reach(page, 'ready', 'failed'), 'ready', await text(page, 'problem'));
    assert.match(await text(page, 'settings-facts'), /^f32, budget 512 MiB$/);
    assert.equal(await page.$eval('#unscaled', (input) => /** @type {HTMLInputElement} */ (input).checked), true);
    assert.match(await text(page, 'model-facts'), /, f32$/);
    // Files are in no address; the other parameters stay.
    await choose(page, 'model-file', join(folder(), FILE), join(folder(), 'config.json'));
    await page.waitForFunction(() => !new URLSearchParams(location.search).has('model'));
    assert.deepEqual(await parameters(page), { latents: opened.latents, precision: 'f32', budget: '512', unscaled: '1' });
    await openAddress(page, 'model', opened.model);
    assert.equal((await parameters(page)).model, opened.model);
    await change(page, 'precision', 'auto');
    await change(page, 'budget', '');
    await change(page, 'unscaled', 'false');
    assert.deepEqual(await parameters(page), { model: opened.model, latents: opened.latents });
  });

  it('copies the link and the picture, and says what no link has', async () => {
    const page = await openSmall(session);
    await keepCopies(page);
    await page.click('#copy-link');
    await page.waitForFunction(() => document.querySelector('#said')?.textContent === 'The link is copied.');
    assert.equal(await page.$eval('#copy-picture', (button) => /** @type {HTMLButtonElement} */ (button).disabled), true, 'no picture yet');
    await page.click('#decode');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    await page.click('#copy-picture');
    await page.waitForFunction(() => /** @type {any} */ (globalThis).copied.length === 2);
    const [link, picture] = await page.evaluate(async () => {
      const [link, blob] = /** @type {any} */ (globalThis).copied;
      const { width, height } = await createImageBitmap(blob);
      return [link, { type: blob.type, width, height }];
    });
    assert.equal(link, page.url());
    assert.deepEqual(picture, { type: 'image/png', width: 88, height: 40 });
    await choose(page, 'input-file', join(folder(), 'latents.safetensors'));
    await page.waitForFunction(() => !location.search.includes('latents='));
    await page.click('#copy-link');
    await page.waitForFunction(() => document.querySelector('#said')?.textContent?.startsWith('Without the latents'));
    // The example replaces the file.
    await page.click('#example-picture');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    await page.$eval('#said', (said) => { said.textContent = ''; });
    await page.click('#copy-link');
    await page.waitForFunction(() => document.querySelector('#said')?.textContent);
    assert.equal(await page.$eval('#said', (said) => said.textContent), 'The link is copied.');
  });

  it('copies lines for other tools, and all links lead somewhere', async () => {
    const page = await openSmall(session);
    await keepCopies(page);
    await page.click('#latents-help summary');
    await page.click('[data-copies="lines-diffusers"]');
    await page.waitForFunction(() => /** @type {any} */ (globalThis).copied[0]?.includes('save_file({"latents": '));
    for (const path of ['/', '/manual.html', '/package.html', '/docs/index.html', '/docs/guide/cli.html', '/docs/reference/models.html']) {
      const dead = await page.evaluate(async (path) => {
        const document = new DOMParser().parseFromString(await (await fetch(path)).text(), 'text/html');
        const named = [...document.querySelectorAll('a[href], link[href], img[src], meta[property="og:image"]')];
        const places = named.map((one) => one.getAttribute('href') ?? one.getAttribute('src') ?? one.getAttribute('content') ?? '').filter((place) => !/^(#|https?:)/.test(place));
        const answers = await Promise.all(places.map(async (place) => ((await fetch(new URL(place, location.origin + path))).ok ? [] : [place])));
        return places.length < 3 ? ['too few links'] : answers.flat();
      }, path);
      assert.deepEqual(dead, [], path);
    }
  });

  it('links to the source where the package says where it is', async (t) => {
    const path = '/web/package.json';
    session.server.route(path, { bytes: '{"repository":{"type":"git","url":"git+https://example.org/wgvae.git"}}', type: 'application/json' });
    t.after(() => session.server.unroute(path));
    const page = await openSmall(session);
    await page.waitForSelector('#source:not([hidden])');
    assert.equal(await page.$eval('#source', (link) => link.getAttribute('href')), 'https://example.org/wgvae');
  });

  it('opens models by their names on the hub, and asks before a large download', async (t) => {
    const [model, config] = await Promise.all([FILE, 'config.json'].map((name) => readFile(join(folder(), name))));
    const { stored } = publish({ server: session.server, store: session.server }, 'someone/small', { [`vae/${FILE}`]: model, 'vae/config.json': config });
    // Another server plays the hub, and a model of some kilobytes counts as large.
    const elsewhere = before(`const { fetch } = self; self.fetch = (url, init) => fetch(String(url).replace('https://huggingface.co', '${session.server.origin}'), init);`);
    const unasked = /\bUNASKED ?= ?[\w.]+;/;
    await patchWorker(t, session, elsewhere);
    await patchWorker(t, session, (source) => {
      assert.match(source, unasked);
      return source.replace(unasked, 'UNASKED = 1000;');
    }, '/web/page/main.js');
    const name = 'hf:someone/small/vae@main';
    const page = await openSmall(session, { model: name, config: '' }, false);
    const asked = () => page.waitForSelector('#ask[open]');
    await asked();
    assert.match(await text(page, 'ask-text'), /^hf:someone\/small\/vae@main: \d.* [KM]iB will be downloaded once, and then cached\./);
    const soFar = session.server.bytes(stored[`vae/${FILE}`]);
    assert.ok(soFar > 0 && soFar < model.length, `${soFar} bytes of ${model.length} for the question`);
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => document.querySelector('#model-name')?.textContent === 'None' && document.body.dataset.state === 'idle');
    await openAddress(page, 'model', name);
    await asked();
    await page.click('#ask [value="yes"]');
    assert.equal(await reach(page, 'ready', 'failed'), 'ready', await text(page, 'problem'));
    assert.equal(await text(page, 'model-name'), name);
    assert.equal((await parameters(page)).model, name);
    // It is cached now, and the page does not ask again.
    await page.reload();
    assert.equal(await reach(page, 'ready', 'failed', 'asking'), 'ready', await text(page, 'problem'));
  });

  it('offers the known models by names that the package takes', async () => {
    const page = await openSmall(session);
    const wrong = await page.evaluate(async () => {
      const [{ KNOWN }, { modelNamed }] = await Promise.all(['page/known', 'src/hub-name'].map((path) => import(/** @type {any} */ (`/web/${path}.js`))));
      const titles = [...document.querySelectorAll('#known button')].map((button) => /** @type {HTMLElement} */ (button).title);
      return KNOWN.filter((/** @type {{ address: string }} */ { address }, /** @type {number} */ index) => titles[index] !== address || `hf:${modelNamed(address)?.model.id}` !== address);
    });
    assert.deepEqual(wrong, []);
  });
});
