// @ts-check
// Clips on the page: frames as they arrive, the player, its saved files, and videos and pictures
// that are encoded, decoded and compared.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';

import { clipFixture, latentsFile } from './fixtures.mjs';
import { inBrowsers } from './session.mjs';
import { apart, choose, drop, keepDownloads, reach, save, screenshot, text } from './visitor.mjs';

const MODEL = 'clip_wan';
/** A model without a time axis. */
const TOY = 'toy_direct';

/** @typedef {import('puppeteer-core').Page} Page */
/** @typedef {import('./session.mjs').Session} Session */

inBrowsers({ clips: [MODEL], models: [TOY] }, (session) => {
  it('decodes a clip, shows its frames, plays them, and saves them', async () => {
    const { frames } = await clipFixture(MODEL);
    const [, , count, height, width] = frames.shape;
    const page = await openModel(session, { latents: session.model(`${MODEL}/latents.safetensors`) });
    assert.equal(await text(page, 'status'), `Ready to decode ${count} frames of ${width} × ${height} pixels`);
    assert.match(await text(page, 'plan'), /For clips of up to \d+ frames\.\s+Peak memory\s+\d.*iB\s+Kept for later frames\s+\d.*iB\s+In the computer's memory\s+0 bytes$/);
    assert.deepEqual([await text(page, 'plan-chart'), await text(page, 'player')], ['', '']);
    await keepDownloads(page);
    await page.click('#decode');
    // Before all frames are there.
    await page.waitForFunction(() => /of 17 expected/.test(document.querySelector('#player-kept')?.textContent ?? ''));
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    assert.match(await text(page, 'status'), new RegExp(`^Decoded ${count} frames of ${width} × ${height} pixels in `));
    assert.match(await text(page, 'report'), /equal to the byte/);
    assert.match(await text(page, 'player-kept'), /^17 frames kept as PNG: \d.*iB\.$/);
    // They play by themselves.
    await page.waitForFunction(() => document.querySelector('#player-play')?.textContent === 'Pause');
    await page.keyboard.press('k');
    for (const [key, frame] of /** @type {const} */ ([['Home', 1], ['.', 2], ['ArrowRight', 3], [',', 2], ['ArrowLeft', 1], ['ArrowLeft', 1], ['End', count], ['.', count]])) {
      await page.keyboard.press(key);
      assert.match(await text(page, 'player-time'), new RegExp(`^frame ${frame} of ${count}, `), key);
      assert.equal(await page.$eval('#player-said', (said) => said.textContent), `frame ${frame} of ${count}`);
    }
    assert.equal(await text(page, 'player-time'), 'frame 17 of 17, 1.00 s of 1.06 s');
    for (const index of [count - 1, 0, 1]) {
      await scrub(page, index);
      assert.equal(await page.$eval('#player-at', (range) => range.getAttribute('aria-valuetext')), `frame ${index + 1} of ${count}`);
      const { name, type, data } = await save(page);
      assert.deepEqual({ name, type }, { name: `latents-${String(index + 1).padStart(5, '0')}.png`, type: 'image/png' });
      assert.ok((await apart(page, data, await goldenFrame(page, frames, index))) < 1, `frame ${index + 1} is the whole clip's`);
      assert.ok(await shows(page, data), `frame ${index + 1} is on the screen`);
    }
    // Once to the end, faster than frames can be shown.
    await page.$eval('#player-rate', (rate) => {
      /** @type {HTMLInputElement} */ (rate).value = '200';
      rate.dispatchEvent(new Event('change'));
    });
    await page.click('#player-loop');
    await page.focus('#player-at');
    await page.keyboard.press(' ');
    await page.waitForFunction(() => /^frame 17 of 17/.test(document.querySelector('#player-time')?.textContent ?? '') && document.querySelector('#player-play')?.textContent === 'Play');
    // In a loop from the beginning, until a click stops it.
    await page.click('#player-loop');
    await page.click('#player-play');
    await page.waitForFunction(() => /^frame ([2-9]|1[0-6]) of/.test(document.querySelector('#player-time')?.textContent ?? ''));
    await page.keyboard.press('k');
    assert.equal(await text(page, 'player-play'), 'Play');
    const unnamed = await page.$$eval('#player input, #player button', (controls) => controls.filter((control) => !(control.getAttribute('aria-label') ?? (control.textContent || /** @type {HTMLInputElement} */ (control).labels?.[0]?.textContent))).length);
    assert.equal(unnamed, 0);
    await page.setViewport({ width: 360, height: 780 });
    await page.waitForFunction(() => innerWidth === 360 && document.documentElement.scrollWidth <= document.documentElement.clientWidth);
    await page.setViewport({ width: 1280, height: 900 });
    await page.waitForFunction(() => innerWidth === 1280);
    await checkWebm(page);
    await checkFolder(page, session);
    assert.deepEqual(session.complaints(), []);
  });

  it('decodes a clip within the budget that was offered, though the model was opened with less', async () => {
    const folder = session.model(`${MODEL}/`);
    const query = new URLSearchParams({ model: `${folder}both.safetensors`, config: `${folder}config.json`, latents: `${folder}latents.safetensors`, precision: 'f32', budget: '0.001' });
    const page = await session.open(`/?${query}`);
    await page.waitForFunction(() => document.body.dataset.problem === 'budget');
    const [, smallest] = /smallest budget found is (\d+) MiB/.exec(await text(page, 'problem')) ?? [];
    await page.$eval('#budget', (field, smallest) => {
      /** @type {HTMLInputElement} */ (field).value = smallest;
      field.dispatchEvent(new Event('change'));
    }, smallest);
    assert.equal(await reach(page, 'ready'), 'ready', `${smallest} MiB`);
    await page.click('#decode');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    assert.match(await text(page, 'player-kept'), /^17 frames kept/);
  });
});

inBrowsers({ clips: [MODEL], models: [TOY], device: 'cpu' }, (session) => {
  it('encodes and decodes a video that is dropped, and compares both, frame by frame', async () => {
    const page = await openModel(session);
    await keepDownloads(page);
    // 46x26, of which 40x24 are whole latents, and 6 frames where a clip has 5 or 9.
    await makeVideo(page, 46, 26, 6);
    await drop(page, () => ({ files: [/** @type {any} */ (globalThis).made] }));
    await page.waitForFunction(() => document.querySelector('#status')?.textContent === 'Ready to encode and decode 6 frames of 40 × 24 pixels');
    assert.match(await text(page, 'input-facts'), /^6 frames of 46 × 26 pixels$/);
    assert.match(await text(page, 'plan-of'), /^For clips of up to \d+ frames: \d.*iB to encode, \d.*iB to decode$/);
    await page.click('#decode');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    assert.match(await text(page, 'status'), /^Encoded and decoded 6 frames of 40 × 24 pixels in /);
    assert.match(await text(page, 'notices'), /46x26 pixels are encoded without their borders, as 40x24/);
    assert.match(await text(page, 'report'), /Measured peak\s+\d.*iB, then \d.*iB, equal to the byte/);
    assert.match(await text(page, 'psnr'), /^all frames together: PSNR -?[\d.]+ dB$/);
    assert.match(await text(page, 'player-time'), /^frame \d of 6, /);
    assert.equal(await page.$eval('#player-rate', (rate) => /** @type {HTMLInputElement} */ (rate).value), '8', 'as fast as the video');
    // Both sides show the same frame.
    await page.focus('#wipe');
    await page.keyboard.press('k');
    await page.keyboard.press('End');
    for (const index of [0, 5]) {
      await scrub(page, index);
      const drawn = await page.evaluate((index) => /** @type {any} */ (globalThis).drawn[index], index);
      await page.waitForFunction((index) => new RegExp(`^frame ${index + 1} `).test(document.querySelector('#player-time')?.textContent ?? ''), {}, index);
      assert.ok(await shows(page, drawn, 12), `the original of frame ${index + 1} is on the screen`);
      const { name, data } = await save(page);
      assert.equal(name, `made-decoded-0000${index + 1}.png`);
      assert.ok((await apart(page, data, drawn)) > 20, 'what was decoded is another');
    }
    assert.deepEqual(session.complaints(), []);
  });

  it('takes several pictures for a clip, in the order of their numbers, with nothing that moves and no encoder where there is none', async () => {
    const page = await openModel(session);
    // Puppeteer cannot set this in Firefox.
    const isStill = session.kind === 'chromium';
    if (isStill) await page.emulateMediaFeatures([{ name: 'prefers-reduced-motion', value: 'reduce' }]);
    await page.evaluate(() => delete (/** @type {any} */ (globalThis).VideoEncoder));
    await drop(page, async () => {
      const files = [];
      for (const [name, colour] of [['p10.png', '#00ff00'], ['p9.png', '#ff0000'], ['p2.png', '#0000ff']]) {
        const canvas = new OffscreenCanvas(16, 16);
        const context = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext('2d'));
        context.fillStyle = colour;
        context.fillRect(0, 0, 16, 16);
        files.push(new File([await canvas.convertToBlob()], name));
      }
      return { files };
    });
    await page.waitForFunction(() => document.querySelector('#status')?.textContent === 'Ready to encode and decode 3 frames of 16 × 16 pixels');
    assert.equal(await text(page, 'input-name'), 'p2.png and 2 more');
    await page.click('#decode');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    if (isStill) assert.deepEqual([await text(page, 'player-play'), (await text(page, 'player-time')).slice(0, 12)], ['Play', 'frame 1 of 3']);
    await page.waitForFunction(() => /encodes no VP9 and no VP8/.test(document.querySelector('#player-webm-why')?.textContent ?? ''));
    assert.equal(await page.$eval('#player-webm', (button) => /** @type {HTMLButtonElement} */ (button).disabled), true);
    await page.focus('#wipe');
    await page.keyboard.press('End');
    for (const [index, colour] of ['#0000ff', '#ff0000', '#00ff00'].entries()) {
      await scrub(page, index);
      const wanted = await page.evaluate((colour) => {
        const canvas = Object.assign(document.createElement('canvas'), { width: 16, height: 16 });
        const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
        context.fillStyle = colour;
        context.fillRect(0, 0, 16, 16);
        return canvas.toDataURL();
      }, colour);
      assert.ok(await shows(page, wanted, 12), `${colour} is frame ${index + 1}`);
    }
  });

  it('keeps the frames that came when it is told to stop, and decodes again', async () => {
    // [c, t, h, w], long enough to take a while.
    const long = join(session.folder, 'long.safetensors');
    await writeFile(long, latentsFile({ shape: [16, 60, 3, 3], data: new Float32Array(16 * 60 * 9).fill(0.5) }));
    const page = await openModel(session, { latents: session.model('long.safetensors') });
    assert.equal(await text(page, 'status'), 'Ready to decode 237 frames of 24 × 24 pixels');
    await page.click('#decode');
    await page.waitForFunction(() => /^[1-9]\d* frames? kept/.test(document.querySelector('#player-kept')?.textContent ?? ''));
    await page.click('#cancel');
    assert.equal(await reach(page, 'ready', 'failed', 'done'), 'ready');
    const [, kept] = /^(\d+) frames? kept as PNG: /.exec(await text(page, 'player-kept')) ?? [];
    assert.ok(Number(kept) >= 1 && Number(kept) < 237, `${kept} frames`);
    assert.match(await text(page, 'player-time'), new RegExp(`^frame \\d+ of ${kept}, `));
    await choose(page, 'input-file', join(session.folder, MODEL, 'latents.safetensors'));
    await page.waitForFunction(() => document.querySelector('#status')?.textContent === 'Ready to decode 17 frames of 40 × 24 pixels');
    await page.click('#decode');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    assert.match(await text(page, 'player-kept'), /^17 frames/);
  });

  it('says what is wrong with clips, and goes on', async () => {
    const page = await openModel(session, { latents: session.model(`${MODEL}/latents.safetensors`) });
    const file = async (/** @type {string} */ name, /** @type {Uint8Array | string} */ content) => {
      await writeFile(join(session.folder, name), content);
      return join(session.folder, name);
    };
    const channels = await file('channels.safetensors', latentsFile({ shape: [1, 8, 2, 3, 3], data: new Float32Array(8 * 18) }));
    const two = await file('two.safetensors', latentsFile({ shape: [2, 16, 2, 3, 3], data: new Float32Array(2 * 16 * 18) }));
    const video = await file('letter.webm', 'a letter');
    const mark = await file('marked.mkv', Uint8Array.of(0x1a, 0x45, 0xdf, 0xa3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
    const toy = [join(session.folder, TOY, 'diffusion_pytorch_model.safetensors'), join(session.folder, TOY, 'config.json')];
    const good = join(session.folder, MODEL, 'latents.safetensors');
    /** @type {[string, string[], string, RegExp][]} */
    const wrongs = [
      ['input-file', [channels], 'input', /8 channels, but the model takes 16/],
      ['input-file', [video], 'format', /letter\.webm: expected a video that this browser plays/],
      ['input-file', [mark], 'format', /marked\.mkv: expected a video that this browser plays/],
      ['input-file', [good], '', /^$/],
      ['input-file', [two], 'input', /2 clips/],
      ['model-file', toy, 'input', /time|video|clip/],
    ];
    for (const [id, paths, code, message] of wrongs) {
      await choose(page, id, ...paths);
      if (code) await page.waitForFunction((code, source) => document.body.dataset.problem === code && new RegExp(source).test(document.querySelector('#problem-message')?.textContent ?? ''), {}, code, message.source);
      else assert.equal(await page.waitForFunction(() => /^Ready to decode 17 frames/.test(document.querySelector('#status')?.textContent ?? '')).then(() => text(page, 'problem')), '');
    }
    // Latents of a picture, for that model.
    await choose(page, 'input-file', join(session.folder, TOY, 'latents.safetensors'));
    await page.waitForFunction(() => document.querySelector('#status')?.textContent === 'Ready to decode 88 × 40 pixels');
    await choose(page, 'input-file', good);
    await page.waitForFunction(() => document.body.dataset.problem === 'input');
    assert.match(await text(page, 'problem'), /knows no time/);
  });
});

/**
 * Opens the page with the model for clips, in f32.
 * @param {Session} session
 * @param {Record<string, string>} [more] parameters
 */
async function openModel(session, more = {}) {
  const folder = session.model(`${MODEL}/`);
  const query = new URLSearchParams({ model: `${folder}both.safetensors`, config: `${folder}config.json`, precision: 'f32', ...more });
  const page = await session.open(`/?${query}`);
  await reach(page, more.latents ? 'ready' : 'idle', 'failed');
  assert.equal(await text(page, 'problem'), '');
  return page;
}

/**
 * Returns a frame of a clip [1, 3, t, h, w] as a data URL.
 * @param {Page} page
 * @param {import('./safetensors.mjs').Tensor} frames
 * @param {number} index
 */
function goldenFrame(page, { shape: [, , count, height, width], data }, index) {
  const plane = width * height;
  const rgba = Array.from({ length: 4 * plane }, (_, at) => {
    const value = at % 4 === 3 ? 1 : data[((at % 4) * count + index) * plane + (at >> 2)];
    return Math.round(255 * Math.min(1, Math.max(0, value * 0.5 + 0.5)));
  });
  return page.evaluate((width, height, rgba) => {
    const canvas = Object.assign(document.createElement('canvas'), { width, height });
    canvas.getContext('2d')?.putImageData(new ImageData(Uint8ClampedArray.from(rgba), width, height), 0, 0);
    return canvas.toDataURL();
  }, width, height, rgba);
}

/**
 * True if the screen soon shows this picture: frames are decoded from their files first.
 * @param {Page} page
 * @param {string} wanted a data URL
 * @param {number} [levels] largest mean difference, levels
 */
async function shows(page, wanted, levels = 1) {
  for (let tries = 0; tries < 50; tries += 1) {
    if ((await apart(page, `data:image/png;base64,${await screenshot(page)}`, wanted)) < levels) return true;
  }
  return false;
}

/**
 * Saves as WebM, and decodes the file again: it must have as many frames, similar to the decoded
 * ones.
 * @param {Page} page
 */
async function checkWebm(page) {
  await page.waitForFunction(() => !(/** @type {HTMLButtonElement} */ (document.querySelector('#player-webm')).disabled));
  assert.match(await text(page, 'player-webm-why'), /VP[89]/);
  const first = await firstFrame(page);
  const before = await page.evaluate(() => /** @type {any} */ (globalThis).saved.length);
  await page.click('#player-webm');
  await page.waitForFunction((before) => /** @type {any} */ (globalThis).saved.length > before, {}, before);
  const found = await page.evaluate(async () => {
    const file = /** @type {any} */ (globalThis).saved.at(-1);
    const { ALL_FORMATS, BlobSource, Input, VideoSampleSink } = await import(`${location.origin}/web/vendor/mediabunny.mjs`);
    const track = await new Input({ source: new BlobSource(file), formats: ALL_FORMATS }).getPrimaryVideoTrack();
    const frames = [];
    for await (const sample of new VideoSampleSink(track).samples()) {
      const canvas = Object.assign(document.createElement('canvas'), { width: sample.displayWidth, height: sample.displayHeight });
      sample.draw(canvas.getContext('2d'), 0, 0);
      frames.push({ time: sample.timestamp, data: canvas.toDataURL() });
      sample.close();
    }
    return { name: file.name, type: file.type, times: frames.map(({ time }) => time), first: frames[0].data };
  });
  assert.deepEqual([found.name, found.type, found.times.length], ['latents.webm', 'video/webm', 17]);
  // At 200 frames per second; WebM counts milliseconds.
  assert.ok(found.times.every((time, index) => Math.abs(time - index / 200) < 0.002), `${found.times}`);
  const levels = await apart(page, found.first, first);
  assert.ok(levels < 25, `the first frame of the video is ${levels} levels from the one that was decoded`);
}

/**
 * Moves the player's slider.
 * @param {Page} page
 * @param {number} index
 */
async function scrub(page, index) {
  await page.$eval('#player-at', (range, index) => {
    /** @type {HTMLInputElement} */ (range).value = `${index}`;
    range.dispatchEvent(new Event('input'));
  }, index);
}

/** Returns the first frame as a data URL. @param {Page} page */
async function firstFrame(page) {
  await scrub(page, 0);
  return (await save(page)).data;
}

/**
 * Saves all frames to a folder, if the browser supports folders; a made-up one replaces the user's.
 * @param {Page} page
 * @param {Session} session
 */
async function checkFolder(page, session) {
  if (session.kind === 'firefox') {
    assert.equal(await text(page, 'player-folder'), '', 'it has no folders');
    return;
  }
  await page.evaluate(async () => {
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle('frames', { create: true });
    Object.assign(globalThis, { showDirectoryPicker: async () => folder });
  });
  await page.click('#player-folder');
  await page.waitForFunction(() => document.querySelector('#player-folder')?.textContent?.startsWith('Save') && !(/** @type {HTMLButtonElement} */ (document.querySelector('#player-folder')).disabled));
  const { names, first } = await page.evaluate(async () => {
    const folder = await (await navigator.storage.getDirectory()).getDirectoryHandle('frames');
    const names = [];
    for await (const name of /** @type {any} */ (folder).keys()) names.push(name);
    const file = await (await folder.getFileHandle('latents-00001.png')).getFile();
    return { names: names.sort(), first: `data:image/png;base64,${btoa(String.fromCharCode(...new Uint8Array(await file.arrayBuffer())))}` };
  });
  assert.deepEqual(names, Array.from({ length: 17 }, (_, index) => `latents-${String(index + 1).padStart(5, '0')}.png`));
  assert.equal(await apart(page, first, await firstFrame(page)), 0);
}

/**
 * Makes a video of a moving bar in the browser, as `globalThis.made`, and the part of each frame
 * that is whole latents, as `globalThis.drawn`.
 * @param {Page} page
 * @param {number} width
 * @param {number} height
 * @param {number} count frames, 8 per second
 */
async function makeVideo(page, width, height, count) {
  await page.evaluate(async (width, height, count) => {
    const { BufferTarget, Output, VideoSample, VideoSampleSource, WebMOutputFormat } = await import(`${location.origin}/web/vendor/mediabunny.mjs`);
    const target = new BufferTarget();
    const output = new Output({ format: new WebMOutputFormat(), target });
    const source = new VideoSampleSource({ codec: 'vp8', bitrate: 2_000_000 });
    output.addVideoTrack(source);
    await output.start();
    const drawn = [];
    for (let index = 0; index < count; index += 1) {
      const canvas = Object.assign(document.createElement('canvas'), { width, height });
      const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
      context.fillStyle = '#205080';
      context.fillRect(0, 0, width, height);
      context.fillStyle = '#e0c060';
      context.fillRect(4 + 4 * index, 0, 12, height);
      const sample = new VideoSample(canvas, { timestamp: index / 8, duration: 1 / 8 });
      await source.add(sample);
      sample.close();
      const middle = Object.assign(document.createElement('canvas'), { width: 40, height: 24 });
      middle.getContext('2d')?.drawImage(canvas, -(width - 40) / 2, -(height - 24) / 2);
      drawn.push(middle.toDataURL());
    }
    await output.finalize();
    Object.assign(globalThis, { made: new File([target.buffer], 'made.webm', { type: 'video/webm' }), drawn });
  }, width, height, count);
}
