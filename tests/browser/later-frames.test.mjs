// @ts-check
// Clips of LTX-2, whose decoder sees later frames: its last frames come after the last latents.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { clipFixture } from './fixtures.mjs';
import { errorOfClip } from './closeness.mjs';
import { floats, inBrowsers } from './session.mjs';

const MODEL = 'clip_ltx2';

inBrowsers({ clips: [MODEL] }, (session) => {
  it('decodes a clip to all its frames, in the predicted memory, and counts its parts', async (t) => {
    const { latents, frames, errors } = await clipFixture(MODEL);
    const found = await session.run(async (folder) => {
      const decoder = await lab.open(folder, { precision: 'f32', clips: true, device: await lab.device() });
      const plan = decoder.planClip({ width: 24, height: 16, output: 'raw' });
      /** @type {number[]} */
      const parts = [];
      let reports = 0;
      const onProgress = (/** @type {import('../../web/src/index.js').Progress} */ { part = -1, finished }) => {
        if (parts.at(-1) !== part) parts.push(part);
        if (finished) reports += 1;
      };
      const { frames, peaks, shape } = await lab.clip(decoder, `${folder}latents.safetensors`, { onProgress });
      await decoder.destroy();
      return { frames: frames.map(lab.base64), shape, peaks: [plan.predicted_peak_bytes, Math.max(...peaks)], after: plan.parts_after, parts, reports, left: lab.gpu.liveBytes() };
    }, session.model(`${MODEL}/`));
    const [, , , height, width] = frames.shape;
    assert.deepEqual(found.shape, [3, height, width]);
    const error = errorOfClip(found.frames.map(floats), frames);
    t.diagnostic(`${error.toExponential(2)}, torch ${errors.f32.toExponential(2)}`);
    assert.ok(error <= 1e-5, `relative max error ${error}`);
    assert.equal(found.peaks[1], found.peaks[0]);
    assert.ok(found.after > 0 && found.left === 0, `${found.after} parts later, ${found.left} bytes left`);
    // Each part but the last is reported with the next, frames or not.
    assert.equal(found.reports, found.parts.length - 1);
    assert.deepEqual(found.parts, Array.from({ length: latents.shape[2] + found.after }, (_, part) => part));
  });
});
