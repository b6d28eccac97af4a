// @ts-check
// Changes after a call have no effect: the call uses latents and pictures as they were, queued or
// not, on the page and in a worker.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { inBrowsers } from './session.mjs';

const [MODEL, CLIPS] = ['toy_direct', 'clip_wan'];

/** The two clients of the package. */
const CLIENTS = { 'on the page': '/web/src/index.js', 'in a worker': '/web/src/worker.js' };

inBrowsers({ models: [MODEL], clips: [CLIPS], device: 'cpu' }, (session) => {
  for (const [where, client] of Object.entries(CLIENTS)) {
    it(`decodes the latents of the call ${where}`, async () => {
      const found = await session.run(async (folder, client) => {
        const { createDecoder } = /** @type {typeof import('../../web/src/index.js')} */ (await import(client));
        const decoder = await createDecoder({ model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json`, device: 'cpu', precision: 'f32' });
        const file = new Uint8Array(await (await lab.blob(`${folder}latents.safetensors`)).arrayBuffer());
        const length = Number(new DataView(file.buffer).getBigUint64(0, true));
        const [data, shape] = [new Float32Array(file.slice(8 + length).buffer), [1, 4, 5, 11]];
        const raw = /** @type {const} */ ('raw');
        const wanted = await decoder.decode({ data, shape }, { output: raw });
        // Each kind of input, and a change that a caller might make next.
        const kinds = () => {
          const [values, sides, bytes, buffer] = [data.slice(), [...shape], file.slice(), file.slice().buffer];
          const tensor = { dims: [...shape], type: 'float32', location: 'cpu', data: data.slice() };
          return {
            array: { latents: { data: values, shape: sides }, change: () => void (values.fill(NaN), sides.fill(1)) },
            tensor: { latents: tensor, change: () => void (tensor.data.fill(NaN), tensor.dims.fill(1)) },
            file: { latents: bytes, change: () => void bytes.fill(0) },
            buffer: { latents: buffer, change: () => void new Uint8Array(buffer).fill(0) },
          };
        };
        /** @type {Record<string, boolean[]>} */
        const same = {};
        for (const name of /** @type {(keyof ReturnType<typeof kinds>)[]} */ (Object.keys(kinds()))) {
          const { latents, change } = kinds()[name];
          const alone = decoder.decode(latents, { output: raw });
          change();
          const isAlone = lab.isSame((await alone).data, wanted.data);
          const again = kinds()[name];
          const [first, queued] = [decoder.decode({ data, shape }, { output: raw }), decoder.decode(again.latents, { output: raw })];
          await new Promise((resolve) => setTimeout(resolve, 1));
          again.change();
          same[name] = [isAlone, lab.isSame((await first).data, wanted.data), lab.isSame((await queued).data, wanted.data)];
        }
        const options = { output: raw, index: 0 };
        const asked = decoder.decode({ data, shape }, options);
        options.index = 7;
        same.options = [lab.isSame((await asked).data, wanted.data)];
        await decoder.destroy();
        return same;
      }, session.model(`${MODEL}/`), client);
      assert.deepEqual(found, { array: [true, true, true], tensor: [true, true, true], file: [true, true, true], buffer: [true, true, true], options: [true] });
    });

    it(`encodes the picture of the call ${where}`, async () => {
      const found = await session.run(async (folder, client) => {
        const { createEncoder } = /** @type {typeof import('../../web/src/index.js')} */ (await import(client));
        const encoder = await createEncoder({ model: `${folder}both.safetensors`, config: `${folder}config.json`, device: 'cpu', precision: 'f32' });
        const wanted = await encoder.encode(lab.noise(48, 40));
        const kinds = () => {
          const [image, drawn] = [lab.noise(48, 40), document.createElement('canvas')];
          Object.assign(drawn, { width: 48, height: 40 });
          const context = drawn.getContext('2d');
          context?.putImageData(image, 0, 0);
          const values = lab.valuesOf(image);
          return {
            pixels: { picture: image, change: () => void image.data.fill(0) },
            values: { picture: values, change: () => void values.data.fill(0) },
            canvas: { picture: drawn, change: () => void context?.clearRect(0, 0, 48, 40) },
          };
        };
        /** @type {Record<string, boolean[]>} */
        const same = {};
        for (const name of /** @type {(keyof ReturnType<typeof kinds>)[]} */ (Object.keys(kinds()))) {
          const [{ picture, change }, again] = [kinds()[name], kinds()[name]];
          const [alone, queued] = [encoder.encode(picture), encoder.encode(again.picture)];
          change();
          again.change();
          same[name] = [lab.isSame((await alone).data, wanted.data), lab.isSame((await queued).data, wanted.data)];
        }
        await encoder.destroy();
        return same;
      }, session.model(`${MODEL}/`), client);
      assert.deepEqual(found, { pixels: [true, true], values: [true, true], canvas: [true, true] });
    });

    it(`takes the clip of the call ${where}, both ways`, async () => {
      const found = await session.run(async (folder, client) => {
        const { createVae } = /** @type {typeof import('../../web/src/index.js')} */ (await import(client));
        const vae = await createVae({ model: `${folder}both.safetensors`, config: `${folder}config.json`, device: 'cpu', clips: true, precision: 'f32' });
        const pictures = () => [1, 2, 3, 4, 5].map((seed) => lab.noise(16, 16, 255, seed));
        /** @param {AsyncIterable<{ data: Float32Array }>} parts */
        const all = async (parts) => {
          const values = [];
          for await (const { data } of parts) values.push(...data);
          return values;
        };
        /** @type {import('../../web/src/index.js').EncodedPart[]} */
        const parts = [];
        for await (const part of vae.encodeClip(pictures())) parts.push(part);
        const wanted = await all(vae.clip(parts, { output: 'raw' }));
        const encoding = pictures();
        const encoded = vae.encodeClip(encoding);
        encoding.forEach(({ data }) => data.fill(0));
        encoding.length = 0;
        const isEncoded = lab.isSame(await all(encoded), parts.flatMap(({ data }) => [...data]));
        const own = parts.map(({ data, shape }) => ({ data: data.slice(), shape: [...shape] }));
        const decoded = vae.clip(own, { output: 'raw' });
        own.forEach(({ data }) => data.fill(0));
        own.length = 0;
        const isDecoded = lab.isSame(await all(decoded), wanted);
        const [, channels, , height, width] = parts[0].shape;
        const whole = { data: new Float32Array(parts.length * channels * height * width), shape: [1, channels, parts.length, height, width] };
        parts.forEach(({ data }, frame) => {
          for (let at = 0; at < data.length; at += 1) whole.data[(Math.floor(at / (height * width)) * parts.length + frame) * height * width + (at % (height * width))] = data[at];
        });
        const clip = vae.clip(whole, { output: 'raw' });
        whole.data.fill(0);
        const isWhole = lab.isSame(await all(clip), wanted);
        await vae.destroy();
        return { frames: wanted.length, isEncoded, isDecoded, isWhole };
      }, session.model(`${CLIPS}/`), client);
      assert.deepEqual(found, { frames: 5 * 3 * 16 * 16, isEncoded: true, isDecoded: true, isWhole: true });
    });
  }
});
