// @ts-check
// Each browser takes every shader that a plan can use: Tint in Chromium, naga in Firefox. A short
// run makes no pipeline of a shader that differs from an earlier one in numbers alone.

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
        // Modules are made, and so checked, for all.
        const { createShaderModule, createComputePipelineAsync } = GPUDevice.prototype;
        /** @type {WeakMap<GPUShaderModule, string>} */
        const texts = new WeakMap();
        GPUDevice.prototype.createShaderModule = function (descriptor) {
          const module = createShaderModule.call(this, descriptor);
          texts.set(module, descriptor.code);
          return module;
        };
        /** @type {Map<string, Promise<GPUComputePipeline>>} */
        const pipelines = new Map();
        GPUDevice.prototype.createComputePipelineAsync = function (descriptor) {
          const text = texts.get(descriptor.compute.module) ?? '';
          const kind = full ? text : text.replace(/\d+/g, 'N');
          const pipeline = pipelines.get(kind) ?? createComputePipelineAsync.call(this, descriptor);
          pipelines.set(kind, pipeline);
          return pipeline;
        };
        try {
          return { names: await wasm.compileAll(gpu, storage), made: pipelines.size };
        } finally {
          Object.assign(GPUDevice.prototype, { createShaderModule, createComputePipelineAsync });
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
