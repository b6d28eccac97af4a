// @ts-check
// Answers of isSupported in Node, which has no WebGPU, and of stand-ins for a GPU and for a browser
// that refuses WebAssembly. It rejects nothing.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { isSupported } from '../../web/src/support.js';
import * as worker from '../../web/src/worker.js';

/** @param {object | null} adapter @returns {any} */
const gpuWith = (adapter) => ({ requestAdapter: async () => adapter });

describe('isSupported', () => {
  it('tells the CPU, and why there is no WebGPU', async () => {
    const { reason, ...found } = await isSupported();
    assert.deepEqual(found, { webgpu: false, f16: false, cpu: true });
    assert.match(`${reason}`, /^there is no WebGPU .*the package webgpu/);
  });

  it('tells the abilities of the adapter of a caller\'s GPU', async () => {
    for (const [features, f16] of /** @type {const} */ ([[['shader-f16'], true], [[], false]])) {
      assert.deepEqual(await isSupported({ gpu: gpuWith({ features: new Set(features) }) }), { webgpu: true, f16, cpu: true });
    }
    const { reason, ...none } = await isSupported({ gpu: gpuWith(null) });
    assert.deepEqual(none, { webgpu: false, f16: false, cpu: true });
    assert.match(`${reason}`, /gives no GPU/);
  });

  it('turns every error into a reason', async () => {
    const broken = /** @type {any} */ ({ requestAdapter: async () => { throw new Error('it is broken'); } });
    assert.equal((await isSupported({ gpu: broken })).reason, 'it is broken');
    for (const options of /** @type {any[]} */ ([null, 7, { gpu: 7 }])) assert.equal((await isSupported(options)).webgpu, false);
    // Node has no Worker of the web.
    const { reason, ...there } = await worker.isSupported();
    assert.deepEqual(there, { webgpu: false, f16: false, cpu: false });
    assert.match(`${reason}`, /^worker: expected a runtime that has workers/);
  });

  it('tells that a service worker cannot compute on the CPU', async (t) => {
    t.after(() => Reflect.deleteProperty(globalThis, 'ServiceWorkerGlobalScope'));
    Object.assign(globalThis, { ServiceWorkerGlobalScope: class {} });
    assert.equal((await isSupported()).cpu, false);
  });

  it('tells that WebAssembly, or SIMD, is refused', async (t) => {
    const { Module } = WebAssembly;
    t.after(() => { WebAssembly.Module = Module; });
    const refuse = (/** @type {(bytes: Uint8Array) => boolean} */ isRefused) => {
      WebAssembly.Module = /** @type {any} */ (class {
        /** @param {Uint8Array} bytes */
        constructor(bytes) {
          if (isRefused(bytes)) throw new WebAssembly.CompileError('not here');
        }
      });
    };
    refuse(() => true);
    assert.deepEqual(await isSupported(), { webgpu: false, f16: false, cpu: false, reason: 'WebAssembly cannot run: not here' });
    refuse((bytes) => bytes.length > 8);
    assert.equal((await isSupported()).cpu, false);
  });
});
