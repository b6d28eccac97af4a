// @ts-check
// Latents that are read for their shape and kept for a decode, in this thread and by wgvae/worker.
// Both sides of the worker run here, so that the module's objects can be counted.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { fixture, latentsFile, modelFile } from './fixtures.mjs';
import { startServer } from './server.mjs';
import { DIST } from './session.mjs';

describe('the shape of latents', () => {
  /** @type {Awaited<ReturnType<typeof startServer>>} */
  let server;
  const { port1, port2 } = new MessageChannel();
  /** A model here, and the same model behind messages. @type {Record<string, any>} */
  const models = {};
  /** @type {Uint8Array<ArrayBuffer>} */
  let file;
  /** Latents that were freed. */
  let freed = 0;
  before(async () => {
    Object.assign(globalThis, { postMessage: port2.postMessage.bind(port2), addEventListener: port2.addEventListener.bind(port2) });
    const [here, worker, { startWasm }] = await Promise.all(['index', 'worker', 'wasm', 'worker-host'].map((name) => import(`file://${DIST}/package/src/${name}.js`)));
    for (const port of [port1, port2]) port.start();
    const { config, latents } = await fixture('toy_direct');
    file = latentsFile(latents);
    server = await startServer({ root: DIST });
    const options = { model: modelFile(config), config, device: 'cpu', threads: 1 };
    models.here = await here.createDecoder(options);
    models.worker = await worker.createDecoder({ ...options, worker: port1 });
    const { prototype } = (await startWasm(undefined, 'cpu')).Latents;
    const { free } = prototype;
    prototype.free = function () {
      freed += 1;
      return free.apply(this);
    };
  });
  after(async () => {
    for (const model of Object.values(models)) await model.destroy();
    port1.close();
    await server.close();
  });

  for (const place of ['here', 'worker']) {
    it(`keeps what the next decode can use, and nothing else: ${place}`, async () => {
      const model = models[place];
      const blob = new Blob([file]);
      const url = server.route(`/${place}.safetensors`, { bytes: file, type: 'application/octet-stream' });
      for (const [input, kept] of /** @type {[Blob | string, number][]} */ ([[blob, place === 'here' ? 1 : 0], [url, 1]])) {
        freed = 0;
        const [, , height, width] = await model.shapeOf(input);
        assert.equal(freed, 1 - kept, 'after the shape');
        const { shape } = await model.decode(input, { output: 'raw' });
        assert.deepEqual(shape.slice(1), [model.info.decoded_pixels_per_latent * height, model.info.decoded_pixels_per_latent * width]);
        assert.equal(freed, 2 - kept, 'after the decode');
      }
      assert.equal(server.seen(`/${place}.safetensors`).length, 1, 'an address is read once');
    });
  }
});
