// @ts-check
// Devices: lost, lost again, a caller's, small ones; and memory as predicted.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { inBrowsers } from './session.mjs';

/** @typedef {import('../../web/src/index.js').Report} Report */

/** A model that takes several submissions: 320 rows of 192 pixels. */
const MODEL = 'toy_direct_long';

inBrowsers({ models: [MODEL] }, (session) => {
  const folder = () => session.model(`${MODEL}/`);

  it('recovers from a lost device once for each decode', async () => {
    const found = await session.run(async (folder) => {
      const latents = `${folder}latents.safetensors`;
      /** @type {string[]} */
      const notices = [];
      const decoder = await lab.open(folder, { onNotice: ({ code }) => notices.push(code) });
      // Decodes, and destroys the device `losses` times meanwhile.
      const decode = async (/** @type {number} */ losses) => {
        notices.length = 0;
        /** @type {GPUDevice | undefined} */
        let destroyed;
        const onProgress = (/** @type {{ phase: string, done: number }} */ { phase, done }) => {
          if (losses === 0 || phase !== 'decode' || done === 0 || decoder.device === destroyed) return;
          losses -= 1;
          destroyed = decoder.device;
          decoder.device.destroy();
        };
        const { value, error } = await lab.outcome(decoder.decode(latents, { output: 'image-data', onProgress }));
        const isNew = destroyed !== undefined && decoder.device !== destroyed;
        return { code: error?.code, right: value && (await lab.isRight(folder, value)), isNew, notices: [...notices] };
      };
      const [once, twice] = [await decode(1), await decode(2)];
      const afterwards = await decode(0);
      await decoder.destroy();
      return { once, twice, afterwards, left: lab.gpu.liveBytes(), devices: lab.gpu.liveDevices() };
    }, folder());
    const notices = ['device-recovered'];
    assert.deepEqual(found, {
      once: { right: true, isNew: true, notices },
      twice: { code: 'device-lost', isNew: false, notices },
      // A loss before the decode began counts as well.
      afterwards: { right: true, isNew: false, notices },
      left: 0,
      devices: 0,
    });
  });

  it('says that a browser is too old for the module', async () => {
    const found = await session.run(async (folder) => {
      const info = /** @type {PropertyDescriptor} */ (Object.getOwnPropertyDescriptor(GPUAdapter.prototype, 'info'));
      Reflect.deleteProperty(GPUAdapter.prototype, 'info');
      const { error } = await lab.outcome(lab.open(folder));
      Object.defineProperty(GPUAdapter.prototype, 'info', info);
      return { code: error?.code, isTyped: error?.isTyped };
    }, folder());
    assert.deepEqual(found, { code: 'no-webgpu', isTyped: true });
  });

  it('asks for as many kernels at once as the browser has threads, and never for one that it has to have at once', async () => {
    const found = await session.run(async (folder) => {
      const { createComputePipeline, createComputePipelineAsync } = GPUDevice.prototype;
      let [asked, pending, atOnce, waited] = [0, 0, 0, 0];
      Object.assign(GPUDevice.prototype, {
        createComputePipelineAsync: /** @this {GPUDevice} */ function (/** @type {GPUComputePipelineDescriptor} */ descriptor) {
          [asked, pending] = [asked + 1, pending + 1];
          atOnce = Math.max(atOnce, pending);
          return createComputePipelineAsync.call(this, descriptor).finally(() => (pending -= 1));
        },
        createComputePipeline: /** @this {GPUDevice} */ function (/** @type {GPUComputePipelineDescriptor} */ descriptor) {
          waited += 1;
          return createComputePipeline.call(this, descriptor);
        },
      });
      const decoder = await lab.open(folder);
      await decoder.decode(`${folder}latents.safetensors`, { output: 'image-data' });
      await decoder.destroy();
      Object.assign(GPUDevice.prototype, { createComputePipeline, createComputePipelineAsync });
      return { asked, atOnce, waited, threads: navigator.hardwareConcurrency };
    }, folder());
    assert.ok(found.asked > 5, `${found.asked} kernels`);
    assert.equal(found.atOnce, Math.min(found.asked, Math.max(2, found.threads)));
    assert.equal(found.waited, 0);
  });

  it('says that the device failed inside while it compiled, and works again afterwards', async () => {
    const found = await session.run(async (folder) => {
      const { createComputePipeline, createComputePipelineAsync, popErrorScope } = GPUDevice.prototype;
      let [isArmed, isCompiling] = [false, false];
      // Once in each way in which a browser reports it.
      Object.assign(GPUDevice.prototype, {
        createComputePipelineAsync: /** @this {GPUDevice} */ function (/** @type {GPUComputePipelineDescriptor} */ descriptor) {
          if (!isArmed) return createComputePipelineAsync.call(this, descriptor);
          isArmed = false;
          return Promise.reject(new GPUPipelineError('the compiler gave up', { reason: 'internal' }));
        },
        createComputePipeline: /** @this {GPUDevice} */ function (/** @type {GPUComputePipelineDescriptor} */ descriptor) {
          isCompiling = isArmed;
          return createComputePipeline.call(this, descriptor);
        },
        popErrorScope: /** @this {GPUDevice} */ async function () {
          const isOurs = isCompiling;
          if (isOurs) [isArmed, isCompiling] = [false, false];
          const error = await popErrorScope.call(this);
          return isOurs ? new GPUInternalError('the compiler gave up') : error;
        },
      });
      const latents = `${folder}latents.safetensors`;
      /** @type {string[]} */
      const notices = [];
      const open = () => lab.open(folder, { onNotice: ({ code }) => notices.push(code) });
      isArmed = true;
      const loaded = await lab.outcome(open);
      const decoder = loaded.value ?? (await open());
      isArmed = true;
      const decoded = await lab.outcome(decoder.decode(latents, { output: 'image-data' }));
      isArmed = false;
      const image = await decoder.decode(latents, { output: 'image-data' });
      await decoder.destroy();
      Object.assign(GPUDevice.prototype, { createComputePipeline, createComputePipelineAsync, popErrorScope });
      // Either of the two may compile.
      const errors = [loaded.error, decoded.error].filter((error) => error !== undefined);
      const failures = errors.map(({ code, isTyped, message }) => ({ code, isTyped, says: message.includes('the compiler gave up') }));
      return { failures, notices, right: await lab.isRight(folder, image), left: lab.gpu.liveBytes(), devices: lab.gpu.liveDevices() };
    }, folder());
    assert.ok(found.failures.length > 0, 'something was compiled');
    for (const failure of found.failures) assert.deepEqual(failure, { code: 'device-failed', isTyped: true, says: true });
    assert.deepEqual({ ...found, failures: [] }, { failures: [], notices: [], right: true, left: 0, devices: 0 });
  });

  it('says that the device of a caller is lost, and leaves it at that', async () => {
    const found = await session.run(async (folder) => {
      const adapter = await navigator.gpu.requestAdapter();
      const device = await adapter?.requestDevice();
      /** @type {string[]} */
      const notices = [];
      const decoder = await lab.open(folder, { device, onNotice: ({ code }) => notices.push(code) });
      const onProgress = (/** @type {{ done: number }} */ { done }) => done > 0 && device?.destroy();
      const { error } = await lab.outcome(decoder.decode(`${folder}latents.safetensors`, { onProgress }));
      await decoder.destroy();
      return { code: error?.code, isTyped: error?.isTyped, notices, devices: lab.gpu.liveDevices() };
    }, folder());
    assert.deepEqual(found, { code: 'device-lost', isTyped: true, notices: [], devices: 0 });
  });

  it('refuses the device of a caller whose page has frozen what taking it over needs', async () => {
    // A separate page, because nothing unfreezes it.
    const page = await session.open('/tests/blank.html');
    await page.waitForFunction(() => 'lab' in globalThis);
    const found = await session.run(async (folder) => {
      const adapter = await navigator.gpu.requestAdapter();
      const device = await adapter?.requestDevice();
      Object.freeze(GPUAdapter.prototype);
      const { error } = await lab.outcome(lab.open(folder, { device }));
      const devices = lab.gpu.liveDevices();
      const own = await lab.outcome(lab.open(folder).then((decoder) => decoder.destroy()));
      device?.destroy();
      return { code: error?.code, says: /frozen/.test(error?.message), devices, own: own.error?.code };
    }, folder());
    await session.closePage();
    assert.deepEqual(found, { code: 'device-refused', says: true, devices: 1 });
  });

  it('says that the device is lost while a model is loaded', async () => {
    const found = await session.run(async (folder) => {
      const adapter = await navigator.gpu.requestAdapter();
      const device = await adapter?.requestDevice();
      // Kernels are being compiled, too.
      const onProgress = (/** @type {{ step: string, done: number }} */ { step, done }) => step === 'weights' && done > 0 && device?.destroy();
      const { error } = await lab.outcome(lab.open(folder, { device, onProgress }));
      return { code: error?.code, isTyped: error?.isTyped, left: lab.gpu.liveBytes(), devices: lab.gpu.liveDevices() };
    }, folder());
    assert.deepEqual(found, { code: 'device-lost', isTyped: true, left: 0, devices: 0 });
  });

  it('decodes latents that are on the device of a caller, and leaves both alone', async () => {
    const found = await session.run(async (folder) => {
      const adapter = await navigator.gpu.requestAdapter();
      const device = await adapter?.requestDevice();
      if (!device) throw new Error('no device');
      const shape = [1, 4, 40, 24];
      const file = new Uint8Array(await (await fetch(`${folder}latents.safetensors`)).arrayBuffer());
      const count = shape.reduce((product, side) => product * side, 1);
      const data = new Float32Array(file.slice(file.length - 4 * count).buffer);
      // The latents begin at an offset.
      const offset = 256;
      const buffer = device.createBuffer({ size: offset + data.byteLength, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST });
      device.queue.writeBuffer(buffer, offset, data);
      const decoder = await lab.open(folder, { device });
      const held = lab.gpu.liveBytes() > buffer.size;
      const wanted = await decoder.decode({ data, shape }, { output: 'raw' });
      const found = await decoder.decode({ buffer, shape, offset }, { output: 'raw' });
      const image = await decoder.decode({ buffer, shape, offset }, { output: 'image-data' });
      const apart = found.data.reduce((most, value, index) => Math.max(most, Math.abs(value - wanted.data[index])), 0);
      const own = decoder.device === device;
      await decoder.destroy();
      device.pushErrorScope('validation');
      device.queue.writeBuffer(buffer, 0, new Float32Array(1));
      const error = await device.popErrorScope();
      const left = lab.gpu.liveBytes() - buffer.size;
      device.destroy();
      return { apart, own, usable: error === null, held, right: await lab.isRight(folder, image), left };
    }, folder());
    assert.ok(found.apart <= 1e-5, `${found.apart} from the latents of the file`);
    assert.deepEqual({ ...found, apart: 0 }, { apart: 0, own: true, usable: true, held: true, right: true, left: 0 });
  });

  it('decodes the same on a device of default limits', async () => {
    const found = await session.run(async (folder) => {
      const decoder = await lab.open(folder, { defaultLimits: true });
      const { maxStorageBufferBindingSize, maxBufferSize } = decoder.device.limits;
      const image = await decoder.decode(`${folder}latents.safetensors`, { output: 'image-data' });
      await decoder.destroy();
      return { limits: [maxStorageBufferBindingSize, maxBufferSize], right: await lab.isRight(folder, image), left: lab.gpu.liveBytes() };
    }, folder());
    assert.deepEqual(found, { limits: [128 << 20, 256 << 20], right: true, left: 0 });
  });

  it('takes the memory that was predicted, to the byte, under a budget, too', async (t) => {
    const found = await session.run(async (folder) => {
      const latents = `${folder}latents.safetensors`;
      const size = { width: 192, height: 320 };
      const adapter = await navigator.gpu.requestAdapter();
      const device = await adapter?.requestDevice();
      const measure = async (/** @type {number | undefined} */ memoryBudget) => {
        const before = lab.gpu.liveBytes();
        const decoder = await lab.open(folder, { memoryBudget, device });
        const plan = decoder.plan({ ...size, output: 'image-data' });
        lab.gpu.takePeak();
        const image = await decoder.decode(latents, { output: 'image-data' });
        const counted = lab.gpu.takePeak() - before;
        const { predicted_peak_bytes: predicted, measured_peak_bytes: measured } = /** @type {Report} */ (decoder.report);
        await decoder.destroy();
        return { image, planned: plan.predicted_peak_bytes, predicted, measured, counted };
      };
      const { image, ...whole } = await measure(undefined);
      const { error } = await lab.outcome(() => measure(whole.planned >> 4));
      const rows = [{ ...whole, budget: Number.MAX_SAFE_INTEGER, levels: 0 }];
      for (const budget of [Math.round(whole.planned * 0.7), error?.smallest ?? 0]) {
        const { image: found, ...row } = await measure(budget);
        rows.push({ ...row, budget, levels: lab.levelsApart(image, found) });
      }
      device?.destroy();
      return { rows, error, left: lab.gpu.liveBytes() };
    }, folder());
    t.diagnostic(JSON.stringify(found.rows));
    assert.equal(found.error?.code, 'budget');
    for (const { planned, predicted, measured, counted, budget, levels } of found.rows) {
      assert.equal(measured, predicted, 'the ledger and the report\'s prediction');
      assert.equal(predicted, planned, 'the report\'s prediction and the plan');
      assert.equal(counted, measured, 'what the browser was asked for and the ledger');
      assert.ok(measured <= budget, `${measured} of ${budget}`);
      assert.equal(levels, 0, 'a budget changes nothing');
    }
    assert.equal(found.left, 0);
  });

  it('measures each decode by itself', async () => {
    const found = await session.run(async (folder) => {
      const decoder = await lab.shared(folder);
      const reports = [];
      for (const side of [24, 8, 24]) {
        await decoder.decode({ data: new Float32Array(4 * side * side), shape: [1, 4, side, side] }, { output: 'image-data' });
        const { predicted_peak_bytes: predicted, measured_peak_bytes: measured, compiled } = /** @type {Report} */ (decoder.report);
        reports.push({ predicted, measured, compiled });
      }
      return reports;
    }, folder());
    for (const { predicted, measured } of found) assert.equal(measured, predicted);
    assert.ok(found[1].measured < found[0].measured, 'a smaller picture after a larger one takes less');
    assert.equal(found[2].compiled, 0, 'the third decode has all its kernels');
  });
});
