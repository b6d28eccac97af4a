// @ts-check
// Faults at several points of loading and decoding: a failing allocation, an abort, a lost device.
// Later calls work, and all memory is freed.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { inBrowsers } from './session.mjs';

/** A model that takes several submissions. */
const MODEL = 'toy_direct_long';

inBrowsers({ models: [MODEL] }, (session) => {
  const folder = () => session.model(`${MODEL}/`);

  it('says so or takes a smaller plan, whichever allocation fails', async (t) => {
    const found = await session.run(async (folder) => {
      const { device } = await lab.shared(folder);
      const before = lab.gpu.liveBytes();
      const { createBuffer, popErrorScope } = GPUDevice.prototype;
      let [allocations, failing, isFailing] = [0, Infinity, false];
      Object.assign(GPUDevice.prototype, {
        createBuffer: /** @this {GPUDevice} */ function (/** @type {GPUBufferDescriptor} */ descriptor) {
          const buffer = createBuffer.call(this, descriptor);
          const fails = allocations === failing;
          allocations += 1;
          // A failed allocation takes no memory.
          if (fails) buffer.destroy();
          isFailing ||= fails;
          return buffer;
        },
        popErrorScope: /** @this {GPUDevice} */ async function () {
          const fails = isFailing;
          isFailing = false;
          const error = await popErrorScope.call(this);
          return fails ? new GPUOutOfMemoryError('no room is left') : error;
        },
      });
      /** @param {number} number number of the allocation that fails */
      const attempt = async (number) => {
        [allocations, failing] = [0, number];
        /** @type {string[]} */
        const notices = [];
        const { value, error } = await lab.outcome(async () => {
          const decoder = await lab.open(folder, { device, onNotice: (/** @type {{ code: string }} */ { code }) => notices.push(code) });
          const decoded = await lab.outcome(decoder.decode(`${folder}latents.safetensors`, { output: 'image-data' }));
          await decoder.destroy();
          if (decoded.error) throw Object.assign(new Error(decoded.error.message), decoded.error);
          return lab.isRight(folder, /** @type {ImageData} */ (decoded.value));
        });
        return { value, code: error?.code, notices, freed: await lab.until(() => lab.gpu.liveBytes() === before) };
      };
      const whole = await attempt(Infinity);
      const count = allocations;
      const tries = [];
      for (let point = 0; point < 6; point += 1) tries.push(await attempt(Math.floor((point * (count - 1)) / 5)));
      Object.assign(GPUDevice.prototype, { createBuffer, popErrorScope });
      return { whole, count, tries };
    }, folder());
    assert.deepEqual(found.whole, { value: true, notices: [], freed: true });
    for (const { value, code, notices, freed } of found.tries) {
      assert.equal(freed, true);
      if (value === undefined) assert.equal(code, 'out-of-memory');
      else assert.deepEqual([value, notices], [true, ['fallback']]);
    }
    t.diagnostic(`${found.count} allocations; ${found.tries.map(({ code }) => code ?? 'a smaller plan')}`);
    assert.ok(found.tries.some(({ code }) => code === 'out-of-memory') && found.tries.some(({ value }) => value), 'one of each');
  });

  it('stops wherever it is aborted', async () => {
    const found = await session.run(async (folder) => {
      const decoder = await lab.shared(folder);
      const latents = `${folder}latents.safetensors`;
      // Nine times as large: a fast machine decodes the model's own latents in one submission.
      const [, channels, height, width] = await decoder.shapeOf(latents);
      const large = { data: new Float32Array(9 * channels * height * width).fill(0.5), shape: [channels, 3 * height, 3 * width] };
      await decoder.decode(latents, { output: 'image-data' });
      const before = lab.gpu.liveBytes();
      const aborts = [];
      for (let step = 0; step < 4; step += 1) {
        const controller = new AbortController();
        let told = 0;
        const onProgress = (/** @type {{ done: number, total: number }} */ { done, total }) => {
          // After the last step there is nothing to stop.
          if (told === step && done < total) controller.abort();
          told += 1;
        };
        const { error } = await lab.outcome(decoder.decode(large, { output: 'image-data', onProgress, signal: controller.signal }));
        const image = await decoder.decode(latents, { output: 'image-data' });
        if (controller.signal.aborted) aborts.push({ name: error?.name, right: await lab.isRight(folder, image) });
      }
      return { aborts, left: lab.gpu.liveBytes() - before };
    }, folder());
    assert.ok(found.aborts.length > 0, 'a decode of several submissions');
    for (const abort of found.aborts) assert.deepEqual(abort, { name: 'AbortError', right: true });
    assert.equal(found.left, 0);
  });

  it('recovers when the device is lost in the middle', async () => {
    const found = await session.run(async (folder) => {
      const latents = `${folder}latents.safetensors`;
      /** @type {string[]} */
      const notices = [];
      const decoder = await lab.open(folder, { onNotice: (/** @type {{ code: string }} */ { code }) => notices.push(code) });
      let told = 0;
      const onProgress = (/** @type {{ phase: string }} */ { phase }) => {
        if (phase !== 'decode') return;
        told += 1;
        if (told === 2) decoder.device.destroy();
      };
      const image = await decoder.decode(latents, { output: 'image-data', onProgress });
      await decoder.destroy();
      return { right: await lab.isRight(folder, image), notices };
    }, folder());
    assert.deepEqual(found, { right: true, notices: ['device-recovered'] });
  });
});
