// @ts-check
// Decodes and encodes in Node on the CPU: the newest of several, each of a batch, many at once, and
// latents as files.

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';

import { orAborted } from '../../web/src/queue.js';
import { fill, fixture, modelFile } from './fixtures.mjs';
import { readNpy, readSafetensors, writeSafetensors } from './safetensors.mjs';
import { startServer } from './server.mjs';
import { DIST } from './session.mjs';

const RAW = /** @type {const} */ ({ output: 'raw' });

/** @type {typeof import('../../web/src/index.js')} */
let wgvae;
/** @type {import('../../web/src/index.js').Vae} */
let vae;
/** Latents of two pictures. @type {{ data: Float32Array, shape: number[] }} */
let batch;
/** Both pictures, decoded one by one. @type {number[][]} */
let pictures;
before(async () => {
  wgvae = await import(`${new URL('web/src/index.js', `file://${DIST}/`)}`);
  const { config } = await fixture('toy_odd');
  vae = await wgvae.createVae({ model: new Uint8Array(modelFile(config, { encoder: true })), config, device: 'cpu' });
  const channels = vae.info.latent_channels;
  batch = { data: fill('batch', 2 * channels * 6, 0, 1.7), shape: [2, channels, 2, 3] };
  pictures = [];
  for (const index of [0, 1]) pictures.push([...(await vae.decode(batch, { ...RAW, index })).data]);
});
after(() => vae.destroy());

/**
 * Returns the pictures of a batch as arrays.
 * @param {AsyncIterable<import('../../web/src/index.js').RawImage>} images
 */
async function all(images) {
  const found = [];
  for await (const { data } of images) found.push([...data]);
  return found;
}

describe('decodes with `replace`', () => {
  it('end when a newer one begins, and leave all others alone', async () => {
    const said = (/** @type {Promise<unknown>} */ decode) => decode.then(() => 'done', (error) => `${error.name} ${error.code} ${error instanceof wgvae.WgvaeError}`);
    const other = vae.decode(batch, RAW);
    // The first runs next, and the second waits behind it.
    const older = [1, 2].map(() => said(vae.decode(batch, { ...RAW, replace: true })));
    const [preview, newest] = [said(vae.preview(batch, { output: 'image-data' })), vae.decode(batch, { ...RAW, index: 1, replace: true })];
    assert.deepEqual(await Promise.all([...older, preview]), Array(3).fill('AbortError replaced true'));
    assert.deepEqual([...(await newest).data], pictures[1]);
    assert.deepEqual([...(await other).data], pictures[0]);
    assert.equal(await said(vae.decode(batch, /** @type {any} */ ({ ...RAW, replace: 'yes' }))), 'WgvaeError input true');
  });

  it('end while they run', async () => {
    let isRunning = () => {};
    const begun = new Promise((resolve) => { isRunning = () => resolve(undefined); });
    const older = vae.decode(batch, { ...RAW, replace: true, onProgress: isRunning }).catch(({ code }) => code);
    await begun;
    const newest = await vae.decode(batch, { ...RAW, replace: true });
    assert.equal(await older, 'replaced');
    assert.deepEqual([...newest.data], pictures[0]);
  });
});

describe('decodeEach', () => {
  it('yields every picture, of latents as they were at the call', async () => {
    const changed = { data: batch.data.slice(), shape: batch.shape };
    const images = vae.decodeEach(changed, RAW);
    changed.data.fill(0);
    assert.deepEqual(await all(images), pictures);
  });

  it('reads an address once', async (t) => {
    const server = await startServer({ root: DIST });
    t.after(() => server.close());
    const bytes = writeSafetensors([['latents', batch]]);
    const url = server.route('/batch.safetensors', { bytes });
    assert.deepEqual(await all(vae.decodeEach(url, RAW)), pictures);
    assert.equal(server.seen('/batch.safetensors').length, 1);
    assert.deepEqual(await all(vae.decodeEach(new Blob([bytes]), RAW)), pictures);
  });

  it('ends when its reader leaves or aborts, and takes no canvas and no index', async () => {
    for await (const { data } of vae.decodeEach(batch, RAW)) {
      assert.deepEqual([...data], pictures[0]);
      break;
    }
    const controller = new AbortController();
    const images = vae.decodeEach(batch, { ...RAW, signal: controller.signal });
    await images.next();
    controller.abort(new Error('enough'));
    await assert.rejects(images.next(), /enough/);
    for (const name of ['canvas', 'index', 'replace']) await assert.rejects(vae.decodeEach(batch, /** @type {any} */ ({ [name]: 1 })).next(), { code: 'input', message: new RegExp(`^${name}: .*an option "${name}"`) });
  });
});

describe('many models and calls at once', () => {
  it('leave few listeners on signals, of which Node would warn', async (t) => {
    /** @type {string[]} */
    const warnings = [];
    const hear = (/** @type {Error} */ { name }) => warnings.push(name);
    process.on('warning', hear);
    t.after(() => process.off('warning', hear));
    const { config } = await fixture('toy_odd');
    const models = [];
    for (let count = 0; count < 12; count += 1) models.push(await wgvae.createVae({ model: new Uint8Array(modelFile(config, { encoder: true })), config, device: 'cpu' }));
    const { signal } = new AbortController();
    const decodes = models.flatMap((model) => Array.from({ length: 15 }, (_, index) => model.decode(batch, { ...RAW, signal: index % 2 ? signal : undefined })));
    for (const { data } of await Promise.all(decodes)) assert.deepEqual([...data], pictures[0]);
    await Promise.all(models.map((model) => model.destroy()));
    await setImmediate();
    assert.deepEqual(warnings, []);
  });

  it('all end by an abort, and leave no listener when they are done', async () => {
    const [controller, reason] = [new AbortController(), new Error('enough')];
    const { signal } = controller;
    const calls = (/** @type {AbortSignal} */ signal) => Array.from({ length: 20 }, () => orAborted(new Promise(() => {}), signal));
    const listeners = () => getEventListeners(signal, 'abort').length;
    await Promise.all([2, 4].map((value) => orAborted(Promise.resolve(value), signal)));
    await setImmediate();
    assert.equal(listeners(), 0);
    const pending = [...calls(signal), ...calls(signal)];
    assert.equal(listeners(), 1);
    controller.abort(reason);
    const reasons = (await Promise.allSettled(pending)).map((call) => call.status === 'rejected' && call.reason);
    assert.deepEqual(new Set(reasons), new Set([reason]));
    await setImmediate();
    assert.equal(listeners(), 0);
  });
});

describe('a preview without a model', () => {
  const latents = { data: fill('preview', 4 * 6, 0, 1), shape: [1, 4, 2, 3] };

  it('ends by an abort, though its latents never come', async () => {
    const [controller, reason] = [new AbortController(), new Error('enough')];
    const options = { family: 'sd15', signal: controller.signal };
    const file = new Blob([writeSafetensors([['latents', latents]])]);
    /** @type {Promise<void>} */
    const read = new Promise((resolve) => {
      file.slice = () => Object.assign(new Blob(), { arrayBuffer: () => (resolve(), new Promise(() => {})) });
    });
    const waiting = wgvae.preview(file, options);
    await read;
    controller.abort(reason);
    await assert.rejects(waiting, reason);
    await assert.rejects(wgvae.preview(latents, options), reason);
    assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
  });

  it('ends by an abort in the same turn', async () => {
    const [controller, reason] = [new AbortController(), new Error('enough')];
    const made = wgvae.preview(latents, { family: 'sd15', signal: controller.signal });
    controller.abort(reason);
    await assert.rejects(made, reason);
  });
});

describe('bytes of RGBA', () => {
  it('are read from each array of bytes, as they were at the call', async () => {
    const [width, height] = [32, 24];
    const levels = Uint8Array.from(fill('levels', 4 * width * height, 127, 127), (level, at) => (at % 4 === 3 ? 255 : level));
    const wanted = [...(await vae.encode({ data: new Uint8ClampedArray(levels), width, height })).data];
    for (const data of [levels.slice(), Buffer.from(levels)]) {
      const latents = vae.encode({ data, width, height });
      data.fill(0);
      assert.deepEqual([...(await latents).data], wanted, data.constructor.name);
    }
  });
});

describe('latents as a file', () => {
  const image = { data: fill('image', 3 * 32 * 24, 0, 0.5), shape: [1, 3, 24, 32] };

  it('hold the mode, or a sample by its seed, and decode to the same', async () => {
    /**
     * @type {[import('../../web/src/index.js').LatentsFile, (file: Uint8Array) =>
     * import('./safetensors.mjs').Tensor][]}
     */
    const kinds = [['safetensors', (file) => readSafetensors(file).tensor('latents')], ['npy', readNpy]];
    for (const seed of [undefined, 7]) {
      const latents = await vae.encode(image, { output: seed === undefined ? 'mode' : 'sample', seed });
      const picture = await vae.decode(latents, RAW);
      for (const [output, read] of kinds) {
        const file = await vae.encode(image, { output, seed });
        const { data, shape } = read(new Uint8Array(await file.arrayBuffer()));
        assert.deepEqual([[...data], shape], [[...latents.data], latents.shape]);
        assert.deepEqual([...(await vae.decode(file, RAW)).data], [...picture.data]);
      }
    }
  });

  it('say that they are unscaled, where they can', async () => {
    const latents = await vae.encode(image, { unscaled: true });
    const file = await vae.encode(image, { unscaled: true, output: 'safetensors' });
    assert.equal(readSafetensors(new Uint8Array(await file.arrayBuffer())).metadata.unscaled, 'true');
    assert.deepEqual([...(await vae.decode(file, RAW)).data], [...(await vae.decode(latents, RAW)).data]);
  });
});

describe('the scale of latents', () => {
  const image = { data: fill('image', 3 * 32 * 24, 0, 0.5), shape: [1, 3, 24, 32] };
  const input = (/** @type {RegExp} */ message) => ({ name: 'WgvaeError', code: 'input', message });

  it('is that which they state, in every form', async () => {
    const { data, shape } = await vae.encode(image, { unscaled: true });
    const decoded = async (/** @type {any} */ latents) => [...(await vae.decode(latents, RAW)).data];
    const [own, scaled] = [await decoded({ data, shape, unscaled: true }), await decoded({ data, shape })];
    assert.notDeepEqual(own, scaled);
    const tensor = { data, dims: shape, type: 'float32', location: 'cpu' };
    assert.deepEqual(await decoded({ ...tensor, unscaled: true }), own);
    assert.deepEqual(await decoded(tensor), scaled);
    assert.deepEqual(await decoded({ data, shape, unscaled: false }), scaled);
    await assert.rejects(decoded({ data, shape, unscaled: 'false' }), input(/^unscaled of the latents: expected true or false, found "false"$/));
  });

  it('is not taken for the VAE\'s own against what they state', async () => {
    const { config } = await fixture('toy_odd');
    const latents = await vae.encode(image);
    const file = await vae.encode(image, { output: 'safetensors' });
    const own = await wgvae.createVae({ model: new Uint8Array(modelFile(config, { encoder: true })), config, device: 'cpu', unscaled: true });
    try {
      const message = /latents that are scaled: expected a model that was loaded without "unscaled"/;
      for (const stated of [latents, file]) await assert.rejects(own.decode(stated, RAW), input(message));
      const { data, shape } = latents;
      assert.deepEqual([...(await own.decode({ data, shape }, RAW)).data], [...(await vae.decode({ data, shape, unscaled: true }, RAW)).data]);
    } finally {
      await own.destroy();
    }
  });
});

describe('options of an encode without a meaning', () => {
  const image = { data: fill('image', 3 * 32 * 24, 0, 0.5), shape: [1, 3, 24, 32] };

  it('are errors', async () => {
    const refused = (/** @type {any} */ options, /** @type {string} */ message) => assert.rejects(vae.encode(image, options), { code: 'input', message });
    await refused({ seed: 1 }, 'seed: expected use with output "sample" or a file, found it with output "mode"');
    await refused({ seed: 1, output: 'moments' }, 'seed: expected use with output "sample" or a file, found it with output "moments"');
    await refused({ unscaled: false, output: 'moments' }, "unscaled: expected true or nothing for moments, which are the VAE's own, found false");
    const { checkResult } = await import(`${new URL('web/src/encoding.js', `file://${DIST}/`)}`);
    checkResult({ output: 'moments' }, vae.info);
    const tiny = { has_distribution: false };
    const expected = 'output: expected the mode, because this encoder gives the latents themselves, found';
    assert.throws(() => checkResult({ output: 'moments' }, tiny), { code: 'input', message: `${expected} moments` });
    for (const drawn of [{ output: 'sample' }, { output: 'npy', seed: 7 }]) assert.throws(() => checkResult(drawn, tiny), { code: 'input', message: `${expected} a sample` });
    checkResult({ output: 'npy' }, tiny);
  });
});

describe('a model of which the weights do not tell everything', () => {
  it('is opened with a notice of what is assumed', async () => {
    const { config } = await fixture('toy_odd');
    const unpublished = JSON.stringify({ ...JSON.parse(config), block_out_channels: [32, 64, 64, 64], norm_num_groups: 8 });
    const model = new Uint8Array(modelFile(unpublished, { encoder: true }));
    /** @type {string[]} */
    const said = [];
    const onNotice = (/** @type {import('../../web/src/index.js').Notice} */ { code, message }) => said.push(`${code}: ${message}`);
    const opened = await wgvae.createVae({ model, device: 'cpu', unscaled: true, onNotice });
    await opened.destroy();
    assert.match(said.join(), /^assumed: .*weights do not tell norm_num_groups: 32 are assumed/);
    assert.match(`${(await wgvae.inspect({ model })).assumed}`, /32 are assumed/);
    assert.equal((await wgvae.inspect({ model, config: unpublished })).assumed, null);
  });
});
