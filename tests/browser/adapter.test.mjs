// @ts-check
// WebGPU is available, in the page and in a worker. Without it, all other tests would fail for that
// reason alone.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { inBrowsers } from './session.mjs';

/** Advice on what to install. */
const HINT = {
  chromium: 'Chromium needs its own SwiftShader (vk_swiftshader), which comes with it',
  firefox: 'Firefox needs a Vulkan driver, for example Mesa\'s (mesa-vulkan-drivers), and version 141 or newer',
};

const MODEL = 'toy_direct_long';

inBrowsers({ models: [MODEL] }, (session) => {
  for (const place of /** @type {const} */ (['page', 'worker'])) {
    it(`has an adapter and a device in a ${place}`, async () => {
      const found = await session.run(place === 'page' ? inPage : inWorker);
      assert.equal(found, 'device', `no WebGPU in a ${place} of ${session.kind}: ${found}. ${HINT[session.kind]}`);
    });
  }

  it('says what it decodes on', async (t) => {
    const adapter = await session.run(async () => {
      const adapter = await navigator.gpu.requestAdapter();
      return { ...describeAdapter(adapter), f16: adapter?.features.has('shader-f16') };
      /** @param {GPUAdapter | null} adapter */
      function describeAdapter(adapter) {
        const { vendor, architecture, description } = adapter?.info ?? {};
        return { vendor, architecture, description };
      }
    });
    t.diagnostic(`${session.kind}: ${JSON.stringify(adapter)}, ${await session.browser.version()}`);
    // f16 is tested only in browsers that have it.
    if (session.kind === 'firefox') assert.equal(adapter.f16, true, `Firefox has no shader-f16 here. ${HINT.firefox}`);
  });

  it('is told by isSupported, on the page and in a worker', async () => {
    const [f16, ...found] = await session.run(async (client) => {
      const there = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
      const adapter = await navigator.gpu.requestAdapter();
      return [adapter?.features.has('shader-f16'), await lab.wgvae.isSupported(), await there.isSupported()];
    }, '/web/src/worker.js');
    assert.deepEqual(found, Array(2).fill({ webgpu: true, f16, cpu: true }));
  });

  it('is planned for as the device that is opened on it', async () => {
    const [planned, opened] = await session.run(async (folder) => {
      const adapter = /** @type {GPUAdapter} */ (await navigator.gpu.requestAdapter({ powerPreference: 'high-performance' }));
      const size = { width: 512, height: 384, memoryBudget: 64 << 20, output: /** @type {const} */ ('image-data') };
      const planned = await lab.wgvae.planFor({ config: `${folder}config.json`, limits: adapter, ...size });
      const decoder = await lab.open(folder, { memoryBudget: 64 << 20 });
      const opened = decoder.plan(size);
      await decoder.destroy();
      return [planned, opened];
    }, session.model(`${MODEL}/`));
    assert.ok(planned.predicted_peak_bytes <= 64 << 20);
    assert.deepEqual(planned, opened);
  });

  it('says in a browser\'s words that there is no adapter', async () => {
    const { code, message } = await session.run(async (folder) => {
      const { requestAdapter } = GPU.prototype;
      GPU.prototype.requestAdapter = async () => null;
      const { error } = await lab.outcome(lab.open(folder));
      Object.assign(GPU.prototype, { requestAdapter });
      return error;
    }, session.model(`${MODEL}/`));
    assert.equal(code, 'no-adapter');
    assert.match(message, /browser.*acceleration/);
    assert.doesNotMatch(message, /\bapt\b|VK_|install/);
  });

  it('parks by itself only where the vendor makes cards', async () => {
    const found = await session.run(async (folder) => {
      const original = Object.getOwnPropertyDescriptors(GPUAdapterInfo.prototype);
      const parks = async (/** @type {string} */ vendor, /** @type {'on' | 'off'} */ parking) => {
        const stand = (/** @type {string} */ name, /** @type {unknown} */ value) => Object.defineProperty(GPUAdapterInfo.prototype, name, { get: () => value, configurable: true });
        stand('vendor', vendor);
        // The adapter here is a CPU, which always shares the host's memory.
        stand('isFallbackAdapter', false);
        const decoder = await lab.open(folder, parking && { parking });
        Object.defineProperties(GPUAdapterInfo.prototype, original);
        const size = { width: 512, height: 512, output: /** @type {const} */ ('image-data') };
        const { error } = await lab.outcome(() => decoder.plan({ ...size, memoryBudget: 1 }));
        const { host_bytes } = decoder.plan({ ...size, memoryBudget: error?.smallest });
        const { limits } = decoder.info.adapter;
        await decoder.destroy();
        return { unified: limits.unified_memory, parks: host_bytes > 0 };
      };
      const cases = /** @type {[string, any][]} */ ([['apple', undefined], ['', undefined], ['nvidia', undefined], ['samsung', 'on'], ['nvidia', 'off']]);
      const found = [];
      for (const [vendor, parking] of cases) found.push({ vendor, parking: parking ?? 'auto', ...(await parks(vendor, parking)) });
      return found;
    }, session.model(`${MODEL}/`));
    assert.deepEqual(found, [
      { vendor: 'apple', parking: 'auto', unified: true, parks: false },
      { vendor: '', parking: 'auto', unified: true, parks: false },
      { vendor: 'nvidia', parking: 'auto', unified: false, parks: true },
      { vendor: 'samsung', parking: 'on', unified: true, parks: true },
      { vendor: 'nvidia', parking: 'off', unified: false, parks: false },
    ]);
  });
});

async function inPage() {
  if (!navigator.gpu) return 'no navigator.gpu';
  const adapter = await navigator.gpu.requestAdapter();
  if (!adapter) return 'no adapter';
  const device = await adapter.requestDevice();
  device.destroy();
  return 'device';
}

function inWorker() {
  const ask = async () => {
    const adapter = await navigator.gpu?.requestAdapter();
    const device = await adapter?.requestDevice();
    postMessage(device ? 'device' : adapter ? 'no device' : navigator.gpu ? 'no adapter' : 'no navigator.gpu');
  };
  const source = URL.createObjectURL(new Blob([`(${ask})()`], { type: 'text/javascript' }));
  const worker = new Worker(source);
  return new Promise((resolve) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = ({ message }) => resolve(message);
  });
}
