// @ts-check
// The package's self-test finds every set of kernels right, notices errors, and explains what it
// cannot do.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { inBrowsers } from './session.mjs';

/** A model with every kind of kernel, and one with few, which compiles faster. */
const [MODEL, SMALL] = ['toy_odd', 'toy_direct'];

// Chromium takes a minute and a half to compile everything.
inBrowsers({ kinds: ['firefox'], models: [MODEL, SMALL] }, (session) => {
  it('finds every set of kernels right', async () => {
    const { right, rows } = await session.run(
      (folder) => lab.wgvae.selftest({ model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json`, reference: `${folder}reference.safetensors` }),
      session.model(`${MODEL}/`),
    );
    assert.ok(right && rows.every(({ right, error, most, same_bits }) => right && same_bits && (error ?? NaN) <= most), JSON.stringify(rows));
    assert.deepEqual(rows.map(({ elements }) => elements), ['f32', 'f16', 'packed_f16', 'fast'].flatMap((name) => Array(4).fill(name)));
    assert.ok(new Set(rows.map(({ kernels }) => JSON.stringify(kernels))).size > 2, 'other kernels');
  });

  it('sees a reference that says something else, and refuses what is none', async () => {
    const { wrong, heard, errors, stopped } = await session.run(async (folder) => {
      const { selftest } = lab.wgvae;
      const options = { model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json`, reference: `${folder}reference.safetensors` };
      // The last float belongs to the image.
      const bytes = new Uint8Array(await (await fetch(options.reference)).arrayBuffer());
      new DataView(bytes.buffer).setFloat32(bytes.length - 4, 9, true);
      /** @type {string[]} */
      const heard = [];
      const wrong = await selftest({ ...options, reference: new Blob([bytes]), onProgress: ({ phase, done, total }) => heard.push(`${phase} ${done} of ${total}`) });
      const errors = [];
      for (const change of [{ reference: options.config }, { reference: `${folder}latents.safetensors` }, { device: 'cpu' }, { reference: undefined }]) {
        const { error } = await lab.outcome(selftest(/** @type {any} */ ({ ...options, ...change })));
        errors.push(`${error?.code}: ${error?.message}`);
      }
      const abort = new AbortController();
      const { error } = await lab.outcome(selftest({ ...options, signal: abort.signal, onProgress: () => abort.abort('enough') }));
      return { wrong, heard, errors, stopped: error?.message };
    }, session.model(`${SMALL}/`));
    assert.equal(wrong.right, false);
    assert.deepEqual(heard, Array.from({ length: wrong.rows.length + 1 }, (_, done) => `selftest ${done} of ${wrong.rows.length}`));
    assert.ok(wrong.rows.every(({ right, same_bits, error, most }) => !right && same_bits && (error ?? 0) > most), JSON.stringify(wrong.rows));
    assert.match(errors[0], /^format: config\.json/);
    assert.match(errors[1], /^input: .*image/);
    assert.match(errors[2], /^input: device: expected none/);
    assert.match(errors[3], /^input: reference: /);
    assert.equal(stopped, 'enough');
  });
});
