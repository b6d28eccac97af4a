// @ts-check
// The package's self-test: compares every set of kernels with diffusers, notices errors, and
// explains what it cannot do.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { inBrowsers } from './session.mjs';

const MODEL = 'toy_odd';

/** The client in a worker, as the page uses it. */
const CLIENT = '/web/src/worker.js';

// Chromium takes a minute and a half to compile everything.
inBrowsers({ kinds: ['firefox'], models: [MODEL] }, (session) => {
  it('finds every set of kernels right, in every precision there is', async (t) => {
    const { found, heard } = await session.run(async (client, folder) => {
      const { selftest } = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
      const files = { model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json`, reference: `${folder}reference.safetensors` };
      /** @type {string[]} */
      const heard = [];
      return { found: await selftest({ ...files, onProgress: ({ phase, done, total }) => heard.push(`${phase} ${done} of ${total}`) }), heard };
    }, CLIENT, session.model(`${MODEL}/`));
    const { adapter, right, rows } = found;
    t.diagnostic(`${adapter}: ${rows.map(({ elements, error, seconds }) => `${elements} ${error?.toExponential(1)} in ${seconds.toFixed(2)} s`).join(', ')}`);
    assert.equal(right, true, JSON.stringify(rows));
    assert.deepEqual(rows.map((row) => row.elements), ['f32', 'f16', 'packed_f16', 'fast'].flatMap((name) => Array(4).fill(name)));
    for (const { error, most, same_bits, right } of rows) assert.ok(right && same_bits && error !== null && error > 0 && error <= most, JSON.stringify(rows));
    assert.ok(new Set(rows.map(({ kernels }) => JSON.stringify(kernels))).size > 2, 'other kernels');
    assert.deepEqual(heard, Array.from({ length: rows.length + 1 }, (_, done) => `selftest ${done} of ${rows.length}`));
  });

  it('sees a reference that says something else, and refuses what is none', async () => {
    const { wrong, errors, stopped } = await session.run(async (folder) => {
      const { selftest } = lab.wgvae;
      const options = { model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json`, reference: `${folder}reference.safetensors` };
      // The last float belongs to the image.
      const bytes = new Uint8Array(await (await fetch(options.reference)).arrayBuffer());
      new DataView(bytes.buffer).setFloat32(bytes.length - 4, 9, true);
      const wrong = await selftest({ ...options, reference: new Blob([bytes]) });
      const errors = [];
      for (const change of [{ reference: options.config }, { reference: `${folder}latents.safetensors` }, { device: undefined }, { reference: undefined }]) {
        const { error } = await lab.outcome(selftest(/** @type {any} */ ({ ...options, ...change })));
        errors.push(`${error?.code}: ${error?.message}`);
      }
      const abort = new AbortController();
      const { error } = await lab.outcome(selftest({ ...options, signal: abort.signal, onProgress: () => abort.abort('enough') }));
      return { wrong, errors, stopped: error?.message };
    }, session.model(`${MODEL}/`));
    assert.equal(wrong.right, false);
    assert.ok(wrong.rows.every(({ right, same_bits, error, most }) => !right && same_bits && (error ?? 0) > most), JSON.stringify(wrong.rows));
    assert.match(errors[0], /^format: config\.json/);
    assert.match(errors[1], /^input: .*image/);
    assert.match(errors[2], /^input: device: expected none/);
    assert.match(errors[3], /^input: reference: /);
    assert.equal(stopped, 'enough');
  });
});
