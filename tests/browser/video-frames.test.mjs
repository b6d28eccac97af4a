// @ts-check
// Clips as frames of video, here and through a worker: their pixels, their times, and who closes
// them. On the CPU, whose kernels need no compiling.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { inBrowsers } from './session.mjs';

const MODEL = 'clip_wan';
const CLIENT = '/web/src/worker.js';

inBrowsers({ clips: [MODEL] }, (session) => {
  it('have the pixels and the times, and are read as a stream', async () => {
    const found = await session.run(async (folder, client) => {
      const options = { model: `${folder}both.safetensors`, config: `${folder}config.json`, device: /** @type {const} */ ('cpu'), clips: true };
      const models = { here: await lab.wgvae.createVae(options), worker: await /** @type {typeof import('../../web/src/worker.js')} */ (await import(client)).createVae(options) };
      const latents = `${folder}latents.safetensors`;
      /** @type {ImageData[]} */
      const wanted = [];
      for await (const image of models.here.clip(latents, { output: 'image-data' })) wanted.push(image);
      /** @type {Record<string, unknown>} */
      const found = {};
      for (const [where, vae] of Object.entries(models)) {
        const times = [];
        let apart = 0;
        let [classes, kinds] = ['', ''];
        const reader = vae.clipStream(latents, { output: 'video-frame', fps: 30 }).getReader();
        for (let next = await reader.read(); !next.done; next = await reader.read()) {
          const frame = next.value;
          classes = frame.constructor.name;
          kinds = `${frame.format} ${frame.codedWidth}x${frame.codedHeight}`;
          apart = Math.max(apart, lab.levelsApart(lab.pixels(/** @type {any} */ (await createImageBitmap(frame))), wanted[times.length]));
          times.push([frame.timestamp, frame.duration]);
          frame.close();
        }
        const first = await vae.clip(latents, { output: 'video-frame' }).next();
        found[where] = { times, apart, classes, kinds, duration: first.value?.duration };
        first.value?.close();
      }
      await Promise.all(Object.values(models).map((vae) => vae.destroy()));
      return { ...found, count: wanted.length };
    }, session.model(`${MODEL}/`), CLIENT);
    const times = Array.from({ length: found.count }, (_, index) => [index, index + 1].map((frames) => Math.round((frames * 1e6) / 30))).map(([begin, end]) => [begin, end - begin]);
    assert.ok(times.length >= 5);
    const wanted = { times, apart: 0, classes: 'VideoFrame', kinds: 'RGBX 40x24', duration: 41_667 };
    assert.deepEqual(found, { here: wanted, worker: wanted, count: times.length });
  });

  it('are encoded from a stream, which closes them, and from a generator, which does not', async () => {
    const found = await session.run(async (folder, client) => {
      const options = { model: `${folder}both.safetensors`, config: `${folder}config.json`, device: /** @type {const} */ ('cpu'), clips: true };
      const models = { here: await lab.wgvae.createVae(options), worker: await /** @type {typeof import('../../web/src/worker.js')} */ (await import(client)).createVae(options) };
      const images = Array.from({ length: 5 }, (_, index) => lab.noise(16, 16, 255, index + 1));
      const video = () => images.map(({ data, width, height }, timestamp) => new VideoFrame(data, { format: 'RGBX', codedWidth: width, codedHeight: height, timestamp }));
      const wanted = (await lab.encodeClip(models.here, images, { output: 'mode' })).parts;
      /** @type {Record<string, unknown>} */
      const found = {};
      for (const [where, vae] of Object.entries(models)) {
        const [streamed, generated] = [video(), video()];
        const waiting = [...streamed];
        const stream = new ReadableStream({
          pull(controller) {
            const next = waiting.shift();
            if (next) controller.enqueue(next);
            else controller.close();
          },
        }, { highWaterMark: 0 });
        const apart = [];
        for (const frames of [stream, generated.values()]) {
          let index = 0;
          for await (const { data } of vae.encodeClip(/** @type {any} */ (frames))) {
            const other = wanted[index].data;
            apart.push(data.reduce((most, value, at) => Math.max(most, Math.abs(value - other[at])), 0));
            index += 1;
          }
        }
        // A closed frame has no format.
        found[where] = { parts: apart.length, apart: Math.max(...apart), open: [streamed, generated].map((frames) => frames.filter(({ format }) => format !== null).length) };
        for (const frame of generated) frame.close();
      }
      await Promise.all(Object.values(models).map((vae) => vae.destroy()));
      return found;
    }, session.model(`${MODEL}/`), CLIENT);
    const wanted = { parts: 4, apart: 0, open: [0, 5] };
    assert.deepEqual(found, { here: wanted, worker: wanted });
  });

  it('end with the stream that is cancelled, in a worker, and the next clip is right', async () => {
    const found = await session.run(async (folder, client) => {
      const { createDecoder } = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
      const decoder = await createDecoder({ model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json`, device: 'cpu', clips: true });
      const latents = `${folder}latents.safetensors`;
      const frames = [];
      for await (const { shape } of decoder.clip(latents, { output: 'raw' })) frames.push(shape.length === 3);
      const { current: held } = await decoder.ledger();
      for (const when of ['between', 'within']) {
        const reader = decoder.clipStream(latents, { output: 'video-frame' }).getReader();
        const { value } = await reader.read();
        value?.close();
        const reading = when === 'within' ? reader.read() : undefined;
        await reader.cancel();
        frames.push((await reading)?.done ?? true);
      }
      const isFree = await lab.until(async () => (await decoder.ledger()).current <= held);
      const reader = decoder.clipStream(latents, { output: 'video-frame' }).getReader();
      const { value } = await reader.read();
      const size = `${value?.codedWidth}x${value?.codedHeight}`;
      value?.close();
      await reader.cancel();
      await decoder.destroy();
      return { frames, isFree, size };
    }, session.model(`${MODEL}/`), CLIENT);
    assert.deepEqual(found, { frames: Array(found.frames.length).fill(true), isFree: true, size: '40x24' });
  });
});
