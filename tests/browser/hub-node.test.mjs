// @ts-check
// Models of the hub, and inspection of a model before it is loaded, without a browser.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';

import { hub, HubModel } from '../../web/src/hub.js';
import { openUrl } from '../../web/src/http.js';
import { Access } from '../../web/src/sources.js';
import { fixture, modelFile } from './fixtures.mjs';
import { COMMIT, publish } from './hub-server.mjs';
import { startServer } from './server.mjs';
import { DIST, ROOT } from './session.mjs';

/** @typedef {import('./server.mjs').Server} Server */

const STANDARD = 'diffusion_pytorch_model.safetensors';

/** Returns content in which all parts differ. @param {number} length */
const bytes = (length) => Uint8Array.from({ length }, (_, index) => (index * 31 + (index >> 8)) & 255);

/** Longer than the first request of a file. */
const LARGE = bytes(300_000);

/** @type {Server} */
let server;
/** A server of another origin. @type {Server} */
let store;
before(async () => {
  server = await startServer({ root: ROOT });
  store = await startServer({ root: ROOT, cors: true });
});
after(() => Promise.all([server.close(), store.close()]));
beforeEach(() => [server, store].forEach((place) => place.seen().forEach(({ path }) => place.forget(path))));

const access = () => new Access(new AbortController().signal, () => {}, false);

/** @param {Parameters<typeof publish>[2]} files @param {Parameters<typeof publish>[3]} [options] */
const put = (files, options) => publish({ server, store }, 'owner/name', files, options);

/** @param {import('../../web/src/index.js').HubOptions} [options] */
const model = (options) => hub('owner/name', { endpoint: server.origin, ...options });

/** @param {import('../../web/src/index.js').HubOptions} [options] */
const find = (options) => model(options).find(access());

/** Returns the error of a rejection. @param {Promise<unknown>} promise */
const failure = (promise) => promise.then(() => assert.fail('it was done'), (error) => error);

/**
 * Lets waits between two tries take no time. Returns their milliseconds.
 * @param {import('node:test').TestContext} t
 */
function waits(t) {
  /** @type {number[]} */
  const asked = [];
  const { setTimeout } = globalThis;
  t.mock.method(globalThis, 'setTimeout', (/** @type {() => void} */ task, /** @type {number} */ milliseconds) => {
    const isOurs = /retry\.js/.test(new Error().stack ?? '');
    if (!isOurs) return setTimeout(task, milliseconds);
    asked.push(milliseconds);
    return setImmediate(task);
  });
  return asked;
}

describe('which files a model consists of', () => {
  /**
   * @type {[string, string[], import('../../web/src/index.js').HubOptions, string[] | RegExp][]}
   */
  const choices = [
    ['a VAE of its own', ['README.md', 'config.json', STANDARD, 'diffusion_pytorch_model.fp16.safetensors'], {}, ['config.json', STANDARD]],
    ['in halves', ['config.json', STANDARD, 'diffusion_pytorch_model.fp16.safetensors'], { variant: 'fp16' }, ['config.json', 'diffusion_pytorch_model.fp16.safetensors']],
    ['in halves only', ['config.json', 'diffusion_pytorch_model.fp16.safetensors'], {}, ['config.json', 'diffusion_pytorch_model.fp16.safetensors']],
    ['not in halves', ['config.json', STANDARD], { variant: 'fp16' }, /hf:owner\/name: no diffusion_pytorch_model\.fp16\.safetensors/],
    ['a pipeline', ['model_index.json', 'config.json', 'unet/config.json', `unet/${STANDARD}`, 'vae/config.json', `vae/${STANDARD}`, 'whole.safetensors'], {}, ['vae/config.json', `vae/${STANDARD}`]],
    ['no pipeline, but a folder', ['vae/config.json', `vae/${STANDARD}`, `other/${STANDARD}`], {}, ['vae/config.json', `vae/${STANDARD}`]],
    ['a pipeline in a folder', ['a/model_index.json', 'a/vae/config.json', `a/vae/${STANDARD}`, STANDARD], { subfolder: 'a' }, ['a/vae/config.json', `a/vae/${STANDARD}`]],
    ['a folder', ['config.json', STANDARD, 'vae_1_0/config.json', `vae_1_0/${STANDARD}`], { subfolder: 'vae_1_0' }, ['vae_1_0/config.json', `vae_1_0/${STANDARD}`]],
    ['a folder that is not there', [STANDARD], { subfolder: 'vae' }, /hf:owner\/name\/vae: no such file or folder among the 1 files/],
    ['a file', ['a.safetensors', 'b.safetensors', 'config.json'], { file: 'b.safetensors' }, ['config.json', 'b.safetensors']],
    ['a file in a folder', ['x/y/b.safetensors', 'x/y/config.json', 'config.json'], { subfolder: 'x', file: 'y/b.safetensors' }, ['x/y/config.json', 'x/y/b.safetensors']],
    ['a file without a config', ['x/b.safetensors', 'config.json'], { file: 'x/b.safetensors' }, ['x/b.safetensors']],
    ['a file that is not there', [STANDARD], { file: 'other.safetensors' }, /other\.safetensors: no such file/],
    ['the only one', ['config.json', 'taew2_1.safetensors', 'taew2_1.pth'], {}, ['config.json', 'taew2_1.safetensors']],
    ['both halves of one', ['taesd_decoder.safetensors', 'taesd_encoder.safetensors'], {}, ['taesd_encoder.safetensors', 'taesd_decoder.safetensors']],
    ['one of several', ['b.safetensors', 'a.safetensors', 'c.safetensors'], {}, /3 \.safetensors files and none is .*\(a\.safetensors, b\.safetensors, \.\.\.\)/],
    ['pickles', ['config.json', 'diffusion_pytorch_model.bin'], {}, /hf:owner\/name: diffusion_pytorch_model\.bin is a Python pickle.*convert/],
    ['none', ['README.md'], {}, /no \.safetensors file/],
    ['nothing', [], {}, /hf:owner\/name: no \.safetensors file/],
  ];
  for (const [what, paths, options, expected] of choices) {
    it(what, async () => {
      put(Object.fromEntries(paths.map((path) => [path, path])));
      if (expected instanceof RegExp) {
        const { code, message } = await failure(find(options));
        assert.equal(code, 'format');
        return assert.match(message, expected);
      }
      const { config, weights, commit } = await find(options);
      assert.deepEqual([config, ...weights].flatMap((file) => file?.path ?? []), expected);
      assert.equal(commit, COMMIT);
      // Nothing but the listing was requested.
      assert.deepEqual([server.seen().length, store.seen().length], [1, 0]);
    });
  }

  it('shards, by their index', async () => {
    const names = ['a-00001-of-00002.safetensors', 'a-00002-of-00002.safetensors'];
    const index = JSON.stringify({ weight_map: { x: names[1], y: names[0], z: names[1] } });
    put({ 'vae/config.json': '{}', [`vae/${STANDARD}.index.json`]: index, [`vae/${STANDARD}`]: 'whole', [`vae/${names[0]}`]: LARGE, [`vae/${names[1]}`]: 'two', 'vae/other.safetensors': 'x' });
    const { weights } = await find();
    assert.deepEqual(weights.map(({ path }) => path), names.map((name) => `vae/${name}`));
    assert.equal((await weights[0].open()).length, LARGE.length);
    for (const weight_map of [{ x: '../../other/name/a.safetensors' }, { x: 'a/b.safetensors' }, { x: 'a\\b' }, { x: '..' }, { x: 7 }, {}, undefined]) {
      put({ [`${STANDARD}.index.json`]: JSON.stringify({ weight_map }) });
      assert.equal((await failure(find())).code, 'format', JSON.stringify(weight_map));
    }
    put({ [`${STANDARD}.index.json`]: 'no JSON' });
    assert.match((await failure(find())).message, /index\.json: no index of shards/);
  });

  it('by names that can be ones', async () => {
    for (const id of ['', 'name', 'a/b/c', '/b', 'a/', '../b', 'a/..', 'a/.b', 'a/b?c', 'a/b#c', 'a\\b/c', 'hf:a/b', 'https://host/a', 7, null, undefined]) {
      assert.throws(() => hub(/** @type {string} */ (id)), { code: 'input' }, `${id}`);
    }
    for (const options of [{ revision: '../x' }, { subfolder: 'a//b' }, { subfolder: '/a' }, { file: '..' }, { file: 'a/../b' }, { revision: /** @type {any} */ (7) }]) {
      assert.throws(() => model(options), { code: 'input' }, JSON.stringify(options));
    }
    for (const token of ['hf_x\n', '', 'a b', 'ä']) {
      assert.throws(() => model({ token }), ({ code, message }) => code === 'input' && !(token && message.includes(token)));
    }
    assert.ok(model() instanceof HubModel);
  });

  it('whatever the hub lists', async () => {
    const answers = ['no JSON', '[]', 'null', '{"siblings":7}', '<!doctype html>'];
    for (const listing of answers) {
      server.route('/api/models/owner/name/revision/main', { bytes: listing, type: listing.startsWith('<') ? 'text/html' : 'application/json' });
      assert.equal((await failure(find())).code, 'http', listing);
    }
    // Paths that lead elsewhere, and entries that are no files, are not listed.
    const paths = ['../config.json', 'a/../../config.json', 'a\\..\\config.json', 'C:config.json', 'a/\u001b[2J/config.json'];
    const siblings = [null, 7, {}, ...paths.map((rfilename) => ({ rfilename })), { rfilename: STANDARD, size: 'large' }];
    server.route('/api/models/owner/name/revision/main', { bytes: JSON.stringify({ sha: COMMIT, siblings }) });
    const { config, weights, commit } = await find();
    assert.deepEqual([config, weights.map(({ path }) => path), commit], [undefined, [STANDARD], COMMIT]);
  });

  it('no listing without a commit', async () => {
    const siblings = [{ rfilename: STANDARD }];
    // JSON drops undefined values.
    for (const sha of [undefined, null, 7, {}, [COMMIT], '', 'main', 'undefined', '../../x', COMMIT.slice(1), `${COMMIT}0`, `${COMMIT}\n`]) {
      server.route('/api/models/owner/name/revision/main', { bytes: JSON.stringify({ sha, siblings }) });
      const { code, message } = await failure(find());
      assert.equal(code, 'http');
      assert.match(message, /expected a commit as "sha": 40 or 64 hexadecimal digits, found /, `${sha}`);
    }
    server.route('/api/models/owner/name/revision/main', { bytes: JSON.stringify({ sha: COMMIT + COMMIT.slice(16), siblings }) });
    assert.equal((await find()).commit.length, 64);
  });
});

describe('a model of the hub', () => {
  it('is of the commit that was listed, whatever its files are called', async () => {
    const folder = 'a b+(c)/é';
    const { resolved } = put({ [`${folder}/config.json`]: '{"a":1}', [`${folder}/${STANDARD}`]: LARGE }, { revision: 'refs/pr/7' });
    const { config, weights } = await find({ revision: 'refs/pr/7', subfolder: folder });
    assert.equal(await config?.text(), '{"a":1}');
    const source = await weights[0].open();
    assert.deepEqual(await source.read(100_000, 50), LARGE.subarray(100_000, 100_050));
    assert.deepEqual(server.seen().map(({ path }) => path), ['/api/models/owner/name/revision/refs/pr/7', resolved(`${folder}/config.json`), resolved(`${folder}/${STANDARD}`)]);
    assert.deepEqual(server.seen().map(({ target }) => /%2F/.test(target)), [true, false, false]);
    assert.match(server.seen()[0].target, /\?blobs=true$/);
  });

  it('sends its token to the hub, and nowhere else', async () => {
    const { resolved, stored } = put({ 'config.json': '{}', [STANDARD]: LARGE }, { token: 'hf_secret' });
    const { config, weights } = await find({ token: 'hf_secret' });
    await config?.text();
    const source = await weights[0].open();
    for (const offset of [70_000, 140_000, 210_000]) assert.deepEqual(await source.read(offset, 9), LARGE.subarray(offset, offset + 9));
    assert.equal(server.seen(resolved(STANDARD)).length, 1);
    assert.ok(server.seen().every(({ authorization }) => authorization === 'Bearer hf_secret'));
    assert.deepEqual(store.seen().map(({ path, authorization }) => [path, authorization]), Array(4).fill([stored[STANDARD], undefined]));
  });

  it('asks by what it is given instead of fetch, with the token for the hub alone', async () => {
    put({ 'config.json': '{}', [STANDARD]: LARGE }, { token: 'hf_secret' });
    /** @type {[string, boolean][]} */
    const asked = [];
    /** @type {typeof fetch} */
    const proxy = (url, init) => {
      asked.push([new URL(`${url}`).origin, new Headers(init?.headers).has('Authorization')]);
      return fetch(url, init);
    };
    const read = async (/** @type {HubModel} */ model, /** @type {Access} */ access) => {
      const { weights } = await model.find(access);
      return (await (await weights[0].open()).read(70_000, 9)).length;
    };
    assert.equal(await read(model({ token: 'hf_secret', fetch: proxy }), access()), 9);
    assert.equal(await read(model({ token: 'hf_secret' }), new Access(new AbortController().signal, () => {}, false, proxy)), 9);
    const once = [[server.origin, true], [server.origin, true], [store.origin, false]];
    assert.deepEqual(asked, [...once, ...once]);
  });

  it('says what is to be done where the hub refuses', async () => {
    put({ 'config.json': '{}', [STANDARD]: LARGE }, { token: 'hf_secret' });
    /** @type {[import('../../web/src/index.js').HubOptions, number, RegExp][]} */
    const refusals = [
      [{}, 401, /^hf:owner\/name: the hub wants a token \(401\).*private or gated/],
      [{ token: 'hf_other' }, 403, /^hf:owner\/name: the hub refuses this token \(403\): accept the terms on the page of owner\/name/],
      [{ revision: 'v9' }, 404, /^hf:owner\/name: the hub has no such repository, revision or file \(404\)/],
    ];
    for (const [options, status, words] of refusals) {
      const error = await failure(find(options));
      assert.deepEqual([error.code, error.status, error.name], ['http', status, 'WgvaeError']);
      assert.match(error.message, words);
      assert.doesNotMatch(error.message, /hf_other/);
    }
    // Listed, and gone or locked since.
    const { resolved } = put({ 'config.json': '{}', [STANDARD]: LARGE });
    const { weights, config } = await find();
    for (const [path, asked] of /** @type {[string, () => Promise<unknown>][]} */ ([[STANDARD, () => weights[0].open()], ['config.json', () => /** @type {any} */ (config).text()]])) {
      for (const status of [401, 403, 404]) {
        server.route(resolved(path), { status });
        const error = await failure(asked());
        assert.deepEqual([error.code, error.status], ['http', status]);
        assert.ok(error.message.startsWith(`hf:owner/name/${path}: the hub `), error.message);
      }
    }
  });

  it('waits as long as the hub wants, and not for ever', async (t) => {
    const { resolved } = put({ 'config.json': '{}', [STANDARD]: LARGE });
    const listing = '/api/models/owner/name/revision/main';
    const asked = waits(t);
    const good = await (await fetch(server.url(listing))).text();
    for (const status of [429, 503]) {
      server.route(listing, { bytes: good, fails: (number) => (number % 2 === 1 ? status : undefined), headers: { 'Retry-After': '7' } });
      const { weights } = await find();
      assert.equal(weights.length, 1);
    }
    assert.deepEqual(asked, [7000, 7000]);
    server.route(resolved(STANDARD), { status: 429, headers: { 'Retry-After': '600' } });
    const { weights } = await find();
    asked.length = 0;
    const error = await failure(weights[0].open());
    assert.deepEqual([error.status, error.retryAfter, asked], [429, 600, []]);
    assert.match(error.message, /asked too often \(429\): try again in 600 s, or with a token/);
  });

  it('does not believe a file of another length than the hub lists', async () => {
    put({ [STANDARD]: LARGE }, { lengths: { [STANDARD]: LARGE.length + 1 } });
    const error = await failure((await find()).weights[0].open());
    assert.equal(error.code, 'http');
    assert.equal(error.message, `hf:owner/name/${STANDARD}: expected ${LARGE.length + 1} bytes as the hub lists it, found ${LARGE.length}`);
  });

  it('knows the length that another origin does not show', async () => {
    const { resolved } = put({ [STANDARD]: LARGE });
    /** @type {typeof fetch} */
    const hidden = async (url, init) => {
      const { body, status, headers } = await fetch(url, init);
      return new Response(body, { status, headers: [...headers].filter(([name]) => name !== 'content-range') });
    };
    const source = await (await find({ fetch: hidden })).weights[0].open();
    assert.deepEqual([source.length, (await source.read(290_000, 10_000)).length], [LARGE.length, 10_000]);
    assert.ok([...server.seen(resolved(STANDARD)), ...store.seen()].every(({ method }) => method === 'GET'));
  });

  it('stops when it is told to', async () => {
    const controller = new AbortController();
    server.route('/api/models/owner/name/revision/main', { bytes: '{', claim: 9_000_000, stopAfter: 1 });
    /** @type {typeof fetch} */
    const late = async (url, init) => {
      controller.abort(null);
      return fetch(url, init);
    };
    const found = model({ fetch: late }).find(new Access(controller.signal, () => {}, false)).then(() => 'done', (reason) => reason);
    assert.equal(await found, null);
  });
});

describe('where an address has led', () => {
  /** @param {import('./server.mjs').Behaviour} behaviour behaviour of the other origin */
  const open = async (behaviour) => {
    const target = store.route('/target', { bytes: LARGE, ...behaviour });
    return openUrl(new URL(server.route('/redirects', { location: target })), access());
  };
  const times = () => [server.seen('/redirects').length, store.seen('/target').length];

  it('is asked until it fails', async () => {
    const source = await open({ fails: (number) => (number === 2 ? 403 : undefined) });
    for (const offset of [70_000, 140_000, 210_000, 280_000]) assert.deepEqual(await source.read(offset, 9), LARGE.subarray(offset, offset + 9));
    // The third answer is an error: then the address is requested again, and redirects there again.
    assert.deepEqual(times(), [2, 6]);
  });

  it('is not asked again after what may pass', async (t) => {
    const asked = waits(t);
    for (const failure of /** @type {const} */ ([503, 'nonsense'])) {
      [server, store].forEach((place) => place.seen().forEach(({ path }) => place.forget(path)));
      const source = await open({ fails: (number) => (number === 1 ? failure : undefined) });
      assert.deepEqual(await source.read(70_000, 9), LARGE.subarray(70_000, 70_009));
      assert.deepEqual(times(), [2, 3], `${failure}`);
    }
    assert.deepEqual(asked, [300, 300]);
  });

  it('may have broken off, or become another file', async (t) => {
    waits(t);
    const source = await open({});
    store.route('/target', { bytes: LARGE, stopAfter: 4, stopFrom: 0 });
    assert.equal((await failure(source.read(70_000, 9))).code, 'truncated');
    store.route('/target', { bytes: LARGE, etag: '"another"' });
    assert.equal((await failure(source.read(70_000, 9))).code, 'changed');
    store.route('/target', { bytes: LARGE });
    assert.deepEqual(await source.read(70_000, 9), LARGE.subarray(70_000, 70_009));
  });

  it('is not named by errors', async () => {
    const source = await open({ fails: (number) => (number > 0 ? 404 : undefined) });
    const { message, status } = await failure(source.read(70_000, 9));
    assert.equal(status, 404);
    assert.match(message, /\/redirects: expected status/);
    assert.doesNotMatch(message, /target/);
  });
});

describe('inspect', () => {
  /** The package as it is published. @type {typeof import('../../web/src/index.js')} */
  let wgvae;
  /** @type {Uint8Array<ArrayBuffer>} */
  let wasm;
  let config = '';
  before(async () => {
    wgvae = await import(`${new URL('web/src/index.js', `file://${DIST}/`)}`);
    wasm = new Uint8Array(await readFile(join(DIST, 'web/pkg/wgvae_bg.wasm')));
    ({ config } = await fixture('toy_odd'));
  });

  it('says what a model of the hub is, and what it would download, from its headers', async () => {
    const file = Buffer.from(modelFile(config, { encoder: true }));
    const { stored } = put({ 'model_index.json': '{}', 'vae/config.json': config, [`vae/${STANDARD}`]: file });
    const found = await wgvae.inspect({ model: wgvae.hub('owner/name', { endpoint: server.origin }), wasm });
    assert.deepEqual([found.commit, found.files], [COMMIT, [{ name: STANDARD, bytes: file.length }]]);
    assert.equal(found.config.latent_channels, JSON.parse(config).latent_channels);
    assert.deepEqual([found.latent_channels, found.pixels_per_latent, found.has_time], [JSON.parse(config).latent_channels, 8, false]);
    for (const direction of [found.decode, found.encode]) {
      const { weight_bytes: bytes, download_bytes: download, ...others } = direction;
      assert.deepEqual(others, { possible: true, missing: [], unusable: null });
      assert.ok(bytes > 0 && bytes <= file.length, `${bytes} of ${file.length}`);
      assert.ok(download <= file.length && download + (64 << 10) >= bytes, `${download} of ${bytes}`);
    }
    assert.equal(store.seen().length, 1);
    assert.ok(store.bytes(Object.values(stored)[0]) <= 64 << 10, 'the first bytes only');
  });

  it('says what a half lacks, of files in memory, which are not downloaded', async () => {
    const { decode, encode } = await wgvae.inspect({ model: new Uint8Array(modelFile(config)), config, wasm });
    assert.deepEqual([decode.possible, decode.download_bytes, encode.possible, encode.weight_bytes], [true, 0, false, 0]);
    assert.ok(encode.missing.length > 0 || encode.unusable);
    const none = await failure(wgvae.inspect({ model: new Uint8Array(modelFile(config, { keep: (name) => name !== 'decoder.conv_out.bias' })), config, wasm }));
    assert.deepEqual([none.name, none.code], ['WgvaeError', 'missing-tensors']);
    assert.equal((await failure(wgvae.inspect({ model: new Uint8Array(9), wasm }))).code, 'format');
    assert.equal((await failure(wgvae.inspect({ model: server.url('/nowhere'), wasm }))).status, 404);
  });

  it('reads the same of shards, and of a server without ranges', async () => {
    const names = ['one.safetensors', 'two.safetensors'];
    const shard = (/** @type {number} */ index) => Buffer.from(modelFile(config, { keep: (name) => (name.length % 2 === 0) === (index === 0) }));
    const shards = names.map((name, index) => server.route(`/${name}`, { bytes: shard(index), ranges: false }));
    const found = await wgvae.inspect({ model: shards, config: JSON.parse(config), wasm });
    const lengths = [shard(0), shard(1)].map(({ length }) => length);
    assert.deepEqual(found.files.map(({ bytes }) => bytes), lengths);
    assert.deepEqual([found.decode.possible, found.decode.download_bytes], [true, lengths[0] + lengths[1]]);
  });

  it('stops when it is told to', async () => {
    const reason = new Error('enough');
    assert.equal(await failure(wgvae.inspect({ model: new Uint8Array(9), wasm, signal: AbortSignal.abort(reason) })), reason);
    const controller = new AbortController();
    /** @type {typeof fetch} */
    const never = () => {
      controller.abort(reason);
      return new Promise(() => {});
    };
    assert.equal(await failure(wgvae.inspect({ model: server.url('/x'), fetch: never, wasm, signal: controller.signal })), reason);
  });
});
