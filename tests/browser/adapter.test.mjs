// @ts-check
// WebGPU is there, in the page and in a worker. Where it is not, everything else would fail for that reason alone.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { inBrowsers } from './session.mjs';

/** What has to be installed. */
const HINT = {
  chromium: 'Chromium needs its own SwiftShader (vk_swiftshader), which comes with it',
  firefox: 'Firefox needs a Vulkan driver, for example Mesa\'s (mesa-vulkan-drivers), and version 141 or newer',
};

inBrowsers({}, (session) => {
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
    // The numbers of f16 are tested where the browser has it.
    if (session.kind === 'firefox') assert.equal(adapter.f16, true, `Firefox has no shader-f16 here. ${HINT.firefox}`);
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
