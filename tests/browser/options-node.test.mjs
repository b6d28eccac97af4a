// @ts-check
// Arguments that are missing or of another kind, without a GPU: every function rejects them with
// the package's own error.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';

import { WgvaeError, wgvaeError } from '../../web/src/errors.js';
import { fixture, modelFile } from './fixtures.mjs';
import { publish } from './hub-server.mjs';
import { startServer } from './server.mjs';
import { DIST } from './session.mjs';

describe('options', () => {
  /** The package as it is published. @type {any} */
  let wgvae;
  /** @type {any} */
  let worker;
  before(async () => {
    [wgvae, worker] = await Promise.all(['index', 'worker'].map((name) => import(`${new URL(`web/src/${name}.js`, `file://${DIST}/`)}`)));
  });

  /** Returns the error of a call. @param {() => unknown} call */
  const failure = async (call) => {
    try {
      await call();
    } catch (/** @type {any} */ error) {
      return `${error.name} ${error.code}: ${error.message}`;
    }
    return 'nothing';
  };

  it('are an object', async () => {
    for (const of of [wgvae, worker]) {
      for (const name of ['createDecoder', 'createEncoder', 'createVae', 'inspect', 'planFor', 'selftest']) {
        assert.equal(await failure(() => of[name]()), 'WgvaeError input: options: expected an object, found undefined', name);
      }
      assert.equal(await failure(() => of.tune(null)), 'WgvaeError input: options: expected an object, found null');
      assert.equal(await failure(() => of.createDecoder('vae.safetensors')), 'WgvaeError input: options: expected an object, found "vae.safetensors"');
    }
  });

  it('may be left out where nothing is needed, and a worker is one', async () => {
    for (const name of ['families', 'version', 'cacheUsage']) {
      assert.equal(await failure(() => worker[name](null)), 'WgvaeError input: options: expected an object, found null', name);
      assert.equal(await failure(() => worker[name]()), 'WgvaeError input: worker: expected a runtime that has workers, or one of your own, found none', name);
      assert.equal(await failure(() => worker[name]({ worker: 7 })), 'WgvaeError input: worker: expected a Worker as in browsers, found number', name);
    }
    assert.equal(await failure(() => worker.clearCache(undefined, null)), 'WgvaeError input: options: expected an object, found null');
    // Node has no files of an origin.
    assert.equal(await failure(() => wgvae.clearCache()), 'nothing');
  });

  it('are named, with the words that there are', async () => {
    const model = new Blob();
    const found = (/** @type {any} */ value) => (typeof value === 'string' ? `"${value}"` : typeof value === 'object' ? value.constructor.name : value);
    const ofWasm = 'wasm: expected an address, a request, a response, bytes or a compiled module, or these as { webgpu, cpu, threads }';
    /** @type {[object, string][]} */
    const wrong = [
      [{ precision: 'fp16' }, 'precision: expected one of auto, f32, f16, fast, found "fp16" (did you mean "f16"?)'],
      [{ onProgress: 'all' }, 'onProgress: expected a function, found "all"'],
      [{ signal: new AbortController() }, 'signal: expected an AbortSignal, found AbortController'],
      [{ parking: true }, 'parking: expected one of auto, on, off, found true'],
      [{ family: 7 }, 'family: expected text, found 7'],
      [{ unscaled: 'yes' }, 'unscaled: expected true or false, found "yes"'],
      [{ clips: 1 }, 'clips: expected true or false, found 1'],
      [{ memoryBudget: -1 }, 'memoryBudget: expected a whole number, found -1'],
      [{ powerPreference: 'low' }, 'powerPreference: expected one of high-performance, low-power, found "low" (did you mean "low-power"?)'],
      ...['yes', 1, { foo: 1 }].map((cache) => /** @type {[object, string]} */ ([{ cache }, `cache: expected true, false or { limit }, found ${found(cache)}`])),
      ...[3, { foo: 1 }, { cpu: 3 }, new Map()].map((wasm) => /** @type {[object, string]} */ ([{ wasm, device: 'cpu' }, `${ofWasm}, found ${found(wasm)}`])),
    ];
    for (const [options, message] of wrong) {
      assert.equal(await failure(() => wgvae.createDecoder({ model, ...options })), `WgvaeError input: ${message}`);
      assert.equal(await failure(() => wgvae.inspect({ model, ...options })), `WgvaeError input: ${message}`);
    }
    const size = { family: 'sd15', width: 64, height: 64 };
    for (const call of [() => wgvae.families(3), () => wgvae.version(3), () => wgvae.planFor({ ...size, wasm: 3 })]) assert.equal(await failure(call), `WgvaeError input: ${ofWasm}, found 3`);
    assert.equal(await failure(() => wgvae.planFor({ ...size, precision: 'fp16' })), 'WgvaeError input: precision: expected one of auto, f32, f16, fast, found "fp16" (did you mean "f16"?)');
  });

  it('are known by name, and the error says which is the nearest', async () => {
    const model = new Blob();
    /** @type {[() => unknown, RegExp][]} */
    const wrong = [
      [() => wgvae.createDecoder({ model, budget: 1 }), /^budget: expected one of model, .*, found an option "budget" \(did you mean "memoryBudget"\?\)$/],
      [() => wgvae.inspect({ model, ofNotice: () => {} }), /^ofNotice: .*\(did you mean "onNotice"\?\)$/],
      [() => wgvae.tune({ remembers: true }), /^remembers: .*\(did you mean "remember"\?\)$/],
      [() => wgvae.selftest({ model, references: model }), /^references: .*\(did you mean "reference"\?\)$/],
      [() => wgvae.preview(model, { family: 'sdxl', maxside: 9 }), /^maxside: .*\(did you mean "maxSide"\?\)$/],
      [() => wgvae.preview(model, {}), /^family: expected text, found undefined$/],
      [() => wgvae.hub('a/b', { revisions: 'main' }), /^revisions: .*\(did you mean "revision"\?\)$/],
      [() => wgvae.hub('a/b', { variant: 'f16' }), /^variant: expected one of fp16, found "f16" \(did you mean "fp16"\?\)$/],
      [() => wgvae.createDecoder({ model, device: 'webgp' }), /^device: .*, found "webgp" \(did you mean "webgpu"\?\)$/],
      [() => wgvae.createDecoder({ model, device: {} }), /^device: expected a GPUDevice, or one of auto, webgpu, cpu, found Object$/],
      [() => wgvae.tune({ device: {}, gpu: {} }), /^device: expected a GPUDevice, or none, found Object$/],
      ...['nope', '/hub', 'ftp://a', 'localhost:80', 7].map((endpoint) => /** @type {[() => unknown, RegExp]} */ ([() => wgvae.hub('a/b', { endpoint }), /^endpoint: expected an http or https address, found ("[/:\w]+"|7)$/])),
      [() => worker.createDecoder({ model, signal: {} }), /^signal: expected an AbortSignal, found Object$/],
      // What a function would ignore is no option of it.
      [() => wgvae.tune({ memoryBudget: 1 }), /^memoryBudget: expected one of powerPreference, .*, found an option "memoryBudget"$/],
      [() => wgvae.selftest({ model, reference: model, clips: true }), /^clips: expected one of model, .*, found an option "clips"$/],
      // No error shows a token.
      ...[null, 7, 'a b'].map((token) => /** @type {[() => unknown, RegExp]} */ ([() => wgvae.hub('a/b', { token }), /^token: expected letters, digits and signs, found others$/])),
      [() => worker.createDecoder({ model: worker.hub('a/b', { fetch: () => {} }) }), /^fetch: expected none for a worker, which has its own, found one of this thread$/],
      [() => worker.planFor({ family: 'sd15', limits: { features: new Set() } }), /^limits: expected a GPUAdapter, or limits as in AdapterInfo, found Object$/],
    ];
    for (const [call, message] of wrong) assert.match((await failure(call)).replace('WgvaeError input: ', ''), message);
  });

  it('that are null or undefined count as not given', async () => {
    const none = 'WgvaeError input: worker: expected a runtime that has workers, or one of your own, found none';
    const [model, latents] = [new Blob(), { data: new Float32Array(4), shape: [1, 4, 1, 1] }];
    assert.equal(await failure(() => wgvae.preview(latents, { family: 'sd15', signal: null })), 'nothing');
    for (const call of [
      () => worker.inspect({ model, signal: null }),
      () => worker.preview(latents, { family: 'sd15', signal: null }),
      () => worker.createDecoder({ model, fetch: undefined, gpu: undefined, signal: null }),
      () => worker.selftest({ model, reference: model, device: undefined }),
    ]) assert.equal(await failure(call), none);
  });

  it('and arguments of every method are checked', async (t) => {
    const { config, latents } = await fixture('toy_odd');
    const vae = await wgvae.createVae({ model: new Uint8Array(modelFile(config, { encoder: true })), config, device: 'cpu' });
    t.after(() => vae.destroy());
    const first = (/** @type {AsyncIterable<unknown>} */ values) => values[Symbol.asyncIterator]().next();
    /** @type {[() => unknown, RegExp][]} */
    const wrong = [
      [() => vae.decode(undefined, { output: 'raw' }), /^latents: expected a file, .*found undefined$/],
      [() => vae.decode(latents, { outputs: 'raw' }), /^outputs: .*\(did you mean "output"\?\)$/],
      [() => vae.decode(latents, { output: 'imagedata' }), /^output: .*found "imagedata" \(did you mean "image-data"\?\)$/],
      [() => vae.decode(latents, { output: 'raw', tiling: 'blended' }), /^tiling: expected one of exact, .*\(did you mean "blend"\?\)$/],
      [() => vae.decode(latents, { output: 'raw', signal: {} }), /^signal: expected an AbortSignal, found Object$/],
      [() => vae.decode(latents, { canvas: {}, output: 'raw' }), /^output: expected none beside a canvas, found raw$/],
      [() => vae.decode(latents, { canvas: {}, output: 'nonsense' }), /^output: expected one of bitmap, .*, found "nonsense"$/],
      [() => vae.plan({ width: 8, height: 8, output: 'foo' }), /^output: expected one of bitmap, .*, found "foo"$/],
      [() => vae.planClip({ width: 8, height: 8 }), /video/],
      [() => vae.planClip({ width: 8, height: 8, output: 'texture' }), /^output: expected one of bitmap, .*, found "texture"$/],
      [() => vae.preview(latents, { output: 'raw', maxSize: 9 }), /^maxSize: .*\(did you mean "maxSide"\?\)$/],
      [() => vae.shapeOf(), /^latents: .*found undefined$/],
      [() => vae.shapeOf(latents, { signals: 1 }), /^signals: .*\(did you mean "signal"\?\)$/],
      [() => vae.plan({ width: 88.5, height: 8 }), /^width: expected a whole number below 2 \*\* 32, found 88.5$/],
      [() => vae.decode(latents, { index: 2 ** 33 }), /^index: expected a whole number below 2 \*\* 32, found 8589934592$/],
      [() => vae.planClip({ width: 8, height: 8, clipLatents: -1 }), /^clipLatents: expected a whole number below 2 \*\* 32, found -1$/],
      [() => vae.plan(), /^options: expected an object, found undefined$/],
      [() => vae.plan({ width: 8, height: 8, budget: 1 }), /^budget: .*\(did you mean "memoryBudget"\?\)$/],
      [() => vae.encode(), /^picture: .*found undefined$/],
      ...[['width', 88.5], ['width', '72'], ['height', -8], ['height', 0]].map(([side, value]) => /** @type {[() => unknown, RegExp]} */ ([
        () => vae.encode({ data: new Uint8ClampedArray(4 * 64), width: 8, height: 8, [side]: value }), new RegExp(`^${side} of the picture: expected a whole number above 0, found "?${value}"?$`),
      ])),
      [() => vae.encode({ data: Buffer.alloc(3 * 64), width: 8, height: 8 }), /^picture: expected 4 bytes for each of 8x8 pixels, found 192$/],
      [() => vae.encode({ data: new Uint16Array(4 * 64), width: 8, height: 8 }), /^data of the picture: expected a Uint8Array or Uint8ClampedArray of RGBA, found Uint16Array$/],
      [() => vae.encode(latents, { output: 'latents' }), /^output: expected one of mode, sample, moments/],
      [() => vae.encode(latents, { seed: -1 }), /^seed: expected a whole number/],
      [() => vae.planEncode({ width: 8, heights: 8 }), /^heights: .*\(did you mean "height"\?\)$/],
      [() => first(vae.clip(latents, { outputs: 'raw' })), /^outputs: .*\(did you mean "output"\?\)$/],
      [() => first(vae.encodeClip([], { index: 1 })), /^index: .*found an option "index"$/],
      [() => first(vae.encodeClip([], { pad: 'repat' })), /^pad: expected one of repeat, mirror, found "repat" \(did you mean "repeat"\?\)$/],
    ];
    for (const [call, message] of wrong) assert.match((await failure(call)).replace('WgvaeError input: ', ''), message);
  });

  it('say what is no config, no file, and no answer', async () => {
    const wasm = await readFile(join(DIST, 'web/pkg/wgvae_bg.wasm'));
    const said = async (/** @type {object} */ options) => (await failure(() => wgvae.inspect({ model: new Blob(['none']), wasm, ...options }))).replace('WgvaeError input: ', '');
    for (const config of [new Response('{}'), Promise.resolve({}), new Map(), [], 7]) {
      assert.equal(await said({ config }), `config: expected text, a plain object, a Blob, a URL or bytes, found ${typeof config === 'number' ? 'number' : config.constructor.name}`);
    }
    /** @type {Record<string, unknown>} */
    const cyclic = {};
    cyclic.self = cyclic;
    for (const config of [cyclic, { sizes: 7n }]) assert.match(await said({ config }), /^config: expected an object that JSON can hold, found one that it cannot: .*$/);
    class Config {
      _class_name = 'AutoencoderTiny';
      latent_channels = 4;
    }
    assert.equal(await failure(() => wgvae.planFor({ config: new Config(), width: 64, height: 64, wasm })), 'nothing', 'of a class');
    const advice = /^URL: expected an address, found "m\/vae.safetensors"; for a file, pass its address by pathToFileURL of node:url, or a Blob$/;
    assert.match(await said({ model: 'm/vae.safetensors' }), advice);
    assert.match(await said({ config: 'm/vae.safetensors' }), advice);
    for (const answer of [undefined, 'the file', {}]) {
      const fetch = async () => answer;
      const message = `fetch: expected a function that resolves to a Response, found ${answer === undefined ? 'undefined' : typeof answer === 'string' ? 'string' : 'Object'}`;
      for (const options of [{ model: 'https://host/a' }, { model: wgvae.hub('a/b') }, { config: 'https://host/a' }]) assert.equal(await said({ ...options, fetch }), message);
    }
  });

  it('leave errors of others as they are, whatever their code', () => {
    const theirs = Object.assign(new TypeError('Invalid URL'), { code: 'ERR_INVALID_URL' });
    assert.equal(wgvaeError(theirs), theirs);
    const ours = wgvaeError(Object.assign(new Error('too small'), { code: 'budget', smallest: 7 }));
    assert.deepEqual([ours instanceof WgvaeError, /** @type {any} */ (ours).smallest], [true, 7]);
  });

  it('say first that a text is no safetensors file, and what a tiny budget takes', async () => {
    const wasm = await readFile(join(DIST, 'web/pkg/wgvae_bg.wasm'));
    const text = new Blob(['# a text, and no model at all']);
    assert.match(await failure(() => wgvae.inspect({ model: text, wasm })), /^WgvaeError format: model: not a safetensors file: its header would have \d+ bytes/);
    const config = { _class_name: 'AutoencoderTiny', latent_channels: 4 };
    assert.match(await failure(() => wgvae.planFor({ config, width: 64, height: 64, memoryBudget: 1, wasm })), /^WgvaeError budget: .* which takes (less than 0\.1|about [1-9][\d.]*|about 0\.[1-9]\d*) s /);
  });

  it('take a wasm module in memory, which nothing fetches', async () => {
    // The bundle has started no module yet.
    const { version } = await import(`${new URL('package/dist/index.js', `file://${DIST}/`)}`);
    const refused = /^WgvaeError wasm: the browser refuses the wasm module: .{0,200}; where the page has a Content-Security-Policy,/;
    const moved = new ArrayBuffer(8);
    structuredClone(moved, { transfer: [moved] });
    for (const wasm of [new Uint8Array(10_000_000), moved]) assert.match(await failure(() => version(wasm)), refused);
    // A compiler may throw any other error, such as for want of memory.
    const { compile } = WebAssembly;
    try {
      WebAssembly.compile = async () => { throw new RangeError('no memory'); };
      assert.match(await failure(() => version(new Uint8Array(8))), /refuses the wasm module: no memory;/);
    } finally {
      WebAssembly.compile = compile;
    }
    assert.match(await version(await readFile(join(DIST, 'web/pkg/wgvae_bg.wasm'))), /^\d+\.\d+\.\d+/);
  });

  it('take a model by its name on the hub', async (t) => {
    const wasm = await readFile(join(DIST, 'web/pkg/wgvae_bg.wasm'));
    const { config } = await fixture('toy_odd');
    const server = await startServer({ root: DIST });
    t.after(() => server.close());
    publish({ server, store: server }, 'someone/small', { 'vae/config.json': Buffer.from(config), 'vae/diffusion_pytorch_model.safetensors': Buffer.from(modelFile(config)) });
    /** Another server plays the hub. @type {typeof fetch} */
    const elsewhere = (url, init) => fetch(String(url).replace('https://huggingface.co', server.origin), init);
    const found = await wgvae.inspect({ model: 'hf:someone/small/vae@main', fetch: elsewhere, wasm });
    assert.deepEqual([found.decode.possible, found.latent_channels, found.frames_per_latent], [true, 4, 1]);
    assert.match(await failure(() => wgvae.inspect({ model: 'hf:nobody', wasm })), /^WgvaeError input: model of the hub: expected owner\/name, found "nobody\/"$/);
    const bare = await failure(() => wgvae.inspect({ model: 'someone/small', fetch: elsewhere, wasm }));
    assert.match(bare, /^WgvaeError input: model: expected .*hf:owner\/name.*, found "someone\/small" \(did you mean "hf:someone\/small"\?/);
    // Paths of files stay addresses.
    assert.match(await failure(() => wgvae.inspect({ model: 'models/vae.safetensors', fetch: elsewhere, wasm })), /^WgvaeError input: URL: /);
  });

  it('take a tiny autoencoder by its short name, which tells its family', async (t) => {
    const wasm = await readFile(join(DIST, 'web/pkg/wgvae_bg.wasm'));
    const { config } = await fixture('toy_odd');
    const server = await startServer({ root: DIST });
    t.after(() => server.close());
    // Another network in place of the tiny one: as the family, it is an error.
    publish({ server, store: server }, 'madebyollin/taef1', { 'config.json': Buffer.from(config), 'diffusion_pytorch_model.safetensors': Buffer.from(modelFile(config)) });
    /** @type {typeof fetch} */
    const elsewhere = (url, init) => fetch(String(url).replace('https://huggingface.co', server.origin), init);
    const found = await wgvae.inspect({ model: 'hf:madebyollin/taef1', fetch: elsewhere, wasm });
    assert.equal(found.decode.possible, true);
    assert.match(await failure(() => wgvae.inspect({ model: 'taef1', fetch: elsewhere, wasm })), /family.*taef1.*AutoencoderKL/);
  });
});
