// @ts-check
// The package in Node on the CPU, without any WebGPU: equal to diffusers and to the command line,
// on any number of threads, and after one of them broke.

import assert from 'node:assert/strict';
import { openAsBlob } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';

import { relativeError } from './closeness.mjs';
import { fixture } from './fixtures.mjs';
import { runPlainly, WGVAE } from './native.mjs';
import { readNpy } from './safetensors.mjs';
import { DIST, writeModel } from './session.mjs';

const MODEL = 'toy_odd';

/** Allowed error as in tests/gpu/decode.rs, relative to the largest value. */
const F32_ERROR = 1e-4;

let folder = '';
before(async () => {
  folder = join(await mkdtemp(join(tmpdir(), 'wgvae-cores-')), MODEL);
  await writeModel(folder, await fixture(MODEL));
});
after(() => rm(join(folder, '..'), { recursive: true, force: true }));

/** @returns {Promise<typeof import('../../web/src/index.js')>} */
const wgvae = () => import(`${new URL('web/src/index.js', `file://${DIST}/`)}`);

const files = () => Promise.all(['diffusion_pytorch_model.safetensors', 'config.json', 'latents.safetensors'].map((name) => openAsBlob(join(folder, name))));

describe('the package in Node, without WebGPU', () => {
  it('decodes as diffusers and as the command line on the CPU, and says why there', async () => {
    const { createDecoder } = await wgvae();
    const [model, config, latents] = await files();
    /** @type {string[]} */
    const notices = [];
    const decoder = await createDecoder({ model, config, onNotice: ({ code, message }) => notices.push(`${code}: ${message}`) });
    const { data } = await decoder.decode(latents, { output: 'raw' });
    assert.equal(decoder.report?.measured_peak_bytes, decoder.report?.predicted_peak_bytes);
    await decoder.destroy();
    assert.equal(notices.length, 1);
    assert.match(notices[0], /^cpu: there is no WebGPU.*the CPU computes/);

    const npy = join(folder, 'native.npy');
    await runPlainly(WGVAE, ['decode', '--model', folder, '--latents', join(folder, 'latents.safetensors'), '--device', 'cpu', '-o', npy]);
    assert.ok(relativeError(data, (await fixture(MODEL)).image.data) <= F32_ERROR);
    assert.ok(relativeError(data, readNpy(await readFile(npy)).data) <= F32_ERROR);
  });

  it('decodes on threads with the bits of one, and again after a thread broke', async () => {
    const { createDecoder } = await wgvae();
    /** @type {typeof import('../../web/src/wasm.js')} */
    const { startWasm } = await import(`${new URL('web/src/wasm.js', `file://${DIST}/`)}`);
    const [model, config, latents] = await files();
    const decoded = async (/** @type {number | undefined} */ threads) => {
      const decoder = await createDecoder({ model, config, device: 'cpu', threads });
      const { data } = await decoder.decode(latents, { output: 'raw' });
      return { decoder, data, name: decoder.info.adapter.name };
    };
    const [one, two, all] = [await decoded(1), await decoded(2), await decoded(undefined)];
    assert.deepEqual([two.data, all.data], [one.data, one.data]);
    assert.match(two.name, /^CPU \(2 threads/);
    assert.match(all.name, new RegExp(`^CPU \\(${Math.min(availableParallelism(), 16)} thread`));

    const running = async () => /** @type {any} */ (await startWasm(undefined, 'cpu', 2));
    const module = await running();
    assert.throws(() => module.breakThread(), { code: 'internal', message: /a thread that computes has ended/ });
    await assert.rejects(two.decoder.decode(latents, { output: 'raw' }), { code: 'internal' });
    await Promise.all([one, two, all].map(({ decoder }) => decoder.destroy()));
    const second = await decoded(2);
    assert.deepEqual(second.data, one.data);
    // The worker of a thread calls this when the thread ends by a panic.
    (await running()).threadBroke();
    await assert.rejects(second.decoder.decode(latents, { output: 'raw' }), { code: 'internal', message: /a thread that computes has ended/ });
    await second.decoder.destroy();
    const third = await decoded(2);
    assert.deepEqual(third.data, one.data);
    await third.decoder.destroy();
  });
});
