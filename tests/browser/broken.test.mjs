// @ts-check
// The wasm module breaks by a panic, or by a failed allocation, which no panic hook sees. All
// waiting calls end, the device is freed, and the next decoder works.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { inBrowsers } from './session.mjs';

/** A model that takes several submissions. */
const MODEL = 'toy_direct_long';

/** Words of the error in each case. */
const WORDS = { panic: 'a panic for tests', memory: 'unreachable' };

/** Messages of the page itself. */
const COMPLAINT = /panicked at|unreachable|wasm module/;

inBrowsers({ models: [MODEL] }, (session) => {
  const folder = () => session.model(`${MODEL}/`);

  for (const how of /** @type {const} */ (['panic', 'memory'])) {
    it(`ends all that waits for a module that breaks (${how}), and starts another`, async () => {
      const found = await session.run(async (folder, how) => {
        const latents = `${folder}latents.safetensors`;
        const decoder = await lab.open(folder);
        const idle = await lab.open(folder);
        /** @type {Record<string, any>} */
        const ended = {};
        const watch = (/** @type {string} */ name, /** @type {() => any} */ task) => {
          lab.outcome(task).then(({ error }) => { ended[name] = error ?? 'no error'; });
        };
        const wasm = await lab.startWasm();
        await new Promise((resolve) => {
          watch('decode', () => decoder.decode(latents, { onProgress: ({ done }) => done > 0 && resolve(undefined) }));
          watch('queued', () => decoder.decode(latents));
        });
        // The load is requesting its device.
        await new Promise((resolve) => watch('load', () => lab.open(folder, { onProgress: () => resolve(undefined) })));
        watch('shape', () => decoder.shapeOf(latents));
        watch('module', () => wasm.breakDown(how));
        const names = ['decode', 'queued', 'load', 'shape', 'module'];
        const isOver = await lab.until(() => names.every((name) => name in ended), 60);
        for (const name of ['plan', 'later', 'ledger']) names.push(name);
        watch('plan', () => decoder.plan({ width: 64, height: 64 }));
        watch('later', () => decoder.decode(latents));
        watch('ledger', () => decoder.ledger());
        let destroyed = false;
        Promise.all([decoder.destroy(), idle.destroy(), idle.destroy()]).then(() => { destroyed = true; });
        const isFree = await lab.until(() => destroyed && lab.gpu.liveDevices() === 0, 60);
        const next = await lab.open(folder);
        const right = await lab.isRight(folder, await next.decode(latents, { output: 'image-data' }));
        await next.destroy();
        const errors = names.map((name) => [name, ended[name]?.code, ended[name]?.isTyped]);
        return { isOver, isFree, errors, message: ended.decode?.message, right, devices: lab.gpu.liveDevices() };
      }, folder(), how);
      session.expectComplaint(COMPLAINT);
      const errors = ['decode', 'queued', 'load', 'shape', 'module', 'plan', 'later', 'ledger'].map((name) => [name, 'internal', true]);
      assert.deepEqual({ ...found, message: '' }, { isOver: true, isFree: true, errors, message: '', right: true, devices: 0 });
      assert.match(found.message, new RegExp(WORDS[how]));
    });
  }

  it('leaves the device of a caller alone when it breaks', async () => {
    const found = await session.run(async (folder) => {
      const device = await (await navigator.gpu.requestAdapter())?.requestDevice();
      if (!device) throw new Error('no device');
      const decoder = await lab.open(folder, { device });
      const { error } = await lab.outcome((await lab.startWasm()).breakDown('panic'));
      await decoder.destroy();
      device.pushErrorScope('validation');
      device.queue.writeBuffer(device.createBuffer({ size: 4, usage: GPUBufferUsage.COPY_DST }), 0, new Float32Array(1));
      const usable = (await device.popErrorScope()) === null;
      const next = await lab.open(folder, { device });
      const right = await lab.isRight(folder, await next.decode(`${folder}latents.safetensors`, { output: 'image-data' }));
      await next.destroy();
      device.destroy();
      return { code: error?.code, usable, right };
    }, folder());
    session.expectComplaint(COMPLAINT);
    assert.deepEqual(found, { code: 'internal', usable: true, right: true });
  });
});
