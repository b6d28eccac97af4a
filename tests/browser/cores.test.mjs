// @ts-check
// Models on the CPU in browsers: the numbers of diffusers, the memory that was predicted, every
// output, aborts, clips, a worker, and the choice of the device.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { errorOfClip, relativeError } from './closeness.mjs';
import { clipFixture, fixture } from './fixtures.mjs';
import { floats, inBrowsers } from './session.mjs';

const MODEL = 'toy_odd';
const LARGE = 'toy_wide';
const CLIP = 'clip_wan';
const CLIENT = '/web/src/worker.js';

/** Allowed error as in tests/gpu/decode.rs, relative to the largest value. */
const F32_ERROR = 1e-4;

inBrowsers({ models: [MODEL, LARGE], clips: [CLIP] }, (session) => {
  const folder = () => session.model(`${MODEL}/`);

  it('decodes and encodes as diffusers, with the memory that was predicted, within budgets to the bit', async () => {
    const found = await session.run(async (folder) => {
      const vae = await lab.openVae(folder, { device: 'cpu' });
      const latents = `${folder}latents.safetensors`;
      const raw = await vae.decode(latents, { output: 'raw' });
      const [, height, width] = raw.shape;
      const plan = vae.plan({ width, height, output: 'raw' });
      const peaks = [plan.predicted_peak_bytes, vae.report?.predicted_peak_bytes, vae.report?.measured_peak_bytes];
      const { error } = await lab.outcome(() => vae.plan({ width, height, output: 'raw', memoryBudget: 1 }));
      const within = await vae.decode(latents, { output: 'raw', memoryBudget: error.smallest });
      const moments = await vae.encode(`${folder}image.safetensors`, { output: 'moments' });
      const isWithin = (vae.report?.measured_peak_bytes ?? 0) <= (vae.report?.predicted_peak_bytes ?? 0);
      await vae.destroy();
      return {
        raw: lab.base64(raw.data),
        moments: lab.base64(moments.data),
        isSame: lab.isSame(within.data, raw.data),
        isSmaller: error.smallest < plan.predicted_peak_bytes,
        peaks: new Set(peaks).size,
        isWithin,
        adapter: vae.info.adapter.name,
        storage: vae.info.storage,
        device: typeof vae.device,
        left: vae.ledger().current,
        devices: lab.gpu.liveDevices(),
      };
    }, folder());
    const { image, encode } = await fixture(MODEL);
    const { raw, moments, adapter, ...others } = found;
    assert.ok(relativeError(floats(raw), image.data) <= F32_ERROR);
    assert.ok(encode && relativeError(floats(moments), encode.moments.data) <= F32_ERROR);
    assert.match(adapter, /^CPU \(1 thread, SIMD128\)$/);
    assert.deepEqual(others, { isSame: true, isSmaller: true, peaks: 1, isWithin: true, storage: 'f32', device: 'undefined', left: 0, devices: 0 });
  });

  it('decodes in halves, in less memory', async () => {
    const found = await session.run(async (folder) => {
      /** @type {{ raw: string, storage: string, peak: number, measured: number }[]} */
      const found = [];
      for (const precision of /** @type {const} */ (['f32', 'f16'])) {
        const decoder = await lab.open(folder, { device: 'cpu', precision });
        const { data } = await decoder.decode(`${folder}latents.safetensors`, { output: 'raw' });
        const { predicted_peak_bytes: peak = 0, measured_peak_bytes: measured = 0 } = decoder.report ?? {};
        found.push({ raw: lab.base64(data), storage: decoder.info.storage, peak, measured });
        await decoder.destroy();
      }
      return found;
    }, session.model(`${LARGE}/`));
    const [single, half] = found;
    const { image, f16Error } = await fixture(LARGE);
    assert.deepEqual([single.storage, half.storage], ['f32', 'packed_f16']);
    assert.ok(relativeError(floats(half.raw), image.data) <= 2 * f16Error);
    assert.deepEqual([single.measured, half.measured], [single.peak, half.peak]);
    assert.ok(half.peak < 0.7 * single.peak, `${half.peak} of ${single.peak}`);
  });

  it('fuses multiply-adds where the engine can, and only in its own copy of the module', async () => {
    const found = await session.run(async (folder, client, fusing) => {
      const { canFuse, fuse } = /** @type {typeof import('../../web/src/fusing.js')} */ (await import(fusing));
      const { createDecoder } = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
      const plain = await (await fetch('/web/pkg/wgvae_cpu_bg.wasm')).arrayBuffer();
      const [before, fused] = [new Uint8Array(plain.slice()), fuse(plain)];
      const files = { device: /** @type {const} */ ('cpu'), model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json` };
      const raws = [];
      for (const cpu of [plain, fused.buffer, await WebAssembly.compile(plain)]) {
        const decoder = await createDecoder({ ...files, wasm: { cpu } });
        const { data } = await decoder.decode(`${folder}latents.safetensors`, { output: 'raw' });
        raws.push(lab.base64(data));
        await decoder.destroy();
      }
      return { can: canFuse(), valid: WebAssembly.validate(fused), changed: fused.filter((byte, at) => byte !== before[at]).length, isKept: lab.isSame(new Uint8Array(plain), before), raws };
    }, folder(), CLIENT, '/web/src/fusing.js');
    const { image } = await fixture(MODEL);
    const [asGiven, fused, compiled] = found.raws;
    assert.deepEqual([found.can, found.valid, found.isKept], [true, true, true]);
    // Four bytes of each place.
    assert.ok(found.changed > 1000 && found.changed % 4 === 0, `${found.changed}`);
    assert.equal(asGiven, fused);
    for (const raw of found.raws) assert.ok(relativeError(floats(raw), image.data) <= F32_ERROR);
    // Nothing changes a module that the caller has compiled.
    assert.notEqual(compiled, fused);
  });

  it('gives pictures on a canvas and in memory, and says which outputs need a GPU', async () => {
    const found = await session.run(async (folder) => {
      const decoder = await lab.open(folder, { device: 'cpu' });
      const latents = `${folder}latents.safetensors`;
      const [canvas, again, other] = [document.createElement('canvas'), new OffscreenCanvas(1, 1), new OffscreenCanvas(1, 1)];
      await decoder.decode(latents, { canvas });
      await decoder.present(again);
      const bitmap = await decoder.decode(latents);
      const pictures = [...[canvas, again, bitmap].map(lab.pixels), await decoder.decode(latents, { output: 'image-data' })];
      const right = await Promise.all(pictures.map((picture) => lab.isRight(folder, picture)));
      const blob = await decoder.decode(latents, { output: 'blob' });
      other.getContext('bitmaprenderer');
      const away = document.createElement('canvas');
      away.transferControlToOffscreen();
      const errors = [];
      for (const options of [{ output: /** @type {const} */ ('texture') }, { output: /** @type {const} */ ('buffer') }, { canvas: other }, { canvas: away }]) {
        const { error } = await lab.outcome(decoder.decode(latents, options));
        errors.push(`${error?.code} ${error?.isTyped}`);
      }
      await decoder.destroy();
      return { right, type: blob.type, errors };
    }, folder());
    assert.deepEqual(found, { right: [true, true, true, true], type: 'image/png', errors: ['input true', 'input true', 'canvas true', 'canvas true'] });
  });

  it('tells how far it is, and stops when it is aborted', async () => {
    const found = await session.run(async (folder) => {
      /** @type {string[]} */
      const phases = [];
      const decoder = await lab.open(folder, { device: 'cpu', onProgress: ({ phase }) => phases.push(phase) });
      const latents = `${folder}latents.safetensors`;
      const stop = new AbortController();
      // Another task aborts, as a click would: that needs turns of the event loop meanwhile.
      const onProgress = () => setTimeout(() => stop.abort(new Error('enough')));
      const { error } = await lab.outcome(decoder.decode(latents, { output: 'image-data', signal: stop.signal, onProgress }));
      const after = await decoder.decode(latents, { output: 'image-data' });
      await decoder.destroy();
      return { error: error?.message, right: await lab.isRight(folder, after), phases: [...new Set(phases)] };
    }, session.model(`${LARGE}/`));
    assert.deepEqual(found, { error: 'enough', right: true, phases: ['load', 'decode'] });
  });

  it('decodes clips as diffusers', async () => {
    const found = await session.run(async (folder) => {
      const decoder = await lab.open(folder, { device: 'cpu', clips: true });
      const { frames, peaks, shape } = await lab.clip(decoder, `${folder}latents.safetensors`);
      await decoder.destroy();
      return { frames: frames.map(lab.base64), peaks, shape, predicted: decoder.report?.predicted_peak_bytes, left: decoder.ledger().current };
    }, session.model(`${CLIP}/`));
    assert.ok(errorOfClip(found.frames.map(floats), (await clipFixture(CLIP)).frames) <= F32_ERROR);
    assert.equal(found.left, 0);
  });

  it('works in a worker', async () => {
    const found = await session.run(async (folder, client) => {
      const { createDecoder } = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
      const decoder = await createDecoder({ device: 'cpu', model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json` });
      const [canvas, again] = [document.createElement('canvas'), document.createElement('canvas')];
      await decoder.decode(`${folder}latents.safetensors`, { canvas });
      await decoder.present(again);
      const right = await Promise.all([canvas, again].map((shown) => lab.isRight(folder, lab.pixels(shown))));
      const limits = Object.keys(decoder.limits).length;
      const { name } = decoder.info.adapter;
      await decoder.destroy();
      const { error } = await lab.outcome(createDecoder({ device: 'cpu', threads: 2, model: new Blob() }));
      return { right, limits, name, threads: `${error?.code}: ${error?.message}`, devices: lab.gpu.liveDevices() };
    }, folder(), CLIENT);
    const { threads, ...others } = found;
    assert.deepEqual(others, { right: [true, true], limits: 0, name: 'CPU (1 thread, SIMD128)', devices: 0 });
    assert.match(threads, session.kind === 'firefox' ? /^input: threads: expected 1, because Firefox may freeze/ : /^input: threads: expected 1, because only workers of pages with cross-origin isolation.*, found 2$/);
  });

  it('is chosen where there is no WebGPU, which a notice says, and refuses what only shaders have', async () => {
    const found = await session.run(async (folder) => {
      const { createDecoder } = lab.wgvae;
      const files = { model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json` };
      const gpu = /** @type {GPU} */ (/** @type {unknown} */ ({ requestAdapter: async () => null }));
      /** @type {string[]} */
      const notices = [];
      const decoder = await createDecoder({ ...files, gpu, onNotice: ({ code, message }) => notices.push(`${code}: ${message}`) });
      const right = await lab.isRight(folder, await decoder.decode(`${folder}latents.safetensors`, { output: 'image-data' }));
      const isOnCpu = decoder.device === undefined;
      await decoder.destroy();
      const onGpu = await createDecoder({ ...files, onNotice: ({ code }) => notices.push(code) });
      const isOnGpu = onGpu.device instanceof GPUDevice;
      await onGpu.destroy();
      const codes = [];
      const wasm = '/web/pkg/wgvae_bg.wasm';
      const refused = [{ gpu, precision: 'fast' }, { gpu, defaultLimits: true }, { gpu, device: 'webgpu' }, { gpu, wasm }, { gpu, wasm: { webgpu: wasm } }, { device: 'cpu', precision: 'fast' }, { device: 'cpu', kernels: {} }, { device: 'npu' }, { device: 5 }];
      for (const options of refused) {
        const { error } = await lab.outcome(createDecoder(/** @type {any} */ ({ ...files, ...options })));
        codes.push(error?.code);
      }
      return { notices, right, isOnCpu, isOnGpu, codes };
    }, folder());
    const { notices, ...others } = found;
    assert.equal(notices.length, 1);
    assert.match(notices[0], /^cpu: there is WebGPU, but it gives no GPU.*the CPU computes/);
    assert.deepEqual(others, { right: true, isOnCpu: true, isOnGpu: true, codes: [...Array(5).fill('no-adapter'), ...Array(4).fill('input')] });
  });
});
