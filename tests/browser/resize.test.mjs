// @ts-check
// Resizing of pictures before an encode, in browsers: the pixels of files, bitmaps and canvases
// become PIL's, to the bit, here and in a worker.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { it } from 'node:test';

import { readSafetensors } from './safetensors.mjs';
import { inBrowsers } from './session.mjs';

const MODEL = 'toy_odd';
const CLIENT = '/web/src/worker.js';

/** A picture of noise, and a size that a model takes. */
const [FROM, TO] = ['hard_64x48', '72x56'];

inBrowsers({ models: [MODEL] }, (session) => {
  it('are the same in every browser, whatever the picture comes from', async () => {
    const { levels } = readSafetensors(await readFile(new URL('../fixtures/lanczos.safetensors', import.meta.url)));
    const [given, resized] = [FROM, `${FROM}.${TO}`].map((name) => [...levels(name).data]);
    const found = await session.run(async (folder, client, given, resized) => {
      const opaque = (/** @type {number[]} */ rgb, /** @type {number} */ width) => {
        const rgba = Uint8ClampedArray.from({ length: (rgb.length / 3) * 4 }, (_, at) => (at % 4 === 3 ? 255 : rgb[3 * (at >> 2) + (at % 4)]));
        return new ImageData(rgba, width);
      };
      const options = { model: `${folder}both.safetensors`, config: `${folder}config.json`, device: /** @type {const} */ ('cpu') };
      const vae = await lab.wgvae.createVae(options);
      const remote = await /** @type {typeof import('../../web/src/worker.js')} */ (await import(client)).createVae(options);
      const image = opaque(given, 64);
      const wanted = await vae.encode(opaque(resized, 72));
      const canvas = lab.canvasOf(image);
      const inputs = { image, canvas, png: await canvas.convertToBlob(), bitmap: await createImageBitmap(canvas) };
      /** @type {Record<string, boolean>} */
      const same = {};
      for (const [name, input] of Object.entries(inputs)) {
        for (const [where, model] of Object.entries({ here: vae, worker: remote })) {
          const { data } = await model.encode(input, { width: 72, height: 56, fit: 'fill' });
          same[`${name} ${where}`] = lab.isSame(data, wanted.data);
        }
      }
      // The worker had a copy, and this bitmap is still the caller's.
      const isThere = inputs.bitmap.width === 64;
      await Promise.all([vae.destroy(), remote.destroy()]);
      return { same, isThere };
    }, session.model(`${MODEL}/`), CLIENT, given, resized);
    assert.equal(Object.keys(found.same).length, 8);
    assert.deepEqual(Object.keys(found.same).filter((name) => !found.same[name]), []);
    assert.ok(found.isThere);
  });
});
