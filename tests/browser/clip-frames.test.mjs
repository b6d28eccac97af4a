// @ts-check
// What clips take on the CPU: every kind of frame, parts of latents, and how many frames belong
// together.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { clipModelFile } from './clip-models.mjs';
import { clipFixture, latentsFile } from './fixtures.mjs';
import { inBrowsers } from './session.mjs';

const MODEL = 'clip_wan';

inBrowsers({ clips: [MODEL], device: 'cpu' }, (session) => {
  const folder = () => session.model(`${MODEL}/`);

  it('takes every kind of picture as a frame, adds what is missing, and says what is wrong with frames', async () => {
    const found = await session.run(async (folder) => {
      /** @type {string[]} */
      const notices = [];
      const encoder = await lab.wgvae.createEncoder({
        model: `${folder}both.safetensors`, config: `${folder}config.json`, precision: 'f32', clips: true, device: await lab.device(), onNotice: ({ code }) => notices.push(code),
      });
      // 18x17, of which the middle 16x16 are whole latents.
      const images = Array.from({ length: 9 }, (_, index) => lab.noise(18, 17, 255, index + 1));
      const values = images.map((image) => lab.valuesOf(image, 1, 0, 16, 16));
      const wanted = await lab.encodeClip(encoder, values);
      const [canvas, blob] = [lab.canvasOf(images[1]), await lab.canvasOf(images[2]).convertToBlob()];
      async function* kinds() {
        const bitmap = await createImageBitmap(images[0]);
        yield bitmap;
        // The caller may close it once the next is requested.
        bitmap.close();
        yield canvas;
        yield blob;
        yield* images.slice(3);
      }
      const isSame = (/** @type {{ parts: { data: Float32Array }[] }} */ a, b = wanted) => a.parts.length === b.parts.length && a.parts.every(({ data }, index) => lab.isSame(data, b.parts[index].data));
      const same = isSame(await lab.encodeClip(encoder, kinds()));
      const cropped = notices.splice(0);
      /** @type {Record<string, boolean>} */
      const padded = {};
      /** @type {number[]} */
      const added = [];
      for (const [name, frames, pad, ends] of /** @type {const} */ ([
        ['repeat', 7, 'repeat', [6, 6]], ['mirror', 7, 'mirror', [5, 4]], ['mirror over a part', 6, 'mirror', [4, 3, 2]], ['mirror of too few', 2, 'mirror', [1, 1, 1]],
        ['one', 1, 'mirror', []], ['enough', 5, 'repeat', []],
      ])) {
        const own = values.slice(0, frames);
        const [by, explicit] = [await lab.encodeClip(encoder, own, { pad }), await lab.encodeClip(encoder, [...own, ...ends.map((index) => values[index])])];
        padded[name] = isSame(by, explicit);
        added.push(by.parts.at(-1)?.added ?? NaN);
      }
      /** @type {Record<string, string>} */
      const wrong = {};
      const one = values[0];
      /** @type {Record<string, any>} */
      const inputs = {
        count: values.slice(0, 7), size: [one, ...images.slice(0, 4)].map((frame, index) => (index === 3 ? lab.noise(32, 16) : frame)), none: [], text: 'frames', numbers: new Uint8Array(3),
        kind: [one, 7, one, one, one], stack: [{ data: new Float32Array(2 * 3 * 256), shape: [2, 3, 16, 16] }], channels: [{ data: new Float32Array(4 * 256), shape: [4, 16, 16] }],
      };
      for (const [name, frames] of Object.entries(inputs)) wrong[name] = (await lab.outcome(lab.encodeClip(encoder, frames))).error?.message;
      let parts = 0;
      const late = await lab.outcome(async () => {
        for await (const part of encoder.encodeClip(values.slice(0, 7).values())) parts += part.frames;
      });
      wrong.pad = (await lab.outcome(async () => encoder.encodeClip(values, { pad: /** @type {any} */ ('black') }).next())).error?.message;
      const own = await lab.outcome(async () => {
        for await (const part of encoder.encodeClip((function* () { yield one; throw new RangeError(`of the caller's`); })())) parts += part.frames;
      });
      const again = isSame(await lab.encodeClip(encoder, values));
      await encoder.destroy();
      return { same, cropped, padded, added, wrong, late: late.error?.message, parts, own: own.error, again, left: encoder.ledger().current };
    }, folder());
    assert.deepEqual([found.same, found.again, found.left, found.cropped], [true, true, 0, ['cropped']]);
    assert.deepEqual(found.padded, { repeat: true, mirror: true, 'mirror over a part': true, 'mirror of too few': true, one: true, enough: true });
    assert.deepEqual(found.added, [2, 2, 3, 3, 0, 0]);
    const expected = {
      count: /as many as latents have, such as 9 \(pad: 'repeat' or 'mirror' adds 2\), found 7/, size: /frame 4 of the clip: expected 16x16 pixels.*found 32x16/, none: /at least one, found none/,
      text: /expected an array, a generator.*found/, numbers: /expected an array, a generator.*found/, kind: /picture: expected something to draw.*found a? ?number/, stack: /one picture, found 2/,
      channels: /4 channels/, pad: /expected one of repeat, mirror, found "black"/,
    };
    for (const [name, pattern] of Object.entries(expected)) assert.match(found.wrong[name] ?? '', pattern, name);
    assert.match(found.late, /such as 9 .*found 7/);
    // Frames of the parts before each error: 1 and 4, then 1.
    assert.equal(found.parts, 1 + 4 + 1);
    assert.deepEqual([found.own?.name, found.own?.message], ['RangeError', 'of the caller\'s']);
  });

  it('says what is wrong with parts of latents', async () => {
    const found = await session.run(async (folder) => {
      const decoder = await lab.open(folder, { precision: 'f32', clips: true, device: await lab.device() });
      const part = (/** @type {Partial<{ frames: number, side: number, unscaled: boolean }>} */ { frames = 1, side = 2, unscaled = false } = {}) => {
        return { data: new Float32Array(16 * frames * side * side).fill(0.5), shape: [1, 16, frames, side, side], unscaled };
      };
      /** @type {Record<string, any>} */
      const inputs = { size: [part(), part({ side: 3 })], scale: [part({ unscaled: true }), part()], kind: [part(), 'latents'], none: [], numbers: new Float32Array(3) };
      /** @type {Record<string, string>} */
      const wrong = {};
      for (const [name, latents] of Object.entries(inputs)) wrong[name] = (await lab.outcome(lab.clip(decoder, latents))).error?.message;
      // Parts may have several frames.
      const { frames } = await lab.clip(decoder, [part(), part({ frames: 2 })]);
      await decoder.destroy();
      return { wrong, frames: frames.length, left: decoder.ledger().current };
    }, folder());
    const expected = {
      size: /part 2 of the latents: expected 2x2.*found 3x3/, scale: /part 2 .*expected .*VAE's own, as the first, found .*diffusion model's scale/, kind: /part 2 .*\{ data, shape \}/, none: /at least one part, found none/,
      numbers: /latents/,
    };
    for (const [name, pattern] of Object.entries(expected)) assert.match(found.wrong[name] ?? '', pattern, name);
    assert.deepEqual([found.frames, found.left], [9, 0]);
  });

  it('takes the VAE\'s own latents for such, in a file and in an array', async () => {
    const found = await session.run(async (folder, data, shape) => {
      const decoder = await lab.open(folder, { precision: 'f32', clips: true, device: await lab.device() });
      const scaled = await lab.clip(decoder, `${folder}latents.safetensors`);
      const file = await lab.clip(decoder, `${folder}own.latent`);
      const array = await lab.clip(decoder, { data: Float32Array.from(data), shape, unscaled: true });
      await decoder.destroy();
      const same = (/** @type {{ frames: Float32Array[] }} */ other) => file.frames.every((frame, index) => lab.isSame(frame, other.frames[index]));
      return { array: same(array), scaled: same(scaled) };
    }, folder(), Array.from((await clipFixture(MODEL)).latents.data), (await clipFixture(MODEL)).latents.shape);
    assert.deepEqual(found, { array: true, scaled: false });
  });

  it('has as many frames for each latent as the model says', async () => {
    const { config: text } = await clipFixture(MODEL);
    const config = { ...JSON.parse(text), temperal_downsample: [true, ...JSON.parse(text).temperal_downsample.slice(1).fill(false)] };
    const model = session.server.route('/twofold.safetensors', { bytes: clipModelFile(JSON.stringify(config), { encoder: true }) });
    const found = await session.run(async (model, config) => {
      const vae = await lab.wgvae.createVae({ model, config, clips: true, precision: 'f32', device: await lab.device() });
      const pictures = (/** @type {number} */ count) => Array.from({ length: count }, (_, index) => lab.noise(16, 16, 255, index + 1));
      const { parts } = await lab.encodeClip(vae, pictures(3), { output: 'mode' });
      const { frames } = await lab.clip(vae, parts);
      const even = await lab.outcome(lab.encodeClip(vae, pictures(4)));
      const padded = await lab.encodeClip(vae, pictures(4), { pad: 'repeat' });
      const factor = vae.info.frames_per_latent;
      await vae.destroy();
      return { factor, parts: parts.map(({ frames }) => frames), frames: frames.length, message: even.error?.message, padded: padded.parts.map(({ frames, added }) => [frames, added]) };
    }, model, config);
    assert.deepEqual(found, {
      factor: 2, parts: [1, 2], frames: 3, padded: [[1, 0], [2, 0], [1, 1]],
      message: "frames of the clip: expected as many as latents have, such as 5 (pad: 'repeat' or 'mirror' adds 1), found 4",
    });
    // The page counts the same.
    const channels = config.z_dim;
    const latents = session.server.route('/four.safetensors', { bytes: latentsFile({ shape: [1, channels, 4, 2, 2], data: new Float32Array(16 * channels) }) });
    const json = session.server.route('/twofold.json', { bytes: JSON.stringify(config) });
    const page = await session.open(`/?${new URLSearchParams({ model, config: json, latents })}`);
    await page.waitForFunction(() => ['ready', 'failed'].includes(document.body.dataset.state ?? ''));
    assert.match(await page.$eval('#status', (status) => status.textContent ?? ''), /^Ready to decode 7 frames of 16 × 16 pixels$/);
    await page.click('#decode');
    await page.waitForFunction(() => ['done', 'failed'].includes(document.body.dataset.state ?? ''));
    assert.match(await page.$eval('#status', (status) => status.textContent ?? ''), /^Decoded 7 frames/);
    assert.match(await page.$eval('#player-time', (time) => time.textContent ?? ''), / of 7\b/);
    await session.closePage();
  });
});
