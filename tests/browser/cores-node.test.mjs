// @ts-check
// The package in Node on the CPU, without any WebGPU: equal to diffusers and to the command line,
// on any number of threads, and after one of them broke.

import assert from 'node:assert/strict';
import { openAsBlob } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { runInNewContext } from 'node:vm';

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

  it('opens files by their addresses, and values of another context', async () => {
    const { createDecoder } = await wgvae();
    const address = (/** @type {string} */ name) => new URL(`file://${join(folder, name)}`);
    const decoder = await createDecoder({ model: address('diffusion_pytorch_model.safetensors'), config: address('config.json'), device: 'cpu' });
    const { data } = await decoder.decode(address('latents.safetensors'), { output: 'raw' });
    const file = await readFile(join(folder, 'latents.safetensors'));
    /** @type {any} */
    const foreign = runInNewContext('({ bytes: Uint8Array.from(file), buffer: Uint8Array.from(file).buffer, floats: new Float32Array(4 * 6 * 5) })', { file: [...file] });
    for (const latents of [foreign.bytes, foreign.buffer]) assert.deepEqual((await decoder.decode(latents, { output: 'raw' })).data, data);
    assert.equal((await decoder.decode({ data: foreign.floats, shape: [4, 6, 5] }, { output: 'raw' })).shape.length, 3);
    // A caller's own function may guard addresses.
    const fetch = () => Promise.reject(new Error('guarded'));
    await assert.rejects(createDecoder({ model: address('diffusion_pytorch_model.safetensors'), config: {}, fetch, device: 'cpu' }), { code: 'network', message: /guarded/ });
    await assert.rejects(decoder.decode(address('absent.safetensors'), { output: 'raw' }), { code: 'io', message: /absent\.safetensors cannot be read: ENOENT/ });
    await assert.rejects(createDecoder({ model: new URL(`file://${folder}`), device: 'cpu' }), { code: 'io', message: /cannot be read: it is no file/ });
    await decoder.destroy();
  });

  it('takes the memory of its own plan after tiles of another size', async () => {
    const { createDecoder } = await wgvae();
    const [model, config] = await files();
    const decoder = await createDecoder({ model, config, device: 'cpu' });
    const latents = (/** @type {number} */ height, /** @type {number} */ width) => ({ data: new Float32Array(4 * height * width).fill(0.5), shape: [4, height, width] });
    for (const [input, tiles] of /** @type {const} */ ([[latents(12, 30), { tiling: 'cosine', tileSize: 64 }], [latents(2, 2), {}], [latents(12, 30), { tiling: 'cosine', tileSize: 64 }], [latents(9, 9), { tiling: 'cosine', tileSize: 32 }]])) {
      await decoder.decode(input, { output: 'raw', ...tiles });
      assert.equal(decoder.report?.measured_peak_bytes, decoder.report?.predicted_peak_bytes);
    }
    await decoder.destroy();
  });

  it('refuses a canvas that is not there, and plans within the memory of a module', async () => {
    const { createDecoder, planFor } = await wgvae();
    const [model, config, latents] = await files();
    const decoder = await createDecoder({ model, config, device: 'cpu' });
    await assert.rejects(decoder.decode(latents, /** @type {any} */ ({ canvas: null })), { code: 'canvas', message: /expected an HTMLCanvasElement or an OffscreenCanvas, found null/ });
    await decoder.destroy();
    const { predicted_peak_bytes: peak } = await planFor({ family: 'sd15', device: 'cpu', precision: 'f32', width: 2048, height: 2048 });
    assert.ok(peak <= 3.5 * 2 ** 30, `${peak}`);
    const tooLarge = { code: 'too-large', message: /^a plan on the CPU needs \d+ MiB, but a module of WebAssembly has 3584 MiB for it/ };
    for (const memoryBudget of [undefined, 8e9]) await assert.rejects(planFor({ family: 'sd15', device: 'cpu', precision: 'f32', width: 4096, height: 4096, memoryBudget }), tooLarge);
    await assert.rejects(planFor({ family: 'wan21', device: 'cpu', precision: 'f32', frames: 9, width: 1280, height: 704, tiling: 'blend', tileSize: 256 }), tooLarge);
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
