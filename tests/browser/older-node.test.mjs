// @ts-check
// Browsers that have WebAssembly's SIMD and lack newer functions: Safari before 17.4, Chrome before
// 116 and Firefox before 124 have no AbortSignal.any, and slightly older ones no URL.canParse.

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { after, before, describe, it } from 'node:test';

import { fixture, modelFile } from './fixtures.mjs';
import { startServer } from './server.mjs';
import { DIST } from './session.mjs';

describe('an older browser', () => {
  /** @type {typeof import('../../web/src/index.js')} */
  let wgvae;
  /** @type {Awaited<ReturnType<typeof startServer>>} */
  let server;
  /** @type {{ model: string, config: string, device: 'cpu', threads: number }} */
  let options;
  /** @type {{ data: Float32Array, shape: number[] }} */
  let latents;
  before(async () => {
    Reflect.deleteProperty(AbortSignal, 'any');
    Reflect.deleteProperty(URL, 'canParse');
    wgvae = await import(`file://${DIST}/package/src/index.js`);
    server = await startServer({ root: DIST });
    const { config, latents: { data, shape } } = await fixture('toy_direct');
    latents = { data, shape };
    options = { model: server.route('/model.safetensors', { bytes: modelFile(config), type: 'application/octet-stream' }), config, device: 'cpu', threads: 1 };
  });
  after(() => server.close());

  it('opens models by their address, with and without a signal', async () => {
    const { signal } = new AbortController();
    for (const more of [{}, { signal }]) {
      assert.equal((await wgvae.inspect({ model: options.model, config: options.config, ...more })).decode.possible, true);
      const decoder = await wgvae.createDecoder({ ...options, ...more });
      const raw = { output: /** @type {const} */ ('raw'), ...more };
      assert.ok((await decoder.decode(latents, raw)).data.length > 0);
      assert.ok((await decoder.decode(latents, { ...raw, replace: true })).data.length > 0);
      await decoder.destroy();
    }
    assert.equal(getEventListeners(signal, 'abort').length <= 1, true, 'one listener for all calls');
  });

  it('aborts with the first of two signals, for its reason', async () => {
    const { either } = await import(`file://${DIST}/package/src/queue.js`);
    for (const [first, second] of [[0, 1], [1, 0]]) {
      const controllers = [new AbortController(), new AbortController()];
      const [a, b] = controllers.map(({ signal }) => signal);
      const both = either(a, b);
      assert.equal(both.aborted, false);
      controllers[first].abort('first');
      controllers[second].abort('second');
      assert.equal(both.reason, 'first');
      for (const signal of [a, b]) assert.equal(getEventListeners(signal, 'abort').length, 0);
      assert.equal(either(AbortSignal.abort('before'), controllers[0].signal).reason, 'before');
      assert.equal(either(new AbortController().signal, AbortSignal.abort('before')).reason, 'before');
    }
    const reason = new Error('enough');
    await assert.rejects(wgvae.createDecoder({ ...options, signal: AbortSignal.abort(reason) }), reason);
    const controller = new AbortController();
    const onProgress = () => controller.abort(reason);
    await assert.rejects(wgvae.createDecoder({ ...options, signal: controller.signal, onProgress }), reason);
  });

  it('gives advice on an address of another origin that does not answer', async (t) => {
    Object.assign(globalThis, { location: new URL(server.url('/page/')) });
    t.after(() => Reflect.deleteProperty(globalThis, 'location'));
    const { corsAdvice } = await import(`file://${DIST}/package/src/answers.js`);
    assert.match(corsAdvice('https://other.example/a.safetensors'), /CORS/);
    for (const own of ['a.safetensors', server.url('/a'), 'https://:0:0/']) assert.equal(corsAdvice(own), '', own);
  });
});
