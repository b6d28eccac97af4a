// @ts-check
// Sources and the start of the module where no browser is needed: Node's web APIs suffice.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';

import { WgvaeError } from '../../web/src/errors.js';
import { openUrl } from '../../web/src/http.js';
import { secondsToWait, withRetries } from '../../web/src/retry.js';
import { Access, openSource } from '../../web/src/sources.js';
import { openStream } from '../../web/src/stream.js';
import { startServer } from './server.mjs';
import { DIST, ROOT } from './session.mjs';

const URL_OF_A_FILE = new URL('http://host/model.safetensors');

/** @param {AbortSignal} [signal] @param {import('../../web/src/cache.js').Notify} [notify] */
const access = (signal = new AbortController().signal, notify = () => {}) => new Access(signal, notify, false);

describe('memory', () => {
  it('is not read for a call that was aborted', async () => {
    const controller = new AbortController();
    const source = await openSource(new Uint8Array(8), access(controller.signal), { what: 'model' });
    assert.equal((await source.read(0, 4)).length, 4);
    controller.abort(new Error('enough'));
    await assert.rejects(async () => source.read(4, 4), /enough/);
  });
});

describe('a web page in place of a file', () => {
  it('is not downloaded on', async () => {
    let isCancelled = false;
    const body = new ReadableStream({ cancel: () => { isCancelled = true; } });
    const response = new Response(body, { headers: { 'Content-Type': 'text/html; charset=utf-8' } });
    const again = async () => response;
    await assert.rejects(openStream(URL_OF_A_FILE, response, again, access()), { code: 'http' });
    assert.equal(isCancelled, true);
  });
});

describe('the length of an answer', () => {
  const answer = (/** @type {ResponseType} */ type, /** @type {Record<string, string>} */ headers) => {
    const response = new Response(new Uint8Array(8), { headers: { 'Content-Length': '5', ...headers } });
    Object.defineProperty(response, 'type', { value: type });
    return response;
  };

  it('is what came where the header may be that of a compressed answer', async (t) => {
    // Node 20 has none.
    const isMissing = !('navigator' in globalThis);
    if (isMissing) Object.assign(globalThis, { navigator: {} });
    t.after(() => isMissing && Reflect.deleteProperty(globalThis, 'navigator'));
    for (const [type, headers, length] of /** @type {[ResponseType, Record<string, string>, number][]} */ ([
      ['basic', {}, 5],
      ['basic', { 'Content-Encoding': 'gzip' }, 8],
      ['cors', {}, 8],
      ['cors', { 'Content-Encoding': 'gzip' }, 8],
      ['cors', { 'Content-Encoding': 'identity' }, 5],
    ])) {
      const response = answer(type, headers);
      const source = await openStream(URL_OF_A_FILE, response, async () => response, access());
      assert.equal(source.length, length, `${type} ${JSON.stringify(headers)}`);
      source.release?.();
    }
  });
});

describe('a range that does not tell the length of its file', () => {
  /** Opens a file whose length only HEAD tells, by these answers. @param {Response[]} answers */
  const open = (...answers) => {
    const fetch = async (/** @type {string | URL} */ _, /** @type {RequestInit | undefined} */ init) => (
      init?.method === 'HEAD' ? answers.shift() ?? assert.fail('asked too often') : new Response(new Uint8Array(8), { status: 206 }));
    return openUrl(URL_OF_A_FILE, new Access(new AbortController().signal, () => {}, false, fetch));
  };

  it('is asked for again if the server is busy', async () => {
    const busy = new Response(null, { status: 503, statusText: 'Service Unavailable' });
    assert.equal((await open(busy, new Response(null, { headers: { 'Content-Length': '8' } }))).length, 8);
  });

  it('is an error that says why', async () => {
    const failure = (/** @type {Response} */ answer) => open(answer).then(() => 'opened', ({ code, status, message }) => [code, status, message.replace(`${URL_OF_A_FILE}: `, '')]);
    assert.deepEqual(await failure(new Response(null, { status: 405, statusText: 'Method Not Allowed' })), ['http', 405, 'expected status 200 to HEAD, found 405 Method Not Allowed']);
    assert.deepEqual(await failure(new Response(null)), ['http', undefined, 'expected an answer that tells the length of the file, found none']);
  });
});

describe('no answer', () => {
  it('of another origin may be its ban on reading, and the error says what to do', async (t) => {
    t.after(() => Reflect.deleteProperty(globalThis, 'location'));
    const failing = () => new Access(new AbortController().signal, () => {}, false, async () => { throw new TypeError('Failed to fetch'); });
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const message = async () => {
      const opening = openUrl(URL_OF_A_FILE, failing()).then(() => 'opened', (error) => `${error.code}: ${error.message}`);
      for (let tries = 0; tries < 3; tries += 1) {
        await new Promise((resolve) => setImmediate(resolve));
        t.mock.timers.tick(1000);
      }
      return opening;
    };
    const place = (/** @type {string} */ href) => Object.defineProperty(globalThis, 'location', { value: new URL(href), configurable: true });
    // Node has no origin.
    assert.equal(await message(), `network: ${URL_OF_A_FILE}: no answer (Failed to fetch)`);
    place('http://host/page');
    assert.equal(await message(), `network: ${URL_OF_A_FILE}: no answer (Failed to fetch)`);
    place('http://page/');
    assert.match(await message(), /^network: .*no answer \(Failed to fetch\); .*\(CORS\): let it send Access-Control-Allow-Origin, .*`fetch`/);
  });
});

describe('a server that limits requests', () => {
  /** @type {import('./server.mjs').Server} */
  let server;
  before(async () => { server = await startServer({ root: ROOT }); });
  after(() => server.close());

  it('is believed when it says how long to wait, up to a limit', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const waits = async (/** @type {number | undefined} */ retryAfter) => {
      /** @type {string[]} */
      const notices = [];
      let tries = 0;
      const task = async () => {
        tries += 1;
        if (tries === 1) throw new WgvaeError('http', 'busy', { status: 429, ...(retryAfter !== undefined && { retryAfter }) });
      };
      const done = withRetries(task, new AbortController().signal, ({ code }) => notices.push(code)).then(() => 'done', ({ code }) => code);
      const settled = () => new Promise((resolve) => setImmediate(resolve));
      await settled();
      const shortest = 1000 * (retryAfter ?? 0.3);
      t.mock.timers.tick(shortest - 1);
      await settled();
      const early = tries;
      t.mock.timers.tick(1);
      return { early, result: await done, tries, notices };
    };
    assert.deepEqual(await waits(undefined), { early: 1, result: 'done', tries: 2, notices: [] });
    assert.deepEqual(await waits(30), { early: 1, result: 'done', tries: 2, notices: ['waiting'] });
    assert.deepEqual(await waits(3600), { early: 1, result: 'http', tries: 1, notices: [] });
  });

  it('is understood', async () => {
    const now = Date.parse('Sun, 01 Nov 2026 00:00:00 GMT');
    const said = [null, '7', ' 7 ', 'Sun, 01 Nov 2026 00:00:09 GMT', 'Sat, 31 Oct 2026 00:00:00 GMT', 'soon', '-7s'];
    assert.deepEqual(said.map((header) => secondsToWait(header, now)), [undefined, 7, 7, 9, 0, undefined, undefined]);
    const url = server.route('/limited', { status: 429, headers: { 'Retry-After': '600' } });
    const error = await openUrl(new URL(url), access()).catch((error) => error);
    assert.deepEqual([error.code, error.status, error.retryAfter], ['http', 429, 600]);
    assert.match(error.message, /429.*a limit on how often.*in 600 s/);
    assert.equal(server.seen('/limited').length, 1);
  });
});

describe('the module', () => {
  /** @type {import('./server.mjs').Server} */
  let server;
  before(async () => { server = await startServer({ root: DIST }); });
  after(() => server.close());

  /**
   * Returns a module of the package that has not started anything yet.
   * @returns {Promise<typeof import('../../web/src/wasm.js')>}
   */
  const fresh = () => import(`${new URL('web/src/wasm.js', `file://${DIST}/`)}?${Math.random()}`);

  it('says why it does not start, and starts when it can', async () => {
    const { startWasm } = await fresh();
    const code = (/** @type {any} */ source) => startWasm(source).then(() => 'started', ({ code }) => code);
    const gone = await startServer({ root: DIST });
    await gone.close();
    assert.equal(await code(gone.url('/wgvae_bg.wasm')), 'network');
    assert.equal(await code(server.url('/nowhere.wasm')), 'http');
    assert.equal(await code(server.url('/index.html')), 'wasm');
    assert.equal(await code(new Uint8Array(8)), 'wasm');
    assert.equal(await code(server.url('/web/pkg/wgvae_bg.wasm')), 'started');
    assert.ok((await startWasm()).families().includes('sdxl'));
  });

  it('starts from bytes and from an answer of any type', async () => {
    const bytes = await readFile(join(DIST, 'web/pkg/wgvae_bg.wasm'));
    for (const source of [bytes, new Response(bytes), new Response(bytes, { headers: { 'Content-Type': 'application/wasm' } }), await WebAssembly.compile(bytes)]) {
      const { startWasm } = await fresh();
      assert.match((await startWasm(source)).version(), /^\d+\./);
    }
  });
});
