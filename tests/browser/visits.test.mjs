// @ts-check
// First impressions of a visitor: problems visible without scrolling, an answer at once, and no
// requests to other sites without asking.

import assert from 'node:assert/strict';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';

import { decoderShapes, fixture, latentsFile, weight } from './fixtures.mjs';
import { readSafetensors, writeSafetensors } from './safetensors.mjs';
import { startServer } from './server.mjs';
import { inBrowsers, ROOT } from './session.mjs';
import { before, choose, FILE, isInSight, keepDownloads, MODEL, openAddress, openSmall, patchWorker, reach, text } from './visitor.mjs';

/** A phone, and a small laptop. */
const SCREENS = { phone: { width: 360, height: 740 }, laptop: { width: 1366, height: 768 } };

const SHOTS = join(ROOT, 'target', 'browser');

/** Code of a worker in which each kernel takes half a second to compile, even if a driver has it. */
const COMPILING_SLOWLY = `const { createComputePipelineAsync } = GPUDevice.prototype;
GPUDevice.prototype.createComputePipelineAsync = async function (descriptor) {
  await new Promise((resolve) => setTimeout(resolve, 500));
  return createComputePipelineAsync.call(this, descriptor);
};
`;

inBrowsers({ models: [MODEL] }, (session) => {
  const folder = () => join(session.folder, MODEL);

  it('answers at once to a choice that is made while it compiles, and stops that', async (t) => {
    await patchWorker(t, session, before(COMPILING_SLOWLY));
    const page = await session.open('/tests/blank.html');
    await page.goto(session.server.url('/'));
    await page.waitForFunction(() => /^Compiling shaders, [1-9]/.test(document.querySelector('#step')?.textContent ?? ''));
    // Collects the page's messages with their times.
    await page.evaluate(() => {
      /** @type {{ at: number, status: string, step: string }[]} */
      const said = [];
      Object.assign(globalThis, { said });
      const note = () => said.push({ at: performance.now(), status: document.querySelector('#status')?.textContent ?? '', step: document.querySelector('#step')?.textContent ?? '' });
      new MutationObserver(note).observe(/** @type {Node} */ (document.querySelector('.state')), { subtree: true, childList: true, characterData: true });
      const choice = () => Object.assign(globalThis, { chosen: { at: performance.now(), step: document.querySelector('#step')?.textContent } });
      document.querySelector('#model-file')?.addEventListener('change', choice, { capture: true });
    });
    await choose(page, 'model-file', join(folder(), FILE), join(folder(), 'config.json'));
    await page.waitForFunction((name) => document.querySelector('#model-name')?.textContent === name && document.body.dataset.state === 'idle', {}, FILE);
    const { said, chosen } = await page.evaluate(() => /** @type {any} */ ({ said: /** @type {any} */ (globalThis).said, chosen: /** @type {any} */ (globalThis).chosen }));
    assert.match(chosen.step, /^Compiling/, 'what the choice stops');
    const after = said.filter((/** @type {{ at: number }} */ { at }) => at >= chosen.at);
    const answer = after.find((/** @type {{ status: string }} */ { status }) => /^Stopping the demo to open /.test(status));
    assert.ok(answer, JSON.stringify(after));
    t.diagnostic(`answered after ${(answer.at - chosen.at).toFixed(0)} ms, open after ${(after.at(-1).at - chosen.at).toFixed(0)} ms`);
    assert.ok(answer.at - chosen.at < 1000, `${answer.at - chosen.at} ms until the answer`);
    const stale = after.filter((/** @type {{ at: number, step: string }} */ { at, step }) => at > answer.at && /^Compiling/.test(step));
    assert.deepEqual(stale, [], 'nobody hears how far the demo is any more');
  });

  it('asks for few files before it decodes, the latents first and the module before the model', async () => {
    session.server.forget('/web/pkg/wgvae_bg.wasm');
    const begin = session.server.seen().length;
    const page = await session.open('/');
    assert.equal(await reach(page, 'decoding', 'failed'), 'decoding', await text(page, 'problem'));
    const asked = session.server.seen().slice(begin).map(({ path }) => path);
    assert.ok(asked.length <= 24, asked.join('\n'));
    assert.ok(asked.indexOf('/assets/demo/latents.safetensors') < 8, asked.join('\n'));
    const [module, model] = [/wgvae_bg\.wasm$/, /diffusion_pytorch_model/].map((pattern) => asked.findIndex((path) => pattern.test(path)));
    assert.ok(module > 0 && module < model, asked.join('\n'));
  });
});

inBrowsers({ models: [MODEL], device: 'cpu' }, (session) => {
  const folder = () => join(session.folder, MODEL);

  for (const [name, size] of Object.entries(SCREENS)) {
    it(`shows what is wrong without scrolling on a ${name}, with its title as the state`, async () => {
      const page = await session.open('/tests/blank.html');
      await page.setViewport(size);
      await page.goto(session.server.url('/?model=none.safetensors'));
      await page.waitForFunction(() => document.body.dataset.problem === 'http');
      const letter = join(session.folder, 'letter.safetensors');
      await writeFile(letter, 'a letter');
      await page.$eval('#input-file', (input) => input.scrollIntoView());
      await choose(page, 'model-file', letter);
      await page.waitForFunction(() => document.body.dataset.problem === 'format');
      await page.waitForFunction(() => document.querySelector('#status')?.textContent === document.querySelector('#problem-title')?.textContent);
      assert.equal(await text(page, 'status'), 'This file cannot be used');
      await mkdir(SHOTS, { recursive: true });
      await page.screenshot({ path: /** @type {`${string}.png`} */ (join(SHOTS, `${session.kind}-problem-${name}.png`)) });
      assert.ok(await isInSight(page, '#problem'), 'the problem is out of sight');
      assert.equal(await page.$eval('#frame', (frame) => frame.checkVisibility()), false, 'an empty frame is in its place');
    });

    it(`decodes without WebGPU, on the CPU, on a ${name}`, async () => {
      const page = await session.open('/tests/blank.html');
      await page.setViewport(size);
      await page.goto(session.server.url('/'));
      assert.equal(await reach(page, 'done', 'failed'), 'done');
      await mkdir(SHOTS, { recursive: true });
      await page.screenshot({ path: /** @type {`${string}.png`} */ (join(SHOTS, `${session.kind}-cpu-${name}.png`)) });
      const notices = await page.$$eval('#notices li', (all) => all.map((one) => /** @type {HTMLElement} */ (one).dataset.code));
      assert.deepEqual(notices, ['cpu']);
      assert.match(await text(page, 'caption'), /^Decoded on the CPU, because/);
      assert.match(await page.$eval('#report-parts', (parts) => parts.textContent ?? ''), /equal to the byte.*Device.?CPU \(1 thread, SIMD128\)/s);
      const shown = await page.$$eval('#still-picture, #frame, #gpu-test, #decode', (all) => all.filter((one) => one.checkVisibility()).map(({ id }) => id));
      assert.deepEqual(shown, ['frame', 'decode'], 'all but the tests of a GPU');
    });

    it(`shows what there is for a precision that needs a GPU, without one, on a ${name}`, async () => {
      const page = await session.open('/tests/blank.html');
      await page.setViewport(size);
      await page.goto(session.server.url('/?precision=fast'));
      assert.equal(await reach(page, 'done', 'failed'), 'failed');
      await page.waitForFunction(() => document.body.dataset.problem === 'no-webgpu');
      await page.waitForFunction(() => /** @type {HTMLImageElement | null} */ (document.querySelector('#still-picture'))?.complete);
      await mkdir(SHOTS, { recursive: true });
      await page.screenshot({ path: /** @type {`${string}.png`} */ (join(SHOTS, `${session.kind}-no-gpu-${name}.png`)) });
      assert.equal(await text(page, 'status'), 'WebGPU is not available');
      assert.ok(await isInSight(page, '#problem'), 'the problem is out of sight');
      const shown = await page.$$eval('#still-picture, #frame, .zoom, #tiles, #gpu-test, #decode', (all) => all.filter((one) => one.checkVisibility()).map(({ id }) => id));
      assert.deepEqual(shown, ['still-picture'], 'what is useless here is gone');
      assert.equal(await page.$eval('#still-picture', (image) => /** @type {HTMLImageElement} */ (image).naturalWidth), 512);
      // Plans need no GPU.
      await page.$eval('#explore', (section) => section.scrollIntoView());
      await page.waitForSelector('#explore-chart svg');
      // Another precision opens the model on the CPU.
      await page.$eval('#precision', (select) => {
        /** @type {HTMLSelectElement} */ (select).value = 'auto';
        select.dispatchEvent(new Event('change', { bubbles: true }));
      });
      await reach(page, 'ready');
      await page.$eval('#decode', (button) => /** @type {HTMLButtonElement} */ (button).click());
      await reach(page, 'done');
      const now = await page.$$eval('#still-picture, #frame, #decode, #problem', (all) => all.filter((one) => one.checkVisibility()).map(({ id }) => id));
      assert.deepEqual(now, ['frame', 'decode']);
    });
  }

  it('fetches nothing of another site that a link names, unless the visitor agrees', async (t) => {
    const other = await startServer({ root: session.folder, cors: true });
    t.after(() => other.close());
    const [model, config] = [FILE, 'config.json'].map((name) => other.url(`/${MODEL}/${name}`));
    const page = await session.open('/tests/blank.html');
    const visit = async () => {
      await page.goto(session.server.url(`/?${new URLSearchParams({ model, config })}`));
      await page.waitForSelector('#ask-origin[open]');
    };
    await visit();
    assert.match(await text(page, 'ask-origin-text'), new RegExp(`${other.origin}/.*${FILE} and ${other.origin}/.*config.json`));
    await page.waitForFunction(() => document.body.dataset.state === 'idle');
    assert.deepEqual(other.seen(), []);
    await page.click('#ask-origin [value="no"]');
    await page.waitForFunction(() => location.search === '');
    assert.deepEqual([other.seen(), await text(page, 'model-name')], [[], 'None']);
    await visit();
    await page.click('#ask-origin [value="yes"]');
    await page.waitForFunction((name) => document.querySelector('#model-name')?.textContent === name && document.body.dataset.state === 'idle', {}, FILE);
    assert.equal(await text(page, 'problem'), '');
    assert.ok(other.seen().length > 0);
  });

  it('finds the config.json beside a model, and says what is missing where there is none', async () => {
    // Its weights alone do not tell the groups of its norms.
    const demo = `/assets/demo/model/${FILE}`;
    const alone = session.server.route('/alone/model.safetensors', { file: join(ROOT, demo) });
    const page = await session.open('/tests/blank.html');
    await page.goto(session.server.url(`/?model=${demo}&latents=/assets/demo/latents.safetensors`));
    assert.equal(await reach(page, 'ready', 'failed'), 'ready', await text(page, 'problem'));
    await openAddress(page, 'model', alone);
    await page.waitForFunction(() => document.body.dataset.problem === 'config');
    assert.equal(await text(page, 'problem-title'), 'This model needs its config.json');
  });

  it('offers to take the VAE\'s own latents as they are', async () => {
    const { config } = await fixture('toy_flux2');
    const parsed = JSON.parse(config);
    const own = parsed.latent_channels;
    /** @type {[string, import('./safetensors.mjs').Tensor][]} */
    const tensors = decoderShapes(parsed).map(([name, shape]) => [name, weight(name, shape)]);
    for (const [name, value] of Object.entries({ 'bn.running_mean': 0, 'bn.running_var': 1 })) tensors.push([name, { shape: [4 * own], data: new Float32Array(4 * own).fill(value) }]);
    const model = session.server.route('/flux2.safetensors', { bytes: writeSafetensors(tensors) });
    const file = session.server.route('/flux2.json', { bytes: config });
    const latents = session.server.route('/own.safetensors', { bytes: latentsFile({ shape: [1, own, 4, 4], data: new Float32Array(own * 16) }) });
    const page = await openSmall(session, { model, config: file, latents });
    await page.waitForFunction(() => document.body.dataset.problem === 'input');
    assert.match(await text(page, 'problem'), new RegExp(`${own} channels, which are the VAE's own.*${4 * own} \\(= 4 x ${own}\\)`));
    await page.click('#problem-unscaled');
    // Work begins after the click.
    await page.waitForFunction(() => document.body.dataset.state !== 'failed' || document.body.dataset.problem === undefined);
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    assert.equal(await page.$eval('#unscaled', (box) => /** @type {HTMLInputElement} */ (box).checked), true);
    assert.equal(await text(page, 'problem'), '');
  });

  it('says what is wrong with each of a model and its latents', async () => {
    const broken = join(session.folder, 'broken.safetensors');
    await writeFile(broken, 'this is no model');
    const page = await openSmall(session);
    await choose(page, 'model-file', broken);
    await page.waitForFunction(() => /broken\.safetensors/.test(document.querySelector('#problem-message')?.textContent ?? ''));
    const letter = join(session.folder, 'letter.txt');
    await writeFile(letter, 'a letter, which is no latents');
    await choose(page, 'input-file', letter);
    await page.waitForFunction(() => /^letter\.txt: /.test(document.querySelector('#problem-message')?.textContent ?? ''));
    assert.match(await text(page, 'problem-also'), /^And: broken\.safetensors: /);
    // Valid latents are shown as open.
    const right = join(session.folder, 'right.safetensors');
    await copyFile(join(folder(), 'latents.safetensors'), right);
    await choose(page, 'input-file', right);
    await page.waitForFunction(() => document.querySelector('#input-facts')?.textContent === '1 × 4 × 5 × 11');
    await page.waitForFunction(() => /^broken\.safetensors: /.test(document.querySelector('#problem-message')?.textContent ?? ''));
    assert.equal(await text(page, 'problem-also'), '');
  });

  it('says what is wrong with latents where there is no model', async () => {
    const page = await session.open('/tests/blank.html');
    await page.goto(session.server.url(`/?latents=${encodeURIComponent(session.model(`${MODEL}/config.json`))}&model=nowhere.safetensors`));
    await page.waitForFunction(() => /config\.json/.test(document.querySelector('#problem-also')?.textContent ?? ''));
    assert.match(await text(page, 'problem-message'), /nowhere\.safetensors/);
  });

  it('gives the latents that a picture was encoded to', async () => {
    const page = await openSmall(session, { model: session.model(`${MODEL}/both.safetensors`), latents: session.model(`${MODEL}/image.safetensors`) }, false);
    await keepDownloads(page);
    await reach(page, 'ready', 'failed');
    const picture = session.server.route('/picture', { file: join(ROOT, 'assets', 'icon-192.png'), type: 'image/png' });
    await openAddress(page, 'input', picture);
    await page.waitForFunction(() => document.querySelector('#status')?.textContent === 'Ready to encode and decode 192 × 192 pixels');
    assert.equal(await page.$eval('#download-latents', (button) => button.checkVisibility()), false);
    await page.click('#decode');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    await page.click('#download-latents');
    const saved = await page.evaluate(async () => {
      const [file] = /** @type {any} */ (globalThis).saved;
      return { name: file.name, bytes: [...new Uint8Array(await file.arrayBuffer())] };
    });
    const { tensor } = readSafetensors(Buffer.from(saved.bytes));
    const { shape, data } = tensor('latents');
    assert.deepEqual([saved.name, shape, data.length], ['picture-latents.safetensors', [1, 4, 24, 24], 4 * 24 * 24]);
    assert.ok(data.every(Number.isFinite));
    // The saved latents can be opened again.
    const file = join(session.folder, saved.name);
    await writeFile(file, Buffer.from(saved.bytes));
    await choose(page, 'input-file', file);
    await page.waitForFunction(() => document.querySelector('#status')?.textContent === 'Ready to decode 192 × 192 pixels');
    assert.equal(await page.$eval('#download-latents', (button) => button.checkVisibility()), false, 'the preview of these is there');
  });
});
