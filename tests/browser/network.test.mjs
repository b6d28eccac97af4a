// @ts-check
// Requests that fail: by chance, for good, on the way to another origin, and one of several.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';

import { WgvaeError } from '../../web/src/errors.js';
import { withRetries } from '../../web/src/retry.js';
import { startServer } from './server.mjs';
import { DIST, inBrowsers, waitFor } from './session.mjs';

const MODEL = 'toy_direct';
const FILE = 'diffusion_pytorch_model.safetensors';

/** @typedef {import('./server.mjs').Failure} Failure */

it('tries again what a busy server refuses, and nothing that it refuses for good', async () => {
  const tries = async (/** @type {number} */ status) => {
    let count = 0;
    const task = async () => {
      count += 1;
      if (count === 1) throw new WgvaeError('http', 'refused', { status });
    };
    await withRetries(task, new AbortController().signal, () => {}).catch(() => {});
    return count;
  };
  const statuses = [400, 401, 403, 404, 410, 429, 500, 501, 502, 503, 504];
  const counts = await Promise.all(statuses.map(tries));
  assert.deepEqual(statuses.filter((_, index) => counts[index] === 2), [429, 500, 502, 503, 504]);
});

inBrowsers({ models: [MODEL] }, (session) => {
  const folder = () => session.model(`${MODEL}/`);
  const path = () => join(session.folder, MODEL, FILE);

  /** @param {string | string[]} model */
  const attempt = (model) => session.run((folder, model) => lab.attempt(folder, model), folder(), model);

  /**
   * Returns how often each range of `path` was requested, without the first request.
   * @param {string} path
   */
  const asked = (path) => {
    /** @type {Record<string, number>} */
    const times = {};
    for (const { range } of session.server.seen(path).slice(1)) times[`${range}`] = (times[`${range}`] ?? 0) + 1;
    return Object.values(times);
  };

  it('asks again for a range that failed once, the first one, too', async () => {
    /** @type {Failure[]} */
    const failures = [503, 'nonsense', 'cut'];
    for (const failure of failures) {
      const name = `/once-${failure}`;
      const url = session.server.route(name, { file: path(), fails: (number) => (number === 1 ? failure : undefined) });
      assert.deepEqual(await attempt(url), { right: true, notices: [], freed: true }, `${failure}`);
      assert.equal(Math.max(...asked(name)), 2, `${failure}`);
      const opened = session.server.route(`${name}-first`, { file: path(), fails: (number) => (number === 0 ? failure : undefined) });
      assert.deepEqual(await attempt(opened), { right: true, notices: [], freed: true }, `${failure} at first`);
    }
  });

  it('asks three times, and not for what cannot become better', async () => {
    /** @type {[Failure | 'changed', string, number][]} */
    const failures = [[503, 'http', 3], ['nonsense', 'network', 3], ['cut', 'truncated', 3], [403, 'http', 1], [404, 'http', 1], ['changed', 'changed', 1]];
    for (const [failure, code, times] of failures) {
      const name = `/always-${failure}`;
      /** @type {import('./server.mjs').Behaviour} */
      const bad = failure === 'changed' ? { etag: (number) => `"${Math.min(number, 1)}"` } : { fails: (number) => (number > 0 ? failure : undefined) };
      const found = await attempt(session.server.route(name, { file: path(), ...bad }));
      assert.deepEqual([found.code, found.isTyped, found.freed], [code, true, true], `${failure}: ${found.message}`);
      if (typeof failure === 'number') assert.equal(found.status, failure);
      assert.equal(Math.max(...asked(name)), times, `${failure}`);
    }
  });

  it('stops at once when told to between two tries', async () => {
    const name = '/between.safetensors';
    const url = session.server.route(name, { file: path(), fails: (number) => (number > 0 ? 503 : undefined) });
    const found = await session.run(async (folder, model) => {
      await lab.shared(folder);
      const controller = new AbortController();
      const { setTimeout } = globalThis;
      // A wait that would never end by itself.
      const wait = (/** @type {() => void} */ task, /** @type {number} */ milliseconds) => {
        if (milliseconds < 300) return setTimeout(task, milliseconds);
        controller.abort();
        return 0;
      };
      Object.assign(globalThis, { setTimeout: wait });
      const found = await lab.attempt(folder, model, { signal: controller.signal });
      Object.assign(globalThis, { setTimeout });
      return found;
    }, folder(), url);
    assert.deepEqual([found.name, found.freed], ['AbortError', true]);
    assert.equal(Math.max(...asked(name)), 1);
  });

  it('follows a redirect to an origin that lets it read, and says that another does not', async () => {
    const servers = await Promise.all([true, false].map((cors) => startServer({ root: session.folder, cors })));
    try {
      const [open, closed] = servers.map((server, index) => session.server.route(`/moved-${index}`, { location: server.url(`/${MODEL}/${FILE}`) }));
      assert.deepEqual(await attempt(open), { right: true, notices: [], freed: true });
      const found = await attempt(closed);
      assert.deepEqual([found.code, found.isTyped, found.freed], ['network', true, true]);
    } finally {
      await Promise.all(servers.map((server) => server.close()));
    }
    // Chromium reports that itself.
    if (session.kind === 'chromium') session.expectComplaint(/blocked by CORS policy/);
  });

  it('says of the module, and of a worker, that another origin has to let it read', async () => {
    const closed = await startServer({ root: DIST });
    try {
      const found = await session.run(async (wasm, script, entry) => {
        const { families } = /** @type {typeof import('../../web/src/index.js')} */ (await import(entry));
        const module = await lab.outcome(families(wasm));
        const bytes = await (await fetch('/package/dist/worker.js')).text();
        // As if the package came from a CDN.
        const own = URL.createObjectURL(new Blob([bytes.replaceAll('import.meta.url', JSON.stringify(script))], { type: 'text/javascript' }));
        const remote = await lab.outcome((await import(own)).families());
        return [module.error, remote.error].map(({ code, message }) => `${code}: ${message}`);
      }, closed.url('/package/pkg/wgvae_bg.wasm'), closed.url('/package/dist/worker.js'), session.server.url('/package/dist/index.js'));
      assert.match(found[0], /^network: the wasm module could not be fetched: .*\(CORS\): let it send Access-Control-Allow-Origin, or use a copy on this origin$/);
      assert.match(found[1], /^internal: the worker did not start: .*; if the package comes from another origin, pass a `worker` of your own that imports wgvae\/worker-host$/);
    } finally {
      await session.closePage();
      await closed.close();
    }
  });

  it('leaves nothing when one of several shards fails', async () => {
    // A stream that is put aside whole, because its length is unknown.
    const stream = { file: path(), ranges: false, chunked: true };
    const good = session.server.route('/good-shard.safetensors', stream);
    const late = session.server.route('/late-shard.safetensors', { ...stream, delay: 500 });
    const missing = session.server.route('/missing-shard.safetensors', { status: 404 });
    const lateMissing = session.server.route('/late-missing-shard.safetensors', { status: 404, delay: 500 });
    for (const shards of [[good, lateMissing], [late, missing]]) {
      const found = await attempt(shards);
      assert.deepEqual([found.code, found.status, found.isTyped, found.freed], ['http', 404, true, true]);
      // The error does not wait: the stream may still arrive.
      await waitFor(() => session.server.bytes('/late-shard.safetensors') > 0 || shards.includes(good));
      assert.equal(await session.run(() => lab.until(async () => (await lab.streamFolders()).length === 0)), true, 'no folder is left');
    }
  });
});
