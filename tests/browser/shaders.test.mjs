// @ts-check
// Each browser takes every shader that a plan can use: Tint in Chromium, naga in Firefox. A short
// run makes a module of each, which is where they check it, and one pipeline of each file.

import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';

import { hasF16 } from './browsers.mjs';
import { runPlainly } from './native.mjs';
import { inBrowsers, ROOT } from './session.mjs';

/** Shaders for matrix units, which browsers lack. */
const NATIVE = ['matmul_matrix'];

/** The program that prints the shaders. `cargo xtask test` and `test-browser` build it. */
const KERNEL_TEXTS = join(ROOT, 'target', 'release', 'examples', 'kernel_texts');

inBrowsers({}, (session) => {
  for (const storage of hasF16(session.kind) ? ['f32', 'packed_f16', 'f16', 'fast_f16'] : ['f32', 'packed_f16']) {
    it(`compiles every shader in ${storage}`, async (t) => {
      const quads = await session.run(async () => {
        const adapter = await navigator.gpu.requestAdapter();
        return Boolean(adapter?.info.isFallbackAdapter && adapter.features.has('subgroups'));
      });
      const left = (/** @type {string} */ file) => NATIVE.includes(file) || (file === 'matmul_quad' && !quads);
      /** @type {{ file: string, text: string, parameterBytes: number, readOnly: boolean[] }[]} */
      const kernels = JSON.parse(await runPlainly(KERNEL_TEXTS, [storage])).filter((/** @type {{ file: string }} */ kernel) => !left(kernel.file));
      const { problems, made } = await session.run(async (kernels, full) => {
        const adapter = await navigator.gpu.requestAdapter();
        if (!adapter) throw new Error('no adapter');
        const { maxComputeInvocationsPerWorkgroup, maxComputeWorkgroupSizeX, maxComputeWorkgroupStorageSize } = adapter.limits;
        const requiredLimits = { maxComputeInvocationsPerWorkgroup, maxComputeWorkgroupSizeX, maxComputeWorkgroupStorageSize };
        /** @type {GPUFeatureName[]} */
        const requiredFeatures = ['shader-f16', 'subgroups'];
        const device = await adapter.requestDevice({ requiredLimits, requiredFeatures: requiredFeatures.filter((feature) => adapter.features.has(feature)) });
        /** @type {string[]} */
        const problems = [];
        /** @type {Promise<unknown>[]} */
        const checks = [];
        const files = new Set();
        for (const { file, text, parameterBytes, readOnly } of kernels) {
          const module = device.createShaderModule({ label: file, code: text });
          const check = module.getCompilationInfo().then(({ messages }) => {
            problems.push(...messages.filter(({ type }) => type === 'error').map(({ message }) => `${file}: ${message}`));
          });
          checks.push(check);
          if (!full && files.has(file)) continue;
          files.add(file);
          const visibility = GPUShaderStage.COMPUTE;
          /** @type {GPUBindGroupLayoutEntry[]} */
          const entries = [{ binding: 0, visibility, buffer: { type: 'uniform', hasDynamicOffset: true, minBindingSize: parameterBytes } }];
          readOnly.forEach((isRead, index) => entries.push({ binding: index + 1, visibility, buffer: { type: isRead ? 'read-only-storage' : 'storage' } }));
          const layout = device.createPipelineLayout({ bindGroupLayouts: [device.createBindGroupLayout({ entries })] });
          const pipeline = device.createComputePipelineAsync({ label: file, layout, compute: { module, entryPoint: 'main' } });
          checks.push(pipeline.catch((error) => problems.push(`${file}: ${error.message}`)));
        }
        await Promise.all(checks);
        device.destroy();
        return { problems, made: full ? kernels.length : files.size };
      }, kernels, Boolean(process.env.WGVAE_FULL));
      assert.deepEqual(problems, [], 'shaders that the browser refuses');
      const names = new Set(kernels.map(({ file }) => file));
      const missing = (await shaders()).filter((shader) => !left(shader) && !names.has(shader));
      assert.deepEqual(missing, [], 'shaders that were not compiled');
      t.diagnostic(`${kernels.length} shaders, ${made} pipelines: ${[...names]}`);
    });
  }
});

/** Lists the names of the files in shaders/. */
async function shaders() {
  const files = await readdir(join(ROOT, 'shaders'));
  return files.filter((name) => name.endsWith('.wgsl')).map((name) => name.slice(0, -'.wgsl'.length));
}
