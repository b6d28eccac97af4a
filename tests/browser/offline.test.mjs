// @ts-check
// The page cached by its service worker: it opens without a network, and all of it is one version,
// even during an update. In one browser.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, it } from 'node:test';

import { DIST, inBrowsers, KEEPER } from './session.mjs';
import { MODEL, openSmall, reach, text } from './visitor.mjs';

/** @typedef {import('puppeteer-core').Page} Page */

/** Requests for models, their latents and the service worker, which are not files of the page. */
const OWN = /^\/(models\/|sw\.js$)/;

/** A file as servers without ETag send it. */
const [DATED, DATE] = ['/assets/demo/latents.safetensors', 'Mon, 23 Nov 2026 12:00:00 GMT'];

inBrowsers({ kinds: ['chromium'], models: [MODEL] }, (session) => {
  /** Returns the files of the page that the server was asked for. */
  const asked = () => session.server.seen().filter(({ path }) => !OWN.test(path));

  /** Waits until everything is cached. @param {Page} page */
  const kept = (page) => page.evaluate(async () => { await navigator.serviceWorker.ready; });

  /** Reloads the page, and waits until it is ready. @param {Page} page */
  async function again(page) {
    await page.reload();
    assert.equal(await reach(page, 'ready', 'failed'), 'ready', await text(page, 'problem'));
  }

  before(() => {
    session.server.unroute(KEEPER);
    session.server.route(DATED, { file: join(DIST, DATED), etag: null, headers: { 'Last-Modified': DATE } });
  });

  it('can be installed', async () => {
    const page = await openSmall(session);
    const manifest = await page.evaluate(async () => {
      const link = /** @type {HTMLLinkElement} */ (document.querySelector('link[rel="manifest"]'));
      const manifest = await (await fetch(link.href)).json();
      const sizes = await Promise.all(manifest.icons.filter((/** @type {any} */ icon) => icon.sizes !== 'any').map(async (/** @type {any} */ { src, sizes }) => {
        const { width, height } = await createImageBitmap(await (await fetch(new URL(src, link.href))).blob());
        return `${width}x${height}` === sizes;
      }));
      return { ...manifest, sizes };
    });
    assert.equal(manifest.display, 'standalone');
    assert.deepEqual(manifest.sizes, [true, true]);
  });

  it('opens without a network, and never with files of two versions', async (t) => {
    const index = await readFile(join(DIST, 'index.html'), 'utf8');
    const keeper = await readFile(join(DIST, KEEPER), 'utf8');
    t.after(() => session.server.unroute(KEEPER));
    const page = await openSmall(session);
    await kept(page);
    await again(page);
    // With isolation the CPU has threads, where there is no WebGPU.
    assert.deepEqual(await page.evaluate(() => [navigator.serviceWorker.controller !== null, crossOriginIsolated]), [true, true]);
    const small = page.url();
    await page.setOfflineMode(true);
    const earlier = asked().length;
    // With the demo, whose model is requested in ranges.
    await page.goto(session.server.url('/'));
    assert.notEqual(await reach(page, 'decoding', 'done', 'failed'), 'failed', await text(page, 'problem'));
    await page.click('#cancel');
    await reach(page, 'ready', 'done');
    const ranges = await page.evaluate(async (dated, date) => {
      const ask = async (/** @type {string} */ path, /** @type {Record<string, string>} */ condition) => {
        const answer = await fetch(path, { headers: { Range: 'bytes=2-9', ...condition } });
        return [answer.status, answer.headers.get('Content-Range'), (await answer.arrayBuffer()).byteLength];
      };
      const tagged = 'assets/demo/model/config.json';
      const tag = (await fetch(tagged)).headers.get('ETag') ?? '';
      return [await ask(dated, {}), await ask(dated, { 'If-Range': date }), await ask(dated, { 'If-Range': '"other"' }), (await ask(tagged, { 'If-Range': tag }))[0], (await ask(tagged, { 'If-Range': date }))[0]];
    }, DATED, DATE);
    const { length } = await readFile(join(DIST, DATED));
    assert.deepEqual(ranges, [[206, `bytes 2-9/${length}`, 8], [206, `bytes 2-9/${length}`, 8], [200, null, length], 206, 200]);
    assert.deepEqual(asked().slice(earlier), [], 'nothing of the page comes over the network');
    await page.setOfflineMode(false);
    await page.goto(small);
    assert.equal(await reach(page, 'ready', 'failed'), 'ready', await text(page, 'problem'));
    // A new version whose list is there, but not yet its file.
    const title = '<title>wgvae, another version</title>';
    const newer = index.replace(/<title>.*<\/title>/, title);
    const hash = (/** @type {string} */ text) => createHash('sha256').update(text).digest('hex');
    assert.ok(keeper.includes(hash(index)));
    session.server.route(KEEPER, { bytes: keeper.replace(hash(index), hash(newer)), type: 'text/javascript' });
    const failed = await page.evaluate(async () => {
      const registration = await navigator.serviceWorker.ready;
      await registration.update().catch(() => {});
      const worker = registration.installing;
      await new Promise((resolve) => { if (!worker || worker.state === 'redundant') resolve(undefined); else worker.onstatechange = () => worker.state === 'redundant' && resolve(undefined); });
      return [registration.waiting, registration.installing];
    });
    assert.deepEqual(failed, [null, null], 'a version of which files are missing is not taken');
    await again(page);
    assert.doesNotMatch(await page.title(), /another version/);
    // All of it is there now: it waits for the tab to leave the old version.
    for (const path of ['/', '/index.html']) session.server.route(path, { bytes: newer, type: 'text/html; charset=utf-8' });
    t.after(() => ['/', '/index.html'].forEach((path) => session.server.unroute(path)));
    await page.evaluate(async () => {
      const registration = await navigator.serviceWorker.ready;
      await registration.update();
      const worker = registration.installing ?? registration.waiting;
      await new Promise((resolve) => { if (worker?.state === 'installed') resolve(undefined); else if (worker) worker.onstatechange = () => worker.state === 'installed' && resolve(undefined); });
    });
    assert.doesNotMatch(await page.evaluate(async () => (await fetch('index.html')).text()), /another version/, 'an open tab has the old one');
    await again(page);
    assert.doesNotMatch(await page.title(), /another version/, 'nor is it changed behind anybody\'s back');
    await page.waitForSelector('#newer:not([hidden])');
    // Not while another tab has the old version.
    const other = await session.browser.newPage();
    await other.goto(session.server.url('/reports.html'));
    await page.bringToFront();
    await page.click('#newer-load');
    await page.waitForFunction(() => /close those first/.test(document.querySelector('#newer-said')?.textContent ?? ''));
    await other.close();
    await page.click('#newer-load');
    await page.waitForFunction(() => document.title === 'wgvae, another version');
    assert.equal(await reach(page, 'ready', 'failed'), 'ready', await text(page, 'problem'));
    assert.equal(await page.evaluate(async () => (await caches.keys()).filter((name) => name.startsWith('wgvae-page ')).length), 1, 'the old one is gone');
  });
});
