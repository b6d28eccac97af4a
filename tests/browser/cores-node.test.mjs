// @ts-check
// The package in Node on the CPU, without any WebGPU: equal to diffusers and to the command line.

import assert from 'node:assert/strict';
import { openAsBlob } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
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

describe('the package in Node, without WebGPU', () => {
  it('decodes as diffusers and as the command line on the CPU, and says why there', async () => {
    /** @type {typeof import('../../web/src/index.js')} */
    const { createDecoder } = await import(`${new URL('web/src/index.js', `file://${DIST}/`)}`);
    const [model, config, latents] = await Promise.all(['diffusion_pytorch_model.safetensors', 'config.json', 'latents.safetensors'].map((name) => openAsBlob(join(folder, name))));
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
});
