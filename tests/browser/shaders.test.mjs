// @ts-check
// Each browser takes every shader that a plan can use: Tint in Chromium, naga in Firefox. A short
// run makes a module of each, which is where they check it, and one pipeline of each file.

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';

import { hasF16 } from './browsers.mjs';
import { inBrowsers, ROOT } from './session.mjs';

/** Shaders for matrix units, which browsers lack: the browser's module does not contain them. */
const NATIVE = ['matmul_matrix'];

inBrowsers({}, (session) => {
  for (const storage of hasF16(session.kind) ? ['f32', 'packed_f16', 'f16', 'fast_f16'] : ['f32', 'packed_f16']) {
    it(`compiles every shader in ${storage}`, async (t) => {
      const { names, made } = await session.run(async (storage, full) => {
        const wasm = await lab.startWasm();
        const gpu = await wasm.Device.request(navigator.gpu, false, false);
        const { createComputePipelineAsync } = GPUDevice.prototype;
        /** @type {Map<string, Promise<GPUComputePipeline>>} */
        const pipelines = new Map();
        if (!full) {
          GPUDevice.prototype.createComputePipelineAsync = function (descriptor) {
            const name = descriptor.label ?? '';
            const pipeline = pipelines.get(name) ?? createComputePipelineAsync.call(this, descriptor);
            pipelines.set(name, pipeline);
            return pipeline;
          };
        }
        try {
          const names = await wasm.compileAll(gpu, storage);
          return { names, made: full ? names.length : pipelines.size };
        } finally {
          Object.assign(GPUDevice.prototype, { createComputePipelineAsync });
          gpu.lose();
          gpu.free();
        }
      }, storage, Boolean(process.env.WGVAE_FULL));
      const quads = await session.run(async () => {
        const adapter = await navigator.gpu.requestAdapter();
        return adapter?.info.isFallbackAdapter && adapter.features.has('subgroups');
      });
      const expected = (await shaders()).filter((shader) => !NATIVE.includes(shader) && (quads || shader !== 'matmul_quad'));
      const missing = expected.filter((shader) => !names.includes(shader));
      assert.deepEqual(missing, [], 'shaders that were not compiled');
      t.diagnostic(`${names.length} shaders, ${made} pipelines: ${[...new Set(names)]}`);
    });
  }
});

/** Lists the names of the files in shaders/. */
async function shaders() {
  const files = await readdir(join(ROOT, 'shaders'));
  return files.filter((name) => name.endsWith('.wgsl')).map((name) => name.slice(0, -'.wgsl'.length));
}
