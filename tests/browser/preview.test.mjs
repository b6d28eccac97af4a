// @ts-check
// Previews: the linear map of latents, and decodes of means of latents, of which only the newest
// counts.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { inBrowsers } from './session.mjs';

const MODEL = 'toy_direct';
const CLIENT = '/web/src/worker.js';

/** Red, green and blue of SDXL's channels, and their offset: ComfyUI's comfy/latent_formats.py. */
const FACTORS = [[0.3651, 0.4232, 0.4341], [-0.2533, -0.0042, 0.1068], [0.1076, 0.1111, -0.0362], [-0.3165, -0.2492, -0.2188]];
const BIAS = [0.1084, -0.0175, -0.0011];

inBrowsers({ models: [MODEL] }, (session) => {
  const folder = () => session.model(`${MODEL}/`);

  it('maps latents to colours without a model, here and in a worker', async () => {
    const [height, width] = [4, 6];
    const data = Array.from({ length: 4 * height * width }, (_, index) => ((index * 7) % 11) * 0.3 - 1.5);
    const found = await session.run(async (data, shape, client) => {
      const there = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
      const latents = { data: Float32Array.from(data), shape };
      const whole = await lab.wgvae.preview(latents, { family: 'sdxl' });
      const small = await there.preview(latents, { family: 'sdxl', maxSide: 3 });
      const errors = [];
      for (const options of [{ family: 'seedvr2' }, { family: 'flux1' }, { family: 'sdxl', maxSide: 0.5 }]) errors.push(await lab.outcome(() => lab.wgvae.preview(latents, options)));
      return { pixels: [...whole.data], size: [whole.width, whole.height, small.width, small.height], errors };
    }, data, [1, 4, height, width], CLIENT);
    assert.deepEqual(found.size, [6, 4, 3, 2]);
    for (let pixel = 0; pixel < height * width; pixel += 1) {
      for (const color of [0, 1, 2]) {
        const mapped = FACTORS.reduce((sum, factors, channel) => sum + factors[color] * data[channel * height * width + pixel], BIAS[color]);
        const level = Math.min(255, Math.max(0, (mapped + 1) * 127.5));
        assert.ok(Math.abs(found.pixels[pixel * 4 + color] - level) < 0.51, `pixel ${pixel}, colour ${color}`);
      }
      assert.equal(found.pixels[pixel * 4 + 3], 255);
    }
    assert.match(JSON.stringify(found.errors[0]), /linear map/);
    assert.match(JSON.stringify(found.errors[1]), /16 channels/);
    assert.match(JSON.stringify(found.errors[2]), /maxSide/);
  });

  it('decodes fewer pixels, and ends an older preview', async () => {
    const found = await session.run(async (folder, client) => {
      const there = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
      const options = { model: `${folder}both.safetensors`, config: `${folder}config.json`, precision: /** @type {const} */ ('f32') };
      const latents = `${folder}latents.safetensors`;
      const results = [];
      for (const { createDecoder } of [lab.wgvae, there]) {
        const decoder = await createDecoder(options);
        const whole = await decoder.decode(latents, { output: 'image-data' });
        const maxSide = Math.ceil(Math.max(whole.width, whole.height) / 2);
        const older = decoder.preview(latents, { maxSide, output: 'image-data' }).then(() => 'done', ({ name, code }) => `${name} ${code}`);
        const small = await decoder.preview(latents, { maxSide, output: 'image-data' });
        await decoder.preview(latents, { maxSide, output: 'image-data' });
        const { report } = decoder;
        const each = [];
        for await (const image of decoder.decodeEach(latents, { output: 'image-data' })) each.push(image.width === whole.width);
        results.push({ each, older: await older, side: Math.max(small.width, small.height), maxSide, isWhole: small.width === whole.width, compiled: report?.compiled });
        await decoder.destroy();
      }
      return results;
    }, folder(), CLIENT);
    for (const { each, older, side, maxSide, isWhole, compiled } of found) {
      assert.equal(older, 'AbortError replaced');
      assert.ok(side <= maxSide && !isWhole, `${side} of ${maxSide}`);
      assert.equal(compiled, 0);
      assert.deepEqual(each, [true]);
    }
  });
});
