// @ts-check
// Clips in a browser, part by part, in both directions. The result must equal the whole clip by
// diffusers in f64, in the predicted memory, for any length.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';

import { errorOfClip } from './closeness.mjs';
import { clipFixture } from './fixtures.mjs';
import { sampleNatively } from './native.mjs';
import { floats, inBrowsers } from './session.mjs';

const MODEL = 'clip_wan';

/** Allowed error where values are clamped, as a multiple of torch's own error in f32 and in f16. */
const ERRORS = { f32: 4, f16: 2 };

/** Allowed error where values are not clamped, relative to the largest value, as in tests/gpu. */
const F32_ERROR = 1e-5;

inBrowsers({ clips: [MODEL] }, (session) => {
  const folder = () => session.model(`${MODEL}/`);

  for (const precision of /** @type {const} */ (['f32', 'f16'])) {
    it(`decodes a clip in ${precision}, within the memory that was predicted, and within a budget to the bit`, async (t) => {
      const golden = await clipFixture(MODEL);
      const found = await session.run(async (folder, precision) => {
        const device = await lab.device();
        const decoder = await lab.open(folder, { precision, clips: true, parking: 'on', device });
        const plan = decoder.planClip({ width: 40, height: 24, output: 'raw' });
        const whole = await lab.clip(decoder, `${folder}latents.safetensors`);
        const peaks = [plan.predicted_peak_bytes, Math.max(...whole.peaks)];
        const held = decoder.ledger().current;
        await decoder.destroy();
        const small = await lab.open(folder, { precision, clips: true, parking: 'on', memoryBudget: 1, device });
        const budget = await lab.smallestBudget((memoryBudget) => small.planClip({ width: 40, height: 24, output: 'raw', memoryBudget }));
        const within = await lab.clip(small, `${folder}latents.safetensors`, { memoryBudget: budget });
        const host = small.planClip({ width: 40, height: 24, output: 'raw', memoryBudget: budget }).host_bytes;
        await small.destroy();
        const isSame = whole.frames.every((frame, index) => lab.isSame(frame, within.frames[index]));
        return { frames: whole.frames.map(lab.base64), peaks, budget, within: Math.max(...within.peaks), host, isSame, held, size: whole.shape };
      }, folder(), precision);
      const [, , count] = golden.frames.shape;
      assert.deepEqual([found.frames.length, found.size], [count, [3, 24, 40]]);
      const error = errorOfClip(found.frames.map((frame) => floats(frame)), golden.frames);
      t.diagnostic(`${error.toExponential(2)}, torch ${golden.errors[precision].toExponential(2)}; ${found.peaks[0]} bytes, within a budget ${found.within}`);
      assert.ok(error <= ERRORS[precision] * golden.errors[precision], `relative max error ${error}`);
      assert.equal(found.peaks[1], found.peaks[0]);
      assert.ok(found.within <= found.budget && found.budget < found.peaks[0] && found.host > 0, JSON.stringify({ ...found, frames: 0 }));
      assert.ok(found.isSame, 'other bits within a budget');
    });
  }

  for (const precision of /** @type {const} */ (['f32', 'f16'])) {
    it(`encodes a clip in ${precision}, within the memory that was predicted, and within a budget to the bit`, async (t) => {
      const { pixels, moments, errors } = (await clipFixture(MODEL)).encode;
      const [, , count, height, width] = pixels.shape;
      const found = await session.run(async (folder, precision, count, size) => {
        const frames = Array.from({ length: count }, (_, index) => `${folder}frame_${index}.safetensors`);
        const options = { model: `${folder}both.safetensors`, config: `${folder}config.json`, precision, clips: true, parking: /** @type {const} */ ('on'), device: await lab.device() };
        const encoder = await lab.wgvae.createEncoder(options);
        const { predicted_peak_bytes: predicted, ...plan } = encoder.planEncodeClip(size);
        const whole = await lab.encodeClip(encoder, frames);
        await encoder.destroy();
        const small = await lab.wgvae.createEncoder({ ...options, memoryBudget: 1 });
        const budget = await lab.smallestBudget((memoryBudget) => small.planEncodeClip({ ...size, memoryBudget }));
        const host = small.planEncodeClip({ ...size, memoryBudget: budget }).host_bytes;
        const within = await lab.encodeClip(small, frames, { memoryBudget: budget });
        await small.destroy();
        const isSame = whole.parts.every(({ data }, index) => lab.isSame(data, within.parts[index].data));
        const parts = whole.parts.map(({ data, ...facts }) => ({ ...facts, data: lab.base64(data) }));
        return { parts, peaks: [predicted, Math.max(...whole.peaks)], plan, budget, within: Math.max(...within.peaks), host, isSame, left: lab.gpu.liveBytes() };
      }, folder(), precision, count, { width, height });
      const [, channels, latents, rows, columns] = moments.shape;
      assert.deepEqual(found.parts.map(({ frames }) => frames), [1, ...Array(latents - 1).fill(4)]);
      for (const { data, frames, ...facts } of found.parts) assert.deepEqual(facts, { shape: [1, channels, 1, rows, columns], unscaled: true, width, height, added: 0 });
      const error = errorOfClip(found.parts.map(({ data }) => floats(data)), moments);
      t.diagnostic(`${error.toExponential(2)}, torch ${errors[precision].toExponential(2)}; ${found.peaks[0]} bytes, within a budget ${found.within}`);
      assert.ok(error <= (precision === 'f32' ? F32_ERROR : ERRORS.f16 * errors.f16), `relative max error ${error}`);
      assert.deepEqual([found.plan.width, found.plan.height, found.plan.frames], [width, height, 4]);
      assert.equal(found.peaks[1], found.peaks[0]);
      assert.ok(found.within <= found.budget && found.budget < found.peaks[0] && found.host > 0, JSON.stringify({ ...found, parts: 0 }));
      assert.ok(found.isSame, 'other bits within a budget');
      assert.equal(found.left, 0);
    });
  }

  it('draws what the command line draws', async () => {
    const { pixels } = (await clipFixture(MODEL)).encode;
    const wanted = await sampleNatively(join(session.folder, MODEL), pixels, 7);
    const found = await session.run(async (folder, count) => {
      const encoder = await lab.wgvae.createEncoder({ model: `${folder}both.safetensors`, config: `${folder}config.json`, precision: 'f32', clips: true, device: await lab.device() });
      const frames = Array.from({ length: count }, (_, index) => `${folder}frame_${index}.safetensors`);
      const { parts } = await lab.encodeClip(encoder, frames, { output: 'sample', seed: 7 });
      await encoder.destroy();
      return parts.map(({ data, unscaled }) => ({ data: lab.base64(data), unscaled }));
    }, folder(), pixels.shape[2]);
    assert.ok(found.every(({ unscaled }) => !unscaled));
    const error = errorOfClip(found.map(({ data }) => floats(data)), wanted);
    assert.ok(error <= F32_ERROR, `relative max error ${error}`);
  });

  it('streams from an encode to a decode, frees both when nobody goes on, and stops both in the middle of a part', async () => {
    const found = await session.run(async (folder) => {
      const vae = await lab.openVae(folder, { precision: 'f32', clips: true, device: await lab.device() });
      const frames = Array.from({ length: 9 }, (_, index) => lab.noise(16, 16, 255, index + 1));
      const { parts } = await lab.encodeClip(vae, frames, { output: 'mode' });
      const wanted = await lab.clip(vae, parts);
      const count = parts.length;
      /** @type {string[]} */
      const log = [];
      async function* watched() {
        try {
          for (const frame of frames) yield frame;
        } finally {
          log.push('end of the frames');
        }
      }
      const streamed = await lab.clip(vae, vae.encodeClip(watched()));
      const isSame = (/** @type {{ frames: Float32Array[] }} */ other) => wanted.frames.every((frame, index) => lab.isSame(frame, other.frames[index]));
      // Once only the weights and the memory of the last plan are left.
      const held = vae.ledger().current;
      for await (const frame of vae.clip(vae.encodeClip(watched()), { output: 'raw' })) if (frame.data.length > 0) break;
      const left = vae.ledger().current - held;
      const aborts = [];
      // Aborts from within the module's own call, and while the device works.
      for (const [phase, when] of /** @type {const} */ ([['encode', 'now'], ['decode', 'now'], ['encode', 'soon'], ['decode', 'soon']])) {
        const controller = new AbortController();
        const abort = () => controller.abort(new Error(`enough of ${phase}`));
        const hear = (/** @type {{ phase: string, done: number }} */ now) => {
          if (now.phase !== phase || now.done <= 3) return;
          if (when === 'now') abort();
          else setTimeout(abort);
        };
        const options = { signal: controller.signal, onProgress: hear };
        const { error } = await lab.outcome(lab.clip(vae, vae.encodeClip(watched(), options), options));
        aborts.push(error?.message);
      }
      const again = await lab.clip(vae, vae.encodeClip(watched()));
      await vae.destroy();
      return { count, frames: wanted.frames.length, streamed: isSame(streamed), left, aborts, again: isSame(again), log, live: lab.gpu.liveBytes() };
    }, folder());
    const { left, log, ...facts } = found;
    assert.deepEqual(facts, { count: 3, frames: 9, streamed: true, aborts: ['enough of encode', 'enough of decode', 'enough of encode', 'enough of decode'], again: true, live: 0 });
    assert.ok(left <= 0, `${left} bytes more than before`);
    assert.deepEqual(log, Array(7).fill('end of the frames'));
  });

  it('ends a clip whose device is lost, and begins the next on a new one', async () => {
    const found = await session.run(async (folder) => {
      const decoder = await lab.openVae(folder, { precision: 'f32', clips: true });
      const latents = `${folder}latents.safetensors`;
      const wanted = await lab.clip(decoder, latents);
      const lost = await lab.outcome(async () => {
        for await (const frame of decoder.clip(latents, { output: 'raw' })) {
          if (frame.data.length > 0) decoder.device.destroy();
        }
      });
      const pictures = Array.from({ length: 5 }, () => lab.noise(16, 16));
      const encoding = await lab.outcome(async () => {
        for await (const part of decoder.encodeClip(pictures)) if (part.frames > 0) decoder.device.destroy();
      });
      const again = await lab.clip(decoder, latents);
      const { parts } = await lab.encodeClip(decoder, pictures);
      await decoder.destroy();
      return { code: lost.error?.code, encoding: encoding.error?.code, parts: parts.length, isSame: wanted.frames.every((frame, index) => lab.isSame(frame, again.frames[index])), left: lab.gpu.liveBytes() };
    }, folder());
    assert.deepEqual(found, { code: 'device-lost', encoding: 'device-lost', parts: 2, isSame: true, left: 0 });
  });

  it('begins a clip on a new device also if all its states are on the host', async () => {
    const found = await session.run(async (folder) => {
      const vae = await lab.openVae(folder, { precision: 'f32', clips: true, parking: 'on', memoryBudget: 1 });
      const [latents, size] = [`${folder}latents.safetensors`, { width: 40, height: 24 }];
      const decode = { memoryBudget: await lab.smallestBudget((memoryBudget) => vae.planClip({ ...size, output: 'raw', memoryBudget })) };
      const encode = { memoryBudget: await lab.smallestBudget((memoryBudget) => vae.planEncodeClip({ ...size, memoryBudget })) };
      const pictures = Array.from({ length: 5 }, () => lab.noise(40, 24));
      const wanted = await lab.clip(vae, latents, decode);
      // Not while a clip is in progress, nor before the loss is known.
      const lose = async () => {
        const { device } = vae;
        device.destroy();
        await device.lost;
      };
      await lose();
      const again = await lab.outcome(lab.clip(vae, latents, decode));
      await lose();
      const encoded = await lab.outcome(lab.encodeClip(vae, pictures, encode));
      await vae.destroy();
      const isSame = wanted.frames.every((frame, index) => lab.isSame(frame, again.value?.frames[index] ?? []));
      return { codes: [again, encoded].map(({ error }) => error?.code ?? 'done'), isSame, left: lab.gpu.liveBytes() };
    }, folder());
    assert.deepEqual(found, { codes: ['done', 'done'], isSame: true, left: 0 });
  });

  it('leaves clips on the new device alone when one of the lost device goes on', async () => {
    const found = await session.run(async (folder) => {
      const vae = await lab.openVae(folder, { precision: 'f32', clips: true });
      const begin = () => vae.clip(`${folder}latents.safetensors`, { output: 'raw' })[Symbol.asyncIterator]();
      /** @type {string[]} */
      const codes = [];
      /**
       * Takes the next frame, which needs another part.
       * @param {ReturnType<typeof begin>} clip
       */
      const step = async (clip) => {
        const { error } = await lab.outcome(clip.next());
        codes.push(error?.code ?? 'done');
        return clip;
      };
      const [first, second] = [await step(begin()), await step(begin())];
      const { device } = vae;
      device.destroy();
      await device.lost;
      await step(first);
      const third = await step(begin());
      await step(second);
      const fourth = await step(begin());
      await step(third);
      await Promise.all([third, fourth].map((clip) => clip.return?.()));
      await vae.destroy();
      return { codes, left: lab.gpu.liveBytes() };
    }, folder());
    assert.deepEqual(found, { codes: ['done', 'done', 'device-lost', 'done', 'device-lost', 'done', 'done'], left: 0 });
  });

  it('takes arrays, gives bitmaps and ImageData, and frees everything when nobody goes on', async () => {
    const found = await session.run(async (folder) => {
      const decoder = await lab.open(folder, { precision: 'f32', clips: true, device: await lab.device() });
      const before = decoder.ledger().current;
      const latents = { data: new Float32Array(16 * 3 * 2 * 2).fill(0.5), shape: [1, 16, 3, 2, 2] };
      const kinds = [];
      for await (const frame of decoder.clip(latents)) {
        kinds.push(`${frame.constructor.name} ${frame.width}x${frame.height}`);
        frame.close();
      }
      let images = 0;
      for await (const image of decoder.clip(latents, { output: 'image-data' })) {
        images += image.width === 16 ? 1 : 0;
        if (images === 2) break;
      }
      const controller = new AbortController();
      const aborted = await lab.outcome(async () => {
        for await (const frame of decoder.clip(latents, { output: 'raw', signal: controller.signal })) controller.abort(new Error(`enough of ${frame.shape}`));
      });
      const other = await lab.outcome(async () => decoder.clip({ data: new Float32Array(8), shape: [1, 8, 1, 1, 1] }).next());
      const image = await lab.outcome(decoder.decode({ data: new Float32Array(16 * 4), shape: [1, 16, 2, 2] }));
      const { frames } = await lab.clip(decoder, latents);
      await decoder.destroy();
      return { kinds, images, aborted: aborted.error?.message, other: other.error?.message, image: image.error?.message, frames: frames.length, before, left: decoder.ledger().current };
    }, folder());
    assert.deepEqual(found.kinds, Array(9).fill('ImageBitmap 16x16'));
    assert.equal(found.images, 2);
    assert.match(found.aborted, /enough of 3,16,16/);
    assert.match(found.other, /\[1, 16, t, h, w\].*\[1,8,1,1,1\]/s);
    assert.match(found.image, /clips/);
    assert.deepEqual([found.frames, found.left], [9, 0]);
  });
});
