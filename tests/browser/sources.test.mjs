// @ts-check
// Sources of models: files in slices, addresses in ranges, the cache, and every way in which a
// server can be wrong.

import assert from 'node:assert/strict';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';

import { nameOf } from '../../web/src/answers.js';
import { decoderShapes, count, fixture, modelFile } from './fixtures.mjs';
import { publish } from './hub-server.mjs';
import { writeSafetensors } from './safetensors.mjs';
import { startServer } from './server.mjs';
import { inBrowsers, waitFor } from './session.mjs';

const MODEL = 'toy_odd';
const FILE = 'diffusion_pytorch_model.safetensors';

/** Most bytes fetched besides tensors: the first request, and gaps between neighbours. */
const SLACK = 256 << 10;

it('calls a file by the last part of its address', () => {
  const names = ['/a/one.npy', '/two%20words.npy', '/100%.npy', '/'].map((path) => nameOf(new URL(path, 'http://host')));
  assert.deepEqual(names, ['one.npy', 'two words.npy', '100%.npy', 'host']);
});

inBrowsers({ models: [MODEL] }, (session) => {
  const folder = () => session.model(`${MODEL}/`);
  const path = () => join(session.folder, MODEL, FILE);

  /**
   * @param {string} model
   * @param {{ cache?: boolean }} [options]
   */
  const attempt = (model, options = {}) => session.run((folder, model, options) => lab.attempt(folder, model, options), folder(), model, options);

  /**
   * Makes the decoder in the global `decoder` of `page` read its changed model again, and checks
   * its error.
   * @param {import('puppeteer-core').Page} page
   */
  const noticesTheChange = async (page) => {
    const found = await page.evaluate((folder) => lab.readAgain(folder, /** @type {any} */ (globalThis).decoder), folder());
    await session.closePage();
    assert.deepEqual(found, { code: 'changed', isTyped: true, left: 0, devices: 0 });
  };

  it('reads a Blob by slices', async () => {
    const found = await session.run(async (folder) => {
      const { device } = await lab.shared(folder);
      const before = lab.gpu.liveBytes();
      const model = await lab.blob(`${folder}diffusion_pytorch_model.safetensors`);
      let largest = 0;
      const { slice } = Blob.prototype;
      const whole = Blob.prototype.arrayBuffer;
      Blob.prototype.slice = /** @this {Blob} */ function (start = 0, end = this.size, type) {
        largest = Math.max(largest, end - start);
        return slice.call(this, start, end, type);
      };
      Blob.prototype.arrayBuffer = function () {
        if (this === model) throw new Error('the whole file was read');
        return whole.call(this);
      };
      const decoder = await lab.open(folder, { model, device });
      const image = await decoder.decode(await lab.blob(`${folder}latents.safetensors`), { output: 'image-data' });
      await decoder.destroy();
      Object.assign(Blob.prototype, { slice, arrayBuffer: whole });
      return { right: await lab.isRight(folder, image), part: largest / model.size, left: lab.gpu.liveBytes() - before };
    }, folder());
    assert.ok(found.part < 0.5, `a slice of ${found.part} of the file`);
    assert.deepEqual({ ...found, part: 0 }, { right: true, part: 0, left: 0 });
  });

  it('reads memory, and shards', async () => {
    const config = JSON.parse((await fixture(MODEL)).config);
    const half = decoderShapes(config).length >> 1;
    const names = decoderShapes(config).map(([name]) => name);
    // Two files with half of the tensors each.
    const shards = [names.slice(0, half), names.slice(half)].map((kept, index) => {
      const bytes = modelFile(JSON.stringify(config), { keep: (name) => kept.includes(name) });
      return session.server.route(`/shard-${index}.safetensors`, { bytes });
    });
    const found = await session.run(
      async (folder, shards) => {
        const { device } = await lab.shared(folder);
        const before = lab.gpu.liveBytes();
        const load = async (/** @type {any} */ model) => {
          const decoder = await lab.open(folder, { model, device });
          const image = await decoder.decode(`${folder}latents.safetensors`, { output: 'image-data' });
          await decoder.destroy();
          return lab.isRight(folder, image);
        };
        const buffer = await (await lab.blob(`${folder}diffusion_pytorch_model.safetensors`)).arrayBuffer();
        const right = [await load(buffer), await load(new Uint8Array(buffer)), await load(shards)];
        const { error } = await lab.outcome(load(shards[0]));
        return { right, code: error?.code, left: lab.gpu.liveBytes() - before };
      },
      folder(),
      shards,
    );
    assert.deepEqual(found, { right: [true, true, true], code: 'missing-tensors', left: 0 });
  });

  it('takes ComfyUI\'s latents as the VAE\'s own', async () => {
    const { latents } = await fixture(MODEL);
    const nothing = { shape: [0], data: new Float32Array(0) };
    const file = (/** @type {string} */ name) => writeSafetensors([[name, latents], ['latent_format_version_0', nothing]]);
    const comfy = session.server.route('/ComfyUI_00001_.latent', { bytes: file('latent_tensor') });
    const plain = session.server.route('/plain-latents.safetensors', { bytes: file('latents') });
    const found = await session.run(async (folder, comfy, plain) => {
      const { device } = await lab.shared(folder);
      const raw = async (/** @type {boolean} */ unscaled, /** @type {string[]} */ urls) => {
        const decoder = await lab.open(folder, { device, unscaled });
        const pictures = [];
        for (const url of urls) pictures.push(lab.base64((await decoder.decode(url, { output: 'raw' })).data));
        await decoder.destroy();
        return pictures;
      };
      const [scaled, own, again] = await raw(false, [plain, comfy, plain]);
      const [wanted] = await raw(true, [plain]);
      return { asWanted: own === wanted, differs: own !== scaled, andBack: again === scaled };
    }, folder(), comfy, plain);
    assert.deepEqual(found, { asWanted: true, differs: true, andBack: true });
  });

  it('reads an address by ranges', async () => {
    const url = session.server.route('/ranges.safetensors', { file: path() });
    const found = await attempt(url);
    assert.deepEqual(found, { right: true, notices: [], freed: true });
    const seen = session.server.seen('/ranges.safetensors');
    assert.ok(seen.length > 1 && seen.every(({ status, range }) => status === 206 && range), JSON.stringify(seen));
    const { size } = await stat(path());
    assert.ok(session.server.bytes('/ranges.safetensors') <= size + SLACK, `${session.server.bytes('/ranges.safetensors')} of ${size}`);
  });

  for (const chunked of [false, true]) {
    it(`streams an address without ranges${chunked ? ' and without a length' : ''}, and says so`, async () => {
      const name = `/stream-${chunked}.safetensors`;
      const found = await attempt(session.server.route(name, { file: path(), ranges: false, chunked }));
      assert.deepEqual(found, { right: true, notices: ['no-ranges'], freed: true });
      const { size } = await stat(path());
      // At most one restart from the beginning.
      assert.ok(session.server.bytes(name) <= 2 * size, `${session.server.bytes(name)} of ${size}`);
    });
  }

  it('fetches only the VAE of a larger checkpoint', async () => {
    const { config } = await fixture(MODEL);
    const hole = 48 << 20;
    const bytes = modelFile(config, { prefix: 'vae.', hole });
    const found = await attempt(session.server.route('/large.safetensors', { bytes }));
    assert.deepEqual(found, { right: true, notices: [], freed: true });
    const wanted = decoderShapes(JSON.parse(config)).reduce((sum, [, shape]) => sum + 4 * count(shape), 0);
    const sent = session.server.bytes('/large.safetensors');
    assert.ok(sent <= wanted + SLACK, `${sent} bytes were fetched, of ${bytes.length}; the decoder has ${wanted}`);
  });

  it('keeps what it fetched, and forgets it when told to', async () => {
    const name = '/cached.safetensors';
    let etag = '"first"';
    const url = session.server.route(name, { file: path(), etag: () => etag });
    const usage = () => session.run(() => lab.wgvae.cacheUsage());
    await session.run(() => lab.wgvae.clearCache());
    const { size } = await stat(path());

    assert.equal((await attempt(url, { cache: true })).right, true);
    const kept = await usage();
    assert.ok(kept.bytes >= 0.9 * size - SLACK && kept.bytes <= size + SLACK && kept.entries > 0, JSON.stringify(kept));

    session.server.forget(name);
    await session.closePage();
    assert.equal((await attempt(url, { cache: true })).right, true);
    assert.ok(session.server.bytes(name) <= SLACK, `${session.server.bytes(name)} bytes were fetched again`);

    etag = '"second"';
    session.server.forget(name);
    assert.equal((await attempt(url, { cache: true })).right, true);
    assert.ok(session.server.bytes(name) >= size - SLACK, 'another version is fetched');
    const again = await usage();
    assert.ok(again.bytes <= size + SLACK, `the old version is still kept: ${again.bytes}`);

    await session.run(() => lab.wgvae.clearCache());
    assert.deepEqual(await usage(), { bytes: 0, entries: 0 });
    session.server.forget(name);
    assert.equal((await attempt(url, { cache: true })).right, true);
    assert.ok(session.server.bytes(name) >= size - SLACK, 'a cleared cache is empty');
  });

  it('opens a model of the hub by its name, keeps it, and brings the token to the hub alone', async () => {
    const [server, store] = await Promise.all([0, 1].map(() => startServer({ root: session.folder, cors: true })));
    try {
      const files = { 'vae/config.json': (await fixture(MODEL)).config, [`vae/${FILE}`]: await readFile(path()), 'vae/other.safetensors': 'x' };
      const { stored } = publish({ server, store }, 'owner/name', files, { token: 'hf_secret' });
      await session.run(() => lab.wgvae.clearCache());
      const load = (/** @type {string} */ token) => session.run(async (folder, endpoint, token) => {
        const { device } = await lab.shared(folder);
        let downloaded = NaN;
        const { error, value } = await lab.outcome(async () => {
          const model = lab.wgvae.hub('owner/name', { endpoint, token });
          const options = { model, cache: true, device, fetch: globalThis.fetch };
          const { commit, decode } = await lab.wgvae.inspect(options);
          const decoder = await lab.wgvae.createDecoder({ ...options, onProgress: (progress) => { downloaded = progress.downloaded ?? downloaded; } });
          const image = await decoder.decode(`${folder}latents.safetensors`, { output: 'image-data' });
          await (decoder[Symbol.asyncDispose] ?? decoder.destroy).call(decoder);
          const after = await lab.outcome(decoder.decode(`${folder}latents.safetensors`));
          return { right: await lab.isRight(folder, image), commit, inspected: decode.download_bytes, after: after.error?.code };
        });
        return { ...value, status: error?.status, downloaded, kept: (await lab.wgvae.cachedFiles()).map(({ url, length }) => ({ path: new URL(url).pathname, length })) };
      }, folder(), server.origin, token);

      assert.equal((await load('hf_other')).status, 403);
      const { length } = files[`vae/${FILE}`];
      const kept = [{ path: `/owner/name/resolve/main/vae/${FILE}`, length }];
      const [first, second] = [await load('hf_secret'), await load('hf_secret')];
      for (const { right, after, kept: found } of [first, second]) assert.deepEqual([right, after, found], [true, 'destroyed', kept]);
      assert.ok(first.downloaded >= length - SLACK && first.downloaded <= length + SLACK, `${first.downloaded} of ${length}`);
      assert.ok((first.inspected ?? 0) >= length - SLACK, `${first.inspected} of ${length}`);
      assert.deepEqual([second.inspected, second.downloaded <= SLACK], [0, true]);
      assert.deepEqual(store.seen().map(({ path, authorization }) => [path, authorization]), store.seen().map(() => [stored[`vae/${FILE}`], undefined]));
      const asked = server.seen().filter(({ method }) => method !== 'OPTIONS');
      assert.deepEqual(new Set(asked.map(({ authorization }) => authorization)), new Set(['Bearer hf_other', 'Bearer hf_secret']));
    } finally {
      await Promise.all([server.close(), store.close()]);
    }
  });

  it('keeps what it needs of an address without ranges', async () => {
    const name = '/kept.safetensors';
    const { config } = await fixture(MODEL);
    const bytes = modelFile(config, { prefix: 'vae.', hole: 24 << 20 });
    const wanted = decoderShapes(JSON.parse(config)).reduce((sum, [, shape]) => sum + 4 * count(shape), 0);
    let etag = '"one"';
    const load = async (/** @type {{ holdAfter?: number }} */ how = {}) => {
      session.server.forget(name);
      const url = session.server.route(name, { bytes, ranges: false, etag: () => etag, ...how });
      const { right, freed, notices } = await attempt(url, { cache: true });
      assert.deepEqual([right, freed], [true, true]);
      await waitFor(() => session.server.seen(name).every(({ isOver }) => isOver));
      return { notices, sent: session.server.bytes(name) };
    };
    await session.run(() => lab.wgvae.clearCache());

    const first = await load();
    assert.ok(first.sent >= bytes.length - wanted, `${first.sent} of ${bytes.length} bytes`);
    const kept = await session.run(() => lab.wgvae.cacheUsage());
    assert.ok(kept.bytes >= wanted && kept.bytes <= wanted + SLACK, `${JSON.stringify(kept)}, the decoder has ${wanted} bytes`);

    // Nothing of the answer is needed: a client that stays would get all of it.
    const second = await load({ holdAfter: 1 << 20 });
    assert.ok(second.sent < 2 << 20, `${second.sent} of ${bytes.length} bytes were sent again`);

    etag = '"two"';
    const third = await load();
    assert.ok(third.sent >= bytes.length - wanted, 'another version is downloaded');
    assert.deepEqual([first, second, third].map(({ notices }) => notices), [['no-ranges'], [], ['no-ranges']]);
    const again = await session.run(() => lab.wgvae.cacheUsage());
    assert.deepEqual(again, kept, 'one version is kept');
  });

  it('keeps nothing of a stream that may have been cut short', async () => {
    const url = session.server.route('/no-length.safetensors', { file: path(), ranges: false, chunked: true, etag: '"one"' });
    await session.run(() => lab.wgvae.clearCache());
    assert.deepEqual(await attempt(url, { cache: true }), { right: true, notices: ['no-ranges'], freed: true });
    assert.deepEqual(await session.run(() => lab.wgvae.cacheUsage()), { bytes: 0, entries: 0 });
  });

  it('goes on with what it kept of a stream that broke off', async () => {
    const file = path();
    const { size } = await stat(file);
    await session.run(() => lab.wgvae.clearCache());
    const url = session.server.route('/half-kept.safetensors', { file, ranges: false, stopAfter: size >> 1 });
    assert.equal((await attempt(url, { cache: true })).code, 'truncated');
    const half = await session.run(() => lab.wgvae.cacheUsage());
    assert.ok(half.entries > 1 && half.bytes < size, JSON.stringify(half));
    session.server.route('/half-kept.safetensors', { file, ranges: false });
    assert.deepEqual(await attempt(url, { cache: true }), { right: true, notices: ['no-ranges'], freed: true });
  });

  it('keeps the versions of a file apart, also while both are written', async () => {
    const found = await session.run(async () => {
      await lab.wgvae.clearCache();
      const { openCachedFile } = /** @type {typeof import('../../web/src/cache.js')} */ (await import(/** @type {string} */ ('/web/src/cache.js')));
      /** @type {string[]} */
      const notices = [];
      const open = async (/** @type {string} */ validator) => {
        const file = await openCachedFile({ url: 'https://host/file', validator, length: 8 }, ({ message }) => notices.push(message));
        if (!file) throw new Error('this browser keeps no files');
        const read = async (/** @type {number} */ offset, /** @type {number} */ value) => (await file.getOr(offset, 4, async () => new Uint8Array(4).fill(value)))[0];
        return { file, read };
      };
      const one = await open('"one"');
      await one.read(0, 1);
      // Waits for writes in progress.
      await lab.wgvae.cacheUsage();
      const two = await open('"two"');
      await two.read(4, 2);
      await lab.wgvae.cacheUsage();
      // A reader of the old version in another tab.
      const old = [await one.read(0, 1), await one.read(4, 1)];
      await lab.wgvae.cacheUsage();
      const fresh = [await two.read(0, 2), await two.read(4, 2)];
      await lab.wgvae.cacheUsage();
      const isKept = (await open('"two"')).file.isKept;
      await lab.wgvae.clearCache();
      return { old, fresh, isKept, notices };
    });
    assert.deepEqual(found, { old: [1, 1], fresh: [2, 2], isKept: true, notices: [] });
  });

  it('keeps what comes after the cache was cleared, and says nothing', async () => {
    const found = await session.run(async () => {
      await lab.wgvae.clearCache();
      const { openCachedFile } = /** @type {typeof import('../../web/src/cache.js')} */ (await import(/** @type {string} */ ('/web/src/cache.js')));
      /** @type {string[]} */
      const notices = [];
      const file = await openCachedFile({ url: 'https://host/file', validator: '"one"', length: 8 }, ({ message }) => notices.push(message));
      const read = (/** @type {number} */ offset) => file?.getOr(offset, 4, async () => new Uint8Array(4));
      await read(0);
      await lab.wgvae.clearCache();
      await read(4);
      const { bytes, entries } = await lab.wgvae.cacheUsage();
      await lab.wgvae.clearCache();
      return { kept: bytes > 4, entries, notices };
    });
    assert.deepEqual(found, { kept: true, entries: 3, notices: [] });
  });

  it('counts and removes what closed pages left of streams, and no more', async () => {
    const found = await session.run(async () => {
      await lab.wgvae.clearCache();
      const ours = await (await navigator.storage.getDirectory()).getDirectoryHandle('wgvae', { create: true });
      const folder = await ours.getDirectoryHandle('stream-test', { create: true });
      const stream = await (await folder.getFileHandle('0', { create: true })).createWritable();
      await stream.write('abc');
      await stream.close();
      const inUse = await navigator.locks.request('stream-test', async () => {
        await lab.wgvae.clearCache();
        return lab.wgvae.cacheUsage();
      });
      const abandoned = await lab.wgvae.cacheUsage();
      await lab.wgvae.clearCache();
      const { error } = await lab.outcome(ours.getDirectoryHandle('stream-test'));
      return { inUse, abandoned, cleared: await lab.wgvae.cacheUsage(), error: error?.name };
    });
    const nothing = { bytes: 0, entries: 0 };
    assert.deepEqual(found, { inUse: nothing, abandoned: { bytes: 3, entries: 1 }, cleared: nothing, error: 'NotFoundError' });
  });

  it('keeps nothing without a validator, or unless asked to', async () => {
    await session.run(() => lab.wgvae.clearCache());
    await attempt(session.server.route('/anonymous.safetensors', { file: path(), etag: null }), { cache: true });
    await attempt(session.server.route('/plain.safetensors', { file: path() }));
    assert.deepEqual(await session.run(() => lab.wgvae.cacheUsage()), { bytes: 0, entries: 0 });
  });

  it('decodes all the same when there is no more room', async () => {
    const page = await session.open('/tests/blank.html');
    await page.waitForFunction(() => 'lab' in globalThis);
    await session.run(() => lab.wgvae.clearCache());
    if (session.kind === 'chromium') {
      const client = await page.createCDPSession();
      await client.send('Storage.overrideQuotaForOrigin', { origin: session.server.origin, quotaSize: 1 << 20 });
    } else {
      // Firefox cannot set the quota of a site while it runs.
      await page.evaluate(() => {
        FileSystemWritableFileStream.prototype.write = () => Promise.reject(new DOMException('no room', 'QuotaExceededError'));
      });
    }
    const byRanges = await attempt(session.server.route('/quota.safetensors', { file: path() }), { cache: true });
    const asStream = await attempt(session.server.route('/quota-stream.safetensors', { file: path(), ranges: false }), { cache: true });
    if (session.kind === 'chromium') {
      const client = await page.createCDPSession();
      await client.send('Storage.overrideQuotaForOrigin', { origin: session.server.origin });
    }
    await session.closePage();
    assert.deepEqual(byRanges, { right: true, notices: ['cache-full'], freed: true });
    assert.deepEqual(asStream, { right: true, notices: ['no-ranges', 'cache-full'], freed: true });
  });

  it('says what is wrong with an answer', async () => {
    const file = path();
    const { size } = await stat(file);
    const html = '<!doctype html><title>Sign in</title>'.repeat(4000);
    /** @type {[string, import('./server.mjs').Behaviour, string[]][]} */
    const answers = [
      ['404', { status: 404 }, ['http']],
      ['500', { status: 500 }, ['http']],
      ['a web page with ranges', { bytes: html, type: 'text/html' }, ['http']],
      ['a web page without ranges', { bytes: html, type: 'text/html', ranges: false }, ['http']],
      ['a web page that calls itself a file', { bytes: html }, ['format']],
      ['an empty file', { bytes: '' }, ['format', 'http', 'truncated']],
      ['half a file', { bytes: (await readFile(file)).subarray(0, size >> 1) }, ['format', 'truncated']],
      ['half a file without ranges', { bytes: (await readFile(file)).subarray(0, size >> 1), ranges: false }, ['format', 'truncated']],
      ['ranges that are too short', { file, shortBy: 100 }, ['truncated', 'http']],
      ['ranges of another place', { file, claimFrom: 1 }, ['http']],
      ['ranges that break off', { file, stopAfter: 30_000, stopFrom: 1 }, ['truncated', 'network']],
      ['a first answer that breaks off', { file, stopAfter: 30_000 }, ['truncated', 'network']],
      ['a stream that breaks off', { file, ranges: false, stopAfter: size >> 1 }, ['truncated', 'network']],
      ['a stream that promises too much', { file, ranges: false, claim: size + 1000 }, ['truncated', 'format']],
      ['a stream that promises too little', { file, ranges: false, claim: size - 1000 }, ['truncated', 'format']],
      ['another file from the second request on', { file, etag: (number) => `"${Math.min(number, 1)}"` }, ['changed']],
    ];
    for (const [what, behaviour, codes] of answers) {
      const name = `/bad-${what.replaceAll(' ', '-')}`;
      const { code, isTyped, freed, message, right } = await attempt(session.server.route(name, behaviour));
      assert.ok(codes.includes(String(code)), `${what}: expected ${codes}, found ${code}: ${message} ${right ?? ''}`);
      assert.deepEqual([isTyped, freed], [true, true], `${what}: typed, and all GPU memory is free`);
    }
  });

  it('does not take the length of a compressed answer of another origin for the file\'s', async () => {
    const other = await startServer({ root: session.folder, cors: true });
    try {
      const { right, code, freed } = await attempt(other.route('/model.safetensors', { file: path(), ranges: false, gzip: true }));
      // Chromium itself rejects the compressed answer to a request for an uncompressed one.
      assert.deepEqual([right, code, freed], session.kind === 'firefox' ? [true, undefined, true] : [undefined, 'network', true]);
    } finally {
      await other.close();
    }
  });

  it('says that the page does not allow the module', async () => {
    const html = '<!doctype html><link rel="icon" href="data:,"><script type="module" src="/tests/lab.js"></script>';
    session.server.route('/strict.html', { bytes: html, type: 'text/html', headers: { 'Content-Security-Policy': "script-src 'self'" } });
    const page = await session.open('/strict.html');
    // Evaluating text is forbidden there: the called code has to be a function of the page.
    await page.waitForFunction(() => 'lab' in globalThis).catch(() => {});
    const found = await session.run(async () => (await lab.outcome(lab.wgvae.families())).error);
    await session.closePage();
    assert.deepEqual([found?.code, found?.isTyped], ['wasm', true]);
    assert.match(found.message, /wasm-unsafe-eval/);
  });

  it('says that nobody answers', async () => {
    const gone = await import('./server.mjs').then(({ startServer }) => startServer({ root: '.' }));
    await gone.close();
    const found = await attempt(gone.url('/model.safetensors'));
    assert.deepEqual([found.code, found.freed], ['network', true]);
    assert.match(found.message, /no answer \(.*\); .*\(CORS\): let it send Access-Control-Allow-Origin, .*`fetch`/);
  });

  it('takes its time with a slow server, and stops when told to', async () => {
    const slow = session.server.route('/slow.safetensors', { file: path(), delay: 20, pace: 2 });
    assert.equal((await attempt(slow)).right, true);
    const stuck = session.server.route('/stuck.safetensors', { file: path(), delay: 60_000 });
    const waited = await session.run(async (folder, model) => {
      const [start, before] = [performance.now(), lab.gpu.liveBytes()];
      const { error } = await lab.outcome(lab.open(folder, { model, signal: AbortSignal.timeout(300) }));
      return { name: error?.name, seconds: (performance.now() - start) / 1000, left: lab.gpu.liveBytes() - before };
    }, folder(), stuck);
    assert.ok(waited.seconds < 30, `stopped after ${waited.seconds} s`);
    assert.deepEqual({ ...waited, seconds: 0 }, { name: 'TimeoutError', seconds: 0, left: 0 });
  });

  it('notices that an address without ranges gives another file', async () => {
    const bytes = await readFile(path());
    const url = session.server.route('/replaced.safetensors', { bytes, ranges: false, etag: null });
    const page = await session.open('/tests/blank.html');
    await page.waitForFunction(() => 'lab' in globalThis);
    await page.evaluate(async (folder, model) => {
      Object.assign(globalThis, { decoder: await lab.open(folder, { model }) });
    }, folder(), url);
    session.server.route('/replaced.safetensors', { bytes: Buffer.concat([bytes, Buffer.alloc(1)]), ranges: false, etag: null });
    await noticesTheChange(page);
  });

  it('notices that a file was changed while it was open', async () => {
    const page = await session.open('/tests/blank.html');
    await page.waitForFunction(() => 'lab' in globalThis);
    const chosen = join(session.folder, 'chosen.safetensors');
    await writeFile(chosen, await readFile(path()));
    const input = /** @type {import('puppeteer-core').ElementHandle<HTMLInputElement>} */ (
      await page.evaluateHandle(() => {
        const input = Object.assign(document.createElement('input'), { type: 'file' });
        document.body.append(input);
        return input;
      })
    );
    await input.uploadFile(chosen);
    await page.evaluate(async (folder) => {
      const shared = /** @type {any} */ (globalThis);
      const model = document.querySelector('input')?.files?.[0];
      shared.decoder = await lab.open(folder, { model });
    }, folder());
    await writeFile(chosen, (await readFile(chosen)).subarray(0, 100_000));
    await noticesTheChange(page);
  });
});
