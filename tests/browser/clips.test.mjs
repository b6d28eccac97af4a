// @ts-check
// Clips in a browser, part by part: the whole clip's frames by its own class in f64, in the memory that was predicted, whatever the length.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { clipFixture } from './fixtures.mjs';
import { floats, inBrowsers } from './session.mjs';

const MODEL = 'clip_wan';

/** Times torch's own error in f32, where values are cut off; times that in f16. */
const ERRORS = { f32: 4, f16: 2 };

inBrowsers({ clips: [MODEL] }, (session) => {
  const folder = () => session.model(`${MODEL}/`);

  for (const precision of /** @type {const} */ (['f32', 'f16'])) {
    it(`decodes a clip in ${precision}, within the memory that was predicted, and within a budget to the bit`, async (t) => {
      const golden = await clipFixture(MODEL);
      const found = await session.run(async (folder, precision) => {
        const decoder = await lab.open(folder, { precision, clips: true, parking: 'on' });
        const plan = decoder.planClip({ width: 40, height: 24, output: 'raw' });
        const whole = await lab.clip(decoder, `${folder}latents.safetensors`);
        const peaks = [plan.predicted_peak_bytes, Math.max(...whole.peaks)];
        const held = decoder.ledger().current;
        await decoder.destroy();
        const small = await lab.open(folder, { precision, clips: true, parking: 'on', memoryBudget: 1 });
        const { error } = await lab.outcome(() => small.planClip({ width: 40, height: 24, output: 'raw' }));
        // The first part's smallest budget may be less than that of the others.
        let budget = error.smallest;
        for (let tries = 0; tries < 3; tries += 1) {
          const again = await lab.outcome(() => small.planClip({ width: 40, height: 24, output: 'raw', memoryBudget: budget }));
          budget = again.error?.smallest ?? budget;
        }
        const within = await lab.clip(small, `${folder}latents.safetensors`, { memoryBudget: budget });
        const host = small.planClip({ width: 40, height: 24, output: 'raw', memoryBudget: budget }).host_bytes;
        await small.destroy();
        const isSame = whole.frames.every((frame, index) => lab.isSame(frame, within.frames[index]));
        return { frames: whole.frames.map(lab.base64), peaks, budget, within: Math.max(...within.peaks), host, isSame, held, size: whole.shape };
      }, folder(), precision);
      const [, , count] = golden.frames.shape;
      assert.deepEqual([found.frames.length, found.size], [count, [3, 24, 40]]);
      const error = relativeError(found.frames.map((frame) => floats(frame)), golden.frames);
      t.diagnostic(`${error.toExponential(2)}, torch ${golden.errors[precision].toExponential(2)}; ${found.peaks[0]} bytes, within a budget ${found.within}`);
      assert.ok(error <= ERRORS[precision] * golden.errors[precision], `relative max error ${error}`);
      assert.equal(found.peaks[1], found.peaks[0]);
      assert.ok(found.within <= found.budget && found.budget < found.peaks[0] && found.host > 0, JSON.stringify({ ...found, frames: 0 }));
      assert.ok(found.isSame, 'other bits within a budget');
    });
  }

  it('takes the VAE\'s own latents for such, in a file and in an array', async () => {
    const found = await session.run(async (folder, data, shape) => {
      const decoder = await lab.open(folder, { precision: 'f32', clips: true });
      const scaled = await lab.clip(decoder, `${folder}latents.safetensors`);
      const file = await lab.clip(decoder, `${folder}own.latent`);
      const array = await lab.clip(decoder, { data: Float32Array.from(data), shape, unscaled: true });
      await decoder.destroy();
      const same = (/** @type {{ frames: Float32Array[] }} */ other) => file.frames.every((frame, index) => lab.isSame(frame, other.frames[index]));
      return { array: same(array), scaled: same(scaled) };
    }, folder(), Array.from((await clipFixture(MODEL)).latents.data), (await clipFixture(MODEL)).latents.shape);
    assert.deepEqual(found, { array: true, scaled: false });
  });

  it('ends a clip whose device is lost, and begins the next on a new one', async () => {
    const found = await session.run(async (folder) => {
      const decoder = await lab.open(folder, { precision: 'f32', clips: true });
      const latents = `${folder}latents.safetensors`;
      const wanted = await lab.clip(decoder, latents);
      const lost = await lab.outcome(async () => {
        for await (const frame of decoder.clip(latents, { output: 'raw' })) {
          if (frame.data.length > 0) decoder.device.destroy();
        }
      });
      const again = await lab.clip(decoder, latents);
      await decoder.destroy();
      return { code: lost.error?.code, isSame: wanted.frames.every((frame, index) => lab.isSame(frame, again.frames[index])), left: lab.gpu.liveBytes() };
    }, folder());
    assert.deepEqual(found, { code: 'device-lost', isSame: true, left: 0 });
  });

  it('takes arrays, gives bitmaps and ImageData, and frees everything when nobody goes on', async () => {
    const found = await session.run(async (folder) => {
      const decoder = await lab.open(folder, { precision: 'f32', clips: true });
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

/**
 * max |a - b| / max |b|
 * @param {Float32Array[]} frames each [3, h, w]
 * @param {import('./safetensors.mjs').Tensor} wanted [1, 3, t, h, w]
 */
function relativeError(frames, { shape, data }) {
  const [, channels, count, height, width] = shape;
  const plane = height * width;
  let [furthest, largest] = [0, 0];
  frames.forEach((frame, index) => frame.forEach((value, at) => {
    const other = data[(Math.floor(at / plane) * count + index) * plane + (at % plane)];
    furthest = Math.max(furthest, Math.abs(value - other));
    largest = Math.max(largest, Math.abs(other));
  }));
  assert.equal(frames.length * channels * plane, data.length);
  return furthest / largest;
}
