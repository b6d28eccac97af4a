// @ts-check
// The page for somebody who has never heard of latents: a picture before anything is loaded, a
// place for files, examples to click, one bar that never goes back, and tools folded away.

import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';

import { fixture, latentsFile } from './fixtures.mjs';
import { inBrowsers, ROOT } from './session.mjs';
import { apart, before, checkBar, choose, hasPreview, isInSight, keepDownloads, MODEL, openSmall, patchWorker, reach, screenshot, text, watchBar } from './visitor.mjs';

/** @typedef {import('puppeteer-core').Page} Page */

/** A phone, and a small laptop. */
const SCREENS = { phone: { width: 360, height: 740 }, laptop: { width: 1366, height: 768 } };

const SHOTS = join(ROOT, 'target', 'browser');

/** Code that keeps a worker from ever starting its module. */
const WITHOUT_MODULE = `
  const { fetch } = self;
  self.fetch = (...parameters) => (String(parameters[0]?.url ?? parameters[0]).endsWith('.wasm') ? new Promise(() => {}) : fetch(...parameters));`;

inBrowsers({ models: [MODEL], device: 'cpu' }, (session) => {
  for (const [name, size] of Object.entries(SCREENS)) {
    it(`shows the demo's latents as colours before the module is there, with a place for files, on a ${name}`, async (t) => {
      await patchWorker(t, session, before(WITHOUT_MODULE));
      const page = await session.open('/tests/blank.html');
      await page.setViewport(size);
      await page.goto(session.server.url('/'));
      await page.waitForFunction(hasPreview);
      await mkdir(SHOTS, { recursive: true });
      await page.screenshot({ path: /** @type {`${string}.png`} */ (join(SHOTS, `${session.kind}-first-${name}.png`)) });
      for (const selector of ['#preview', '#caption', '#status', '.target']) assert.ok(await isInSight(page, selector), `${selector} is out of sight`);
      assert.match(await text(page, 'caption'), /^Preview: the 64 × 64 latents as colours, by a linear map/);
      const labels = await page.$$eval('#picture, #caption', (all) => all.map((one) => one.getAttribute('aria-label') ?? one.getAttribute('role')));
      assert.deepEqual(labels.sort(), ['Preview of the latents, 64 by 64: no picture yet', 'status'], 'screen readers hear of it, too');
      const levels = await page.evaluate(async (url) => {
        const picture = await createImageBitmap(await (await fetch(url)).blob(), { resizeWidth: 64, resizeHeight: 64, resizeQuality: 'high' });
        const context = /** @type {OffscreenCanvasRenderingContext2D} */ (new OffscreenCanvas(64, 64).getContext('2d'));
        context.drawImage(picture, 0, 0);
        const { data } = context.getImageData(0, 0, 64, 64);
        context.drawImage(/** @type {HTMLCanvasElement} */ (document.querySelector('#preview')), 0, 0);
        const preview = context.getImageData(0, 0, 64, 64).data;
        return data.reduce((sum, level, at) => sum + Math.abs(level - preview[at]), 0) / data.length;
      }, session.server.route('/native.png', { file: join(ROOT, 'assets', 'demo.png') }));
      assert.ok(levels < 6, `${levels} levels from the picture, made small`);
      const folded = await page.$$eval('#tiles, #gpu-test, #plan-more, #report-more', (all) => all.filter((one) => one.checkVisibility()).length);
      assert.equal(folded, 0, 'tools are folded away');
    });
  }

  it('encodes the example picture while the demo is busy, and offers the latents', async () => {
    const page = await session.open('/tests/blank.html');
    await page.goto(session.server.url('/'));
    await reach(page, 'decoding');
    // Answered before anything else can happen.
    const answer = await page.$eval('#example-picture', (button) => {
      /** @type {HTMLButtonElement} */ (button).click();
      return document.querySelector('#status')?.textContent;
    });
    assert.equal(answer, 'Stopping the demo to open the example picture');
    await watchBar(page);
    await page.waitForFunction(() => document.querySelector('#caption')?.textContent === 'Original, not encoded yet');
    assert.equal(await page.evaluate(hasPreview), false);
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    await checkBar(page);
    assert.match(await text(page, 'status'), /^Encoded and decoded 384 × 256 pixels in /);
    const psnr = Number(/^PSNR ([\d.]+) dB$/.exec(await text(page, 'psnr'))?.[1]);
    assert.ok(psnr > 25, `${psnr} dB`);
    assert.equal(await page.evaluate(() => 'demo' in document.body.dataset), true, 'the layout stays that of the examples');
    await keepDownloads(page);
    await page.click('#download-latents');
    assert.equal(await page.evaluate(() => /** @type {any} */ (globalThis).saved[0].name), 'landscape-latents.safetensors');
  });

  it('answers every choice before anything else can happen, where it can be seen', async (t) => {
    await patchWorker(t, session, before(WITHOUT_MODULE));
    const page = await session.open('/tests/blank.html');
    await page.setViewport(SCREENS.phone);
    await page.goto(session.server.url('/'));
    await page.waitForFunction(() => document.body.dataset.state === 'loading');
    // The module never starts, so each answer comes from the page alone.
    const answers = await page.evaluate(() => {
      const find = (/** @type {string} */ selector) => /** @type {any} */ (document.querySelector(selector));
      const change = (/** @type {string} */ selector, /** @type {string} */ value) => Object.assign(find(selector), { value }).dispatchEvent(new Event('change'));
      const submit = (/** @type {string} */ kind) => {
        find(`#${kind}-url`).value = `/${kind}.safetensors`;
        find(`#${kind}-form`).requestSubmit();
      };
      const files = new DataTransfer();
      files.items.add(new File(['latents'], 'mine.npy'));
      const choose = () => Object.assign(find('#input-file'), { files: files.files }).dispatchEvent(new Event('change'));
      const choices = [() => find('#example-clip').click(), () => change('#precision', 'f32'), () => submit('model'), () => submit('input'), choose, () => find('#cancel').click()];
      const inSight = () => find('#status').getBoundingClientRect().top >= 0;
      return choices.map((act) => {
        scrollTo({ top: document.documentElement.scrollHeight, behavior: 'instant' });
        const wasInSight = inSight();
        act();
        return [find('#status').textContent, wasInSight, inSight()];
      });
    });
    const stops = (/** @type {string} */ what) => `Stopping the demo to ${what}`;
    assert.deepEqual(answers, [
      [stops('open the example clip'), false, true],
      // The setting that was changed is in sight itself.
      [stops('apply the settings'), false, false],
      [stops('open model.safetensors'), false, true],
      [stops('open input.safetensors'), false, true],
      [stops('open mine.npy'), false, true],
      ['Stopping', false, false],
    ]);
  });

  it('puts the explorer of plans above the results, and the wipe in sight on a laptop', async () => {
    const page = await session.open('/tests/blank.html');
    await page.setViewport(SCREENS.laptop);
    await page.goto(session.server.url('/'));
    await page.waitForFunction(hasPreview);
    await page.click('#example-picture');
    await page.waitForFunction(() => document.querySelector('#wipe-row')?.checkVisibility());
    for (const side of [256, 2048]) {
      // Pictures of any size are shown whole.
      await page.$$eval('#picture, #original', (all, side) => all.forEach((canvas) => Object.assign(canvas, { width: side, height: side })), side);
      const [bottom, height] = await page.$eval('#wipe-row', (row) => [row.getBoundingClientRect().bottom, innerHeight]);
      assert.ok(bottom <= height, `the wipe ends at ${bottom} of ${height} pixels, with a picture of ${side}`);
    }
    const [explorer, results] = await page.$$eval('#explore, .results', (all) => all.map((one) => one.getBoundingClientRect().top));
    assert.ok(explorer < results, `the explorer is at ${explorer}, the results at ${results}`);
  });

  it('plays the example clip', async () => {
    const page = await session.open('/tests/blank.html');
    await page.goto(session.server.url('/'));
    await page.waitForFunction(hasPreview);
    await page.click('#example-clip');
    assert.equal(await page.evaluate(() => location.search), '');
    await page.waitForFunction(() => document.querySelector('#model-name')?.textContent === 'Demo model for clips');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    assert.match(await text(page, 'status'), /^Decoded 29 frames of 256 × 160 pixels in /);
    assert.match(await text(page, 'player-kept'), /^29 frames kept/);
    // Only single pictures are compared with tiles.
    await page.evaluate(() => {
      document.querySelector('#unscaled')?.dispatchEvent(new Event('change'));
      /** @type {HTMLFormElement} */ (document.querySelector('#tiles-form')).requestSubmit();
    });
    assert.equal(await reach(page, 'ready', 'failed'), 'ready', 'it does not plan for ever');
    // Back to the latents.
    await page.click('#example-latents');
    await page.waitForFunction(hasPreview);
    assert.equal(await text(page, 'player'), '');
  });

  it('decodes the examples as they are, with settings for a model of the visitor', async () => {
    const page = await session.open('/tests/blank.html');
    await page.setViewport({ width: 1280, height: 900 });
    await page.goto(session.server.url('/?family=flux1&unscaled=1'));
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    const levels = await apart(page, `data:image/png;base64,${await screenshot(page)}`, session.server.route('/native.png', { file: join(ROOT, 'assets', 'demo.png') }));
    assert.ok(levels < 1, `${levels} levels from the native picture`);
    for (const [example, said] of [['#example-picture', 'Encoded and decoded 384 × 256'], ['#example-clip', 'Decoded 29 frames']]) {
      await page.click(example);
      await page.waitForFunction((said) => document.body.dataset.state === 'failed' || document.querySelector('#status')?.textContent?.startsWith(said), {}, said);
      assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    }
    assert.equal(await page.$eval('#unscaled', (box) => /** @type {HTMLInputElement} */ (box).checked), true, 'the settings stay');
  });

  it('opens what is chosen in the place for files, whatever it is', async () => {
    const page = await openSmall(session);
    const folder = join(session.folder, MODEL);
    await choose(page, 'open-file', join(ROOT, 'assets', 'demo', 'landscape.jpg'));
    await page.waitForFunction(() => document.querySelector('#input-name')?.textContent === 'landscape.jpg');
    await page.waitForFunction(() => document.body.dataset.problem === 'input');
    await choose(page, 'open-file', join(folder, 'latents.safetensors'));
    await page.waitForFunction(() => document.querySelector('#status')?.textContent === 'Ready to decode 88 × 40 pixels');
    assert.equal(await text(page, 'problem'), '');
  });

  it('previews latents of a published latent space before they are decoded', async () => {
    const { config } = await fixture(MODEL);
    const scaled = session.server.route('/sdxl.json', { bytes: JSON.stringify({ ...JSON.parse(config), scaling_factor: 0.13025 }) });
    const page = await openSmall(session, { config: scaled });
    await page.waitForFunction(hasPreview);
    assert.match(await text(page, 'caption'), /^Preview: the 11 × 5 latents as colours/);
    const sizes = await page.$$eval('#preview, #picture', (all) => all.map((canvas) => Math.round(canvas.getBoundingClientRect().width)));
    assert.deepEqual(sizes, [88, 88]);
    await page.click('#decode');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    assert.equal(await page.evaluate(hasPreview), false);
  });

  it('gives the lines that convert a checkpoint, to be copied, and says that the demo\'s model is for the demo', async () => {
    const checkpoint = join(session.folder, 'model.ckpt');
    await writeFile(checkpoint, Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), Buffer.alloc(4096)]));
    const page = await openSmall(session);
    await choose(page, 'model-file', checkpoint);
    await page.waitForFunction(() => document.body.dataset.problem === 'format');
    const lines = (await text(page, 'problem-lines')).split('\n');
    assert.deepEqual([lines.length, lines[0]], [4, 'import torch, safetensors.torch']);
    await page.evaluate(() => {
      /** @type {string[]} */
      const copied = [];
      Object.assign(globalThis, { copied });
      Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (/** @type {string} */ words) => { copied.push(words); } } });
    });
    await page.click('#problem-code button');
    assert.deepEqual(await page.evaluate(() => /** @type {any} */ (globalThis).copied), [lines.join('\n')]);
    const other = join(session.folder, 'other.safetensors');
    await writeFile(other, latentsFile({ shape: [1, 4, 8, 8], data: new Float32Array(256) }));
    await page.goto(session.server.url('/'));
    await page.waitForFunction(hasPreview);
    await choose(page, 'open-file', other);
    await page.waitForFunction(() => document.body.dataset.problem === 'input');
    assert.match(await text(page, 'problem'), /fits only the demo's latents/);
    const inFrame = await page.$eval('#problem', (box) => {
      const [inner, outer] = [box.getBoundingClientRect(), /** @type {Element} */ (document.querySelector('.screen')).getBoundingClientRect()];
      return inner.top >= outer.top && inner.bottom <= outer.bottom;
    });
    assert.ok(inFrame, 'the problem is in the frame');
    // Too small for any model.
    const dot = join(session.folder, 'dot.png');
    const png = await page.evaluate(() => Object.assign(document.createElement('canvas'), { width: 4, height: 4 }).toDataURL());
    await writeFile(dot, Buffer.from(png.split(',')[1], 'base64'));
    await choose(page, 'open-file', dot);
    await page.waitForFunction(() => /at least 8x8 pixels/.test(document.querySelector('#problem-message')?.textContent ?? ''));
    assert.doesNotMatch(await text(page, 'problem'), /fits only the demo's latents/);
  });

  it('keeps the open model if a file of another kind is chosen', async () => {
    const page = await openSmall(session);
    const notes = join(session.folder, 'notes.txt');
    await writeFile(notes, 'Buy milk, and bread.');
    await choose(page, 'open-file', notes);
    await page.waitForFunction(() => document.body.dataset.problem === 'format');
    assert.match(await text(page, 'problem'), /notes\.txt: neither a model nor latents/);
    assert.equal(await page.$eval('#decode', (button) => /** @type {HTMLButtonElement} */ (button).disabled), false);
    await page.click('#decode');
    assert.equal(await reach(page, 'done'), 'done');
    assert.match(await text(page, 'status'), /^Decoded 88 × 40 pixels/);
    assert.equal(await text(page, 'problem'), '');
    await choose(page, 'open-file', join(session.folder, MODEL, 'latents.safetensors'));
    await page.waitForFunction(() => document.querySelector('#status')?.textContent === 'Ready to decode 88 × 40 pixels');
  });

  it('forgets a choice that is cancelled before it is taken up, and keeps what is open', async () => {
    const page = await openSmall(session);
    await page.evaluate(() => {
      const find = (/** @type {string} */ selector) => /** @type {any} */ (document.querySelector(selector));
      const files = new DataTransfer();
      files.items.add(new File(['latents'], 'mine.npy'));
      Object.assign(find('#input-file'), { files: files.files }).dispatchEvent(new Event('change'));
      find('#cancel').click();
    });
    assert.equal(await reach(page, 'ready', 'idle', 'failed'), 'ready', await text(page, 'problem'));
    await page.click('#decode');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    assert.match(await text(page, 'status'), /^Decoded 88 × 40 pixels/);
    assert.equal(await text(page, 'input-name'), 'latents.safetensors');
  });

  it('shows an example on the page of memory reports, until there are others', async () => {
    const page = await session.open('/reports.html');
    await page.waitForSelector('#reports-plots svg');
    const example = await page.$$eval('#reports-plots tr', (rows) => rows.length);
    assert.match(await text(page, 'reports-example'), /^As an example/);
    await choose(page, 'reports-file', join(ROOT, 'results', 'swiftshader.json'));
    await page.waitForSelector('#reports-example[hidden]');
    const shown = await page.$$eval('#reports-plots tr', (rows) => rows.length);
    assert.ok(shown < example, `${shown} rows, the example had ${example}`);
  });
});
