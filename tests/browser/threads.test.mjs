// @ts-check
// Models on the CPU with several threads, in workers of pages with cross-origin isolation: the bits
// of one thread, the memory that was predicted, aborts, and where there can be only one. In Firefox
// there is always one.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { relativeError } from './closeness.mjs';
import { fixture } from './fixtures.mjs';
import { floats, inBrowsers } from './session.mjs';
import { reach } from './visitor.mjs';

const MODEL = 'toy_odd';
const LARGE = 'toy_wide';
const CLIENT = '/web/src/worker.js';

/** Allowed error as in tests/gpu/decode.rs, relative to the largest value. */
const F32_ERROR = 1e-4;

inBrowsers({ kinds: ['chromium'], isolate: true, models: [MODEL, LARGE] }, (session) => {
  it('gives the bits of one thread, within budgets too, in the memory that was predicted', async () => {
    const found = await session.run(async (folder, client) => {
      const { createVae } = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
      const files = { device: /** @type {const} */ ('cpu'), model: `${folder}both.safetensors`, config: `${folder}config.json` };
      const results = [];
      for (const threads of [1, 3]) {
        const vae = await createVae({ ...files, threads });
        const raw = await vae.decode(`${folder}latents.safetensors`, { output: 'raw' });
        const peaks = [vae.report?.predicted_peak_bytes, vae.report?.measured_peak_bytes];
        const [, height, width] = raw.shape;
        const { error } = await lab.outcome(vae.plan({ width, height, output: 'raw', memoryBudget: 1 }));
        const within = await vae.decode(`${folder}latents.safetensors`, { output: 'raw', memoryBudget: error.smallest });
        const moments = await vae.encode(`${folder}image.safetensors`, { output: 'moments' });
        results.push({ raw: lab.base64(raw.data), within: lab.base64(within.data), moments: lab.base64(moments.data), peaks, adapter: vae.info.adapter.name });
        await vae.destroy();
      }
      return results;
    }, session.model(`${MODEL}/`), CLIENT);
    const [one, three] = found;
    const { image, encode } = await fixture(MODEL);
    assert.deepEqual([one.adapter, three.adapter], ['CPU (1 thread, SIMD128)', 'CPU (3 threads, SIMD128)']);
    assert.ok(relativeError(floats(three.raw), image.data) <= F32_ERROR);
    assert.ok(encode && relativeError(floats(three.moments), encode.moments.data) <= F32_ERROR);
    for (const { raw, within, moments, peaks } of found) {
      assert.deepEqual([raw === one.raw, within === one.raw, moments === one.moments], [true, true, true]);
      assert.equal(peaks[0], peaks[1]);
    }
  });

  it('shows pictures, stops when it is aborted, and has a thread for each core by default', async () => {
    const found = await session.run(async (folder, client) => {
      const { createDecoder } = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
      const decoder = await createDecoder({ device: 'cpu', model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json` });
      const latents = `${folder}latents.safetensors`;
      const stop = new AbortController();
      const { error } = await lab.outcome(decoder.decode(latents, { output: 'image-data', signal: stop.signal, onProgress: () => stop.abort(new Error('enough')) }));
      const canvas = document.createElement('canvas');
      await decoder.decode(latents, { canvas });
      const pictures = [lab.pixels(canvas), await decoder.decode(latents, { output: 'image-data' })];
      const right = await Promise.all(pictures.map((picture) => lab.isRight(folder, picture)));
      await decoder.destroy();
      return { error: error?.message, right, threads: parseInt(decoder.info.adapter.name.replace('CPU (', ''), 10), cores: Math.min(navigator.hardwareConcurrency, 16) };
    }, session.model(`${LARGE}/`), CLIENT);
    assert.deepEqual(found, { error: 'enough', right: [true, true], threads: found.cores, cores: found.cores });
  });

  it('computes on one thread if others do not start, which a notice says, unless they were asked for', async () => {
    session.server.route('/web/src/thread.js', { bytes: 'throw new Error("not today");', type: 'text/javascript' });
    try {
      const found = await session.run(async (folder, client) => {
        const { createDecoder } = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
        const files = { device: /** @type {const} */ ('cpu'), model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json` };
        /** @type {string[]} */
        const notices = [];
        const decoder = await createDecoder({ ...files, onNotice: ({ code, message }) => notices.push(`${code}: ${message}`) });
        const right = await lab.isRight(folder, await decoder.decode(`${folder}latents.safetensors`, { output: 'image-data' }));
        const { name } = decoder.info.adapter;
        await decoder.destroy();
        const { error } = await lab.outcome(createDecoder({ ...files, threads: 2 }));
        return { notices, right, name, error: `${error?.code}: ${error?.message}` };
      }, session.model(`${MODEL}/`), CLIENT);
      const { notices, error, ...others } = found;
      assert.equal(notices.length, 1);
      assert.match(notices[0], /^threads: a thread did not start: .*not today; so one thread computes instead of \d+$/);
      assert.match(error, /^internal: a thread did not start: .*not today$/);
      assert.deepEqual(others, { right: true, name: 'CPU (1 thread, SIMD128)' });
    } finally {
      session.server.unroute('/web/src/thread.js');
    }
  });

  it('has one thread on the thread of a page, which may not wait, and refuses more', async () => {
    const found = await session.run(async (folder) => {
      const decoder = await lab.open(folder, { device: 'cpu' });
      const { name } = decoder.info.adapter;
      await decoder.destroy();
      const errors = [];
      for (const threads of [2, 0, 256, 1.5, '2']) {
        const { error } = await lab.outcome(lab.open(folder, { device: 'cpu', threads: /** @type {any} */ (threads) }));
        errors.push(`${error?.code}: ${error?.message}`);
      }
      return { name, errors };
    }, session.model(`${MODEL}/`));
    assert.equal(found.name, 'CPU (1 thread, SIMD128)');
    assert.match(found.errors[0], /^input: threads: expected 1, because only workers of pages with cross-origin isolation.*, found 2$/);
    for (const error of found.errors.slice(1)) assert.match(error, /^input: threads: expected a whole number from 1 to 255, found/);
  });
});

inBrowsers({ isolate: true, device: 'cpu' }, (session) => {
  it('lets the page decode on all cores where there is no WebGPU, in Firefox on one', async () => {
    const page = await session.open('/');
    assert.equal(await reach(page, 'done', 'failed'), 'done');
    const cores = session.kind === 'firefox' ? 1 : await page.evaluate(() => Math.min(navigator.hardwareConcurrency, 16));
    const report = await page.$eval('#report-parts', (parts) => parts.textContent ?? '');
    assert.match(report, new RegExp(`equal to the byte.*Device.?CPU \\(${cores} threads?, SIMD128\\)`, 's'));
  });
});
