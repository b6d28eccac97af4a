// @ts-check
// Clips as streams, in Node on the CPU: frames that are read, pictures that are written, and their
// ends, also in a thread. video-frames.test.mjs has frames of video, and a browser's worker.

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { after, before, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';

import { clipModelFile } from './clip-models.mjs';
import { clipFixture } from './fixtures.mjs';
import { writeSafetensors } from './safetensors.mjs';
import { startServer } from './server.mjs';
import { DIST } from './session.mjs';

const [COLUMNS, ROWS] = [32, 16];

/**
 * @template T
 * @param {AsyncIterable<T>} values
 */
async function all(values) {
  const found = [];
  for await (const value of values) found.push(value);
  return found;
}

/** @param {number} seed */
function pixels(seed) {
  return { data: Uint8ClampedArray.from({ length: 4 * COLUMNS * ROWS }, (_, at) => (at % 4 === 3 ? 255 : (at * 37 * seed) % 251)), width: COLUMNS, height: ROWS };
}

/** Program of a thread that stands for a browser's worker. */
const THREAD = `
const { parentPort } = require('node:worker_threads');
globalThis.postMessage = (...parameters) => parentPort.postMessage(...parameters);
globalThis.addEventListener = (type, listener) => parentPort.addEventListener(type, listener);
import(${JSON.stringify(`file://${DIST}/web/src/worker-host.js`)}).then(() => parentPort.on('message', async (message) => {
  if (message !== 'memory') return;
  require('node:v8').setFlagsFromString('--expose-gc');
  const gc = require('node:vm').runInNewContext('gc');
  gc();
  await new Promise(setImmediate);
  gc();
  parentPort.postMessage({ memory: process.memoryUsage().arrayBuffers });
}));
`;

/** A browser's worker, as far as the package uses one. */
class WebWorker {
  #thread = new Worker(THREAD, { eval: true });
  /** @type {((event: { data: unknown }) => void)[]} */
  #listeners = [];

  /** @param {any[]} parameters */
  postMessage(...parameters) {
    this.#thread.postMessage(parameters[0], parameters[1]);
  }

  /** @param {string} type @param {(event: { data: unknown }) => void} listener */
  addEventListener(type, listener) {
    if (type === 'message') this.#listeners.push(listener);
    this.#thread.on(type, (data) => listener({ data }));
  }

  /** Hands a message to this side, as if the thread had sent it. @param {unknown} data */
  tell(data) {
    for (const listener of this.#listeners) listener({ data });
  }

  /** Returns the bytes of arrays in the thread. @returns {Promise<number>} */
  memory() {
    return new Promise((resolve) => {
      const hear = (/** @type {any} */ message) => {
        if (message?.memory === undefined) return;
        this.#thread.off('message', hear);
        resolve(message.memory);
      };
      this.#thread.on('message', hear);
      this.#thread.postMessage('memory');
    });
  }

  terminate() {
    return this.#thread.terminate();
  }
}

/**
 * Returns a stream that gives pictures and then no more without an end, and what became of it.
 * @param {any[]} given
 */
function stalledStream(given = []) {
  const waiting = [...given];
  const seen = { closed: 0, cancels: 0 };
  let isStalled = () => {};
  const stalled = new Promise((resolve) => { isStalled = () => resolve(undefined); });
  const stream = new ReadableStream({
    pull(controller) {
      const next = waiting.shift();
      if (next) return controller.enqueue({ ...next, close: () => { seen.closed += 1; } });
      isStalled();
      return new Promise(() => {});
    },
    cancel: () => { seen.cancels += 1; },
  }, { highWaterMark: 0 });
  return { stream, seen, stalled };
}

const PICTURES = Array.from({ length: 9 }, (_, index) => pixels(index + 1));

describe('a clip', () => {
  /** @type {typeof import('../../web/src/index.js')} */
  let wgvae;
  /** @type {import('../../web/src/index.js').Vae} */
  let vae;
  /** One model, here and in a thread. @type {Record<string, any>} */
  const models = {};
  const worker = new WebWorker();
  /** Functions of wgvae/worker, and options of the model. @type {any[]} */
  let [client, options] = [];
  /** The clip's latents and frames. @type {import('../../web/src/index.js').EncodedPart[]} */
  const parts = [];
  /** @type {number[][]} */
  const frames = [];
  /** Bytes that are left after an encode, after a decode, and after its first part. */
  let [afterEncode, afterAll, afterFirst] = [0, 0, 0];
  /** Phases and parts of all progress. @type {Set<string>} */
  const progress = new Set();
  before(async () => {
    wgvae = await import(`${new URL('web/src/index.js', `file://${DIST}/`)}`);
    const { config } = await clipFixture('clip_wan');
    const onProgress = (/** @type {import('../../web/src/index.js').Progress} */ { phase, part }) => progress.add(`${phase} ${part}`);
    options = /** @type {const} */ ({ model: new Uint8Array(clipModelFile(config, { encoder: true })), config, device: 'cpu', clips: true, precision: 'f32' });
    vae = await wgvae.createVae({ ...options, onProgress });
    client = await import(`${new URL('web/src/worker.js', `file://${DIST}/`)}`);
    Object.assign(models, { here: vae, worker: await client.createVae({ ...options, worker }) });
    for await (const part of vae.encodeClip(PICTURES)) parts.push(part);
    afterEncode = vae.ledger().current;
    for await (const { data } of vae.clip(parts, { output: 'raw' })) frames.push([...data]);
    afterAll = vae.ledger().current;
    for await (const _ of vae.clip(parts, { output: 'raw' })) break;
    afterFirst = vae.ledger().current;
  });
  after(async () => {
    await Promise.all(Object.values(models).map((model) => model.destroy()));
    await worker.terminate();
  });
  beforeEach(() => progress.clear());

  /** Returns the clip's latents as a file. */
  function file() {
    const { shape: [, channels, , height, width] } = parts[0];
    const plane = height * width;
    const data = new Float32Array(channels * parts.length * plane);
    parts.forEach((part, at) => {
      for (let channel = 0; channel < channels; channel += 1) {
        data.set(part.data.subarray(channel * plane, (channel + 1) * plane), (channel * parts.length + at) * plane);
      }
    });
    return new Blob([writeSafetensors([['latents', { data, shape: [1, channels, parts.length, height, width] }]])]);
  }

  /** Waits until the memory of a clip is free. @param {number} held */
  async function freed(held) {
    for (const end = Date.now() + 60_000; vae.ledger().current !== held && Date.now() < end; ) await sleep(5);
    assert.equal(vae.ledger().current, held);
  }

  /**
   * Waits until a thread has done its part.
   * @param {() => boolean} isDone
   * @param {string} what
   */
  async function until(isDone, what) {
    for (const end = Date.now() + 60_000; !isDone() && Date.now() < end; ) await sleep(5);
    assert.ok(isDone(), what);
  }

  it('is read as a stream of its frames, and no part runs before it is asked for', async () => {
    const stream = vae.clipStream(parts, { output: 'raw' });
    await sleep(50);
    assert.deepEqual([...progress], [], 'nothing has begun');
    const found = [];
    const reader = stream.getReader();
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      found.push([...next.value.data]);
      // The first part has one frame, others have four: none runs before a frame of it is read.
      await sleep(5);
      assert.equal([...progress].filter((each) => /^decode \d/.test(each)).length, 1 + Math.ceil((found.length - 1) / 4));
    }
    assert.deepEqual(found, frames);
    await freed(afterAll);
  });

  for (const place of ['here', 'worker']) {
    it(`is freed with its model, though nobody goes on with it: ${place}`, async () => {
      const model = await (place === 'here' ? wgvae.createVae(options) : client.createVae({ ...options, worker }));
      const clips = [model.clip(parts, { output: 'raw' }), model.clip(file(), { output: 'raw' }), model.encodeClip(PICTURES)];
      await Promise.all(clips.map((clip) => clip.next()));
      assert.ok((await model.ledger()).current > 0);
      await model.destroy();
      assert.equal((await model.ledger()).current, 0);
      for (const clip of clips) {
        await assert.rejects(clip.next(), { code: 'destroyed' });
        await clip.return(undefined);
      }
      // Another model of the thread is not affected.
      const found = await all((place === 'here' ? vae : models.worker).clip(file(), { output: 'raw' }));
      assert.deepEqual(found.map(({ data }) => [...data]), frames);
    });
  }

  it('does not hurt other models if its own is destroyed while it opens from a file', async () => {
    // Each read of the file in turn waits until the model is gone. The last is of the first frame.
    let hasOpened = false;
    for (let late = 0; !hasOpened; late += 1) {
      const model = await wgvae.createVae({ ...options, onProgress: ({ phase }) => { hasOpened ||= phase === 'decode'; } });
      const latents = file();
      let reads = 0;
      const slice = latents.slice.bind(latents);
      latents.slice = (...range) => {
        const part = slice(...range);
        const read = part.arrayBuffer.bind(part);
        return Object.assign(part, { arrayBuffer: async () => ((reads++ === late) && await model.destroy(), read()) });
      };
      const first = await model.clip(latents, { output: 'raw' }).next().catch((error) => error.code);
      if (!hasOpened) assert.equal(first, 'destroyed', `read ${late}`);
      await sleep(5);
      assert.equal((await all(vae.clip(file(), { output: 'raw' }))).length, frames.length, `read ${late}`);
      await model.destroy();
    }
  });

  it('leaves nothing of a model that is gone in a worker, though it is paused', async () => {
    const used = async () => {
      const model = await client.createVae({ ...options, worker });
      const paused = [model.clip(parts, { output: 'raw' }), model.encodeClip(PICTURES), model.decodeEach(parts[0], { output: 'raw' })];
      for (const values of paused) await values.next().catch(() => {});
      await model.destroy();
      return paused;
    };
    const paused = await used();
    const before = await worker.memory();
    const models = 8;
    for (let model = 0; model < models; model += 1) paused.push(...await used());
    const left = (await worker.memory()) - before;
    assert.ok(left < (models / 2) * options.model.length, `${left} bytes are left of ${models} files of ${options.model.length}`);
  });

  it('ends the stream that it is encoded from with its model', async () => {
    const model = await wgvae.createVae(options);
    const { stream, seen } = stalledStream(PICTURES.slice(0, 1));
    const encoding = model.encodeClip(stream);
    assert.ok(!(await encoding.next()).done);
    await model.destroy();
    await until(() => seen.cancels === 1, 'the stream goes on');
    await assert.rejects(encoding.next(), { code: 'destroyed' });
  });

  it('comes through a worker that has messages of its own', async () => {
    for (const message of ['ping', 5, null, { id: 1, value: 'of others' }, { id: 2, error: 'of others' }, { tell: '1', parameters: [] }]) worker.tell(message);
    const found = [];
    for await (const { data } of models.worker.clip(parts, { output: 'raw' })) {
      found.push([...data]);
      worker.tell({ id: found.length, value: 'of others' });
    }
    assert.deepEqual(found, frames);
  });

  it('stops when its stream is cancelled, also in the middle of a part', async () => {
    let isOver = false;
    async function* latents() {
      try {
        yield* parts;
      } finally {
        isOver = true;
      }
    }
    const between = vae.clipStream(latents(), { output: 'raw' }).getReader();
    assert.deepEqual([.../** @type {any} */ (await between.read()).value.data], frames[0]);
    await between.cancel('enough');
    assert.ok(isOver);
    assert.equal((await between.read()).done, true);
    await freed(afterFirst);
    isOver = false;
    let isRunning = () => {};
    const begun = new Promise((resolve) => { isRunning = () => resolve(undefined); });
    const within = vae.clipStream(latents(), { output: 'raw', onProgress: ({ phase, done }) => phase === 'decode' && done > 0 && isRunning() }).getReader();
    const reading = within.read();
    await begun;
    await within.cancel();
    assert.equal((await reading).done, true);
    await freed(afterFirst);
    assert.ok(isOver);
    // The next clip is not affected.
    const [first] = await all(vae.clip([parts[0]], { output: 'raw' }));
    assert.deepEqual([...first.data], frames[0]);
  });

  it('ends its stream with the reason of an abort, and with its error', async () => {
    const [controller, reason] = [new AbortController(), new Error('enough')];
    const reader = vae.clipStream(parts, { output: 'raw', signal: controller.signal }).getReader();
    await reader.read();
    controller.abort(reason);
    await assert.rejects(reader.read(), reason);
    await freed(afterFirst);
    assert.throws(() => vae.clipStream(parts, { signal: AbortSignal.abort(reason) }), reason);
    const failing = vae.clipStream([parts[0], { ...parts[1], shape: [1, 3, 1, 2, 4] }], { output: 'raw' }).getReader();
    await failing.read();
    await assert.rejects(failing.read(), (/** @type {any} */ { code }) => code === 'input');
    await freed(afterFirst);
    await assert.rejects(vae.clipStream(parts).getReader().read(), /^WgvaeError: output: expected blob, image-data or raw where there is no ImageBitmap or VideoFrame, found bitmap$/);
    assert.throws(() => vae.clipStream(parts, /** @type {any} */ (7)), /^WgvaeError: options: expected an object, found number$/);
    assert.throws(() => vae.clipStream(parts, /** @type {any} */ ({ signal: {} })), /^WgvaeError: signal: /);
  });

  it('is encoded from a stream, whose frames are closed after their use', async () => {
    let closed = 0;
    let reason;
    const given = () => {
      const waiting = PICTURES.map((picture) => ({ ...picture, close: () => { closed += 1; } }));
      return new ReadableStream({
        pull(controller) {
          const next = waiting.shift();
          if (next) controller.enqueue(next);
          else controller.close();
        },
        cancel: (why) => { reason = `canceled: ${why}`; },
      }, { highWaterMark: 0 });
    };
    const found = await all(vae.encodeClip(given()));
    assert.deepEqual(found.map(({ data }) => [...data]), parts.map(({ data }) => [...data]));
    assert.equal(closed, PICTURES.length);
    assert.equal(reason, undefined);
    closed = 0;
    for await (const { frames: count } of vae.encodeClip(given())) if (count === 1) break;
    assert.equal(reason, 'canceled: undefined');
    assert.ok(closed > 0 && closed < PICTURES.length, `${closed}`);
    const generated = PICTURES.map((picture) => ({ ...picture, close: () => assert.fail('the caller\'s own') }));
    assert.equal((await all(vae.encodeClip(generated.values()))).length, parts.length);
    await freed(afterEncode);
  });

  it('passes its latents on as a stream', async () => {
    const stream = new ReadableStream({ start: (controller) => (parts.forEach((part) => controller.enqueue(part)), controller.close()) });
    assert.deepEqual((await all(vae.clip(stream, { output: 'raw' }))).map(({ data }) => [...data]), frames);
  });

  it('cancels a stream that gives no more, at an abort and when its reader leaves', async () => {
    for (const [where, model] of Object.entries(models)) {
      const [controller, reason] = [new AbortController(), new Error('enough')];
      const aborted = stalledStream([PICTURES[0]]);
      const parts = model.encodeClip(aborted.stream, { signal: controller.signal });
      assert.equal((await parts.next()).value.frames, 1);
      const next = parts.next();
      await aborted.stalled;
      controller.abort(reason);
      await assert.rejects(next, reason);
      assert.equal(aborted.seen.cancels, 1, `${where}: aborted`);

      // The last picture is in use while the next one is awaited.
      const left = stalledStream(PICTURES.slice(0, 3));
      const values = model.encodeClip(left.stream);
      await values.next();
      const pending = values.next();
      await left.stalled;
      await values.return();
      assert.deepEqual(await pending, { done: true, value: undefined });
      assert.deepEqual([left.seen.cancels, left.seen.closed >= 3], [1, true], `${where}: left`);

      const chained = stalledStream([PICTURES[0]]);
      const reader = model.clipStream(model.encodeClip(chained.stream), { output: 'raw' }).getReader();
      await reader.read();
      const read = reader.read();
      await chained.stalled;
      await reader.cancel();
      assert.equal((await read).done, true);
      await until(() => chained.seen.cancels === 1, `${where}: a decode of an encode`);
    }
    // The next clip is not affected.
    assert.deepEqual((await all(vae.encodeClip(PICTURES))).map(({ data }) => [...data]), parts.map(({ data }) => [...data]));
    await freed(afterEncode);
  });

  it('cancels a stream that it has not begun to read', async () => {
    for (const [where, model] of Object.entries(models)) {
      /** @type {Record<string, (stream: ReadableStream) => Promise<unknown>>} */
      const ways = {
        encode: (stream) => model.encodeClip(stream).return(),
        decode: (stream) => model.clip(stream).return(),
        thrown: (stream) => assert.rejects(model.encodeClip(stream).throw(new Error('enough')), /enough/),
        'decode of an encode': (stream) => model.clipStream(model.encodeClip(stream)).cancel(),
        'broken reader': (stream) => assert.rejects(model.clipStream(model.encodeClip(stream)).pipeTo(new WritableStream({ start: (controller) => controller.error(new Error('full')) })), /full/),
        'wrong options': (stream) => assert.rejects(model.encodeClip(stream, { pad: 'black' }).next(), /pad: expected one of repeat, mirror/),
        'wrong option of a decode': (stream) => assert.rejects(model.clip(stream, { fps: 0 }).next(), /fps: expected/),
        aborted: (stream) => assert.rejects(model.encodeClip(stream, { signal: AbortSignal.abort(new Error('before')) }).next(), /before/),
      };
      for (const [name, way] of Object.entries(ways)) {
        const { stream, seen } = stalledStream();
        await way(stream);
        await until(() => seen.cancels === 1, `${where}: ${name}`);
      }
      let isLeft = false;
      await model.encodeClip({ next: () => assert.fail('nobody asks'), return: () => { isLeft = true; }, [Symbol.iterator]() { return this; } }).return();
      assert.ok(isLeft);
      // Nothing of these is to be ended.
      await model.encodeClip(PICTURES).return();
      await model.encodeClip(new Set(PICTURES)).return();
      const { stream: locked, seen } = stalledStream();
      locked.getReader();
      await model.encodeClip(locked).return();
      assert.equal(seen.cancels, 0, 'a stream of another reader');
      await assert.rejects(model.encodeClip(locked).next(), /^WgvaeError: .*: expected a stream that nobody else reads, found a locked one$/);
      await assert.rejects(model.clip(locked, { output: 'raw' }).next(), /^WgvaeError: latents: expected a stream that nobody else reads, found a locked one$/);
    }
  });

  it('ends with its model, also where a worker of its own ends with that', { timeout: 120_000 }, async (t) => {
    t.after(() => Reflect.deleteProperty(globalThis, 'Worker'));
    Object.assign(globalThis, { Worker: WebWorker });
    for (const create of [wgvae.createVae, client.createVae]) {
      const model = await create(options);
      const ended = /^WgvaeError destroyed$/;
      const said = (/** @type {Promise<any>} */ next) => next.then(({ done }) => `done: ${done}`, ({ name, code }) => `${name} ${code}`);
      const [waiting, decoded, chained] = [stalledStream([PICTURES[0]]), stalledStream([parts[0]]), stalledStream([PICTURES[0]])];
      let isOver = false;
      function* endless() {
        try {
          for (;;) yield PICTURES[0];
        } finally {
          isOver = true;
        }
      }
      const [between, left] = [model.encodeClip(endless()), model.clip(parts, { output: 'raw' })];
      await Promise.all([between.next(), left.next()]);
      const generators = [model.encodeClip(waiting.stream), model.clip(decoded.stream, { output: 'raw' })];
      const reader = model.clipStream(model.encodeClip(chained.stream), { output: 'raw' }).getReader();
      for (const each of [...generators, { next: () => reader.read() }]) await each.next();
      const pending = [...generators.map((each) => said(each.next())), said(reader.read())];
      await Promise.all([waiting, decoded, chained].map(({ stalled }) => stalled));
      for await (const _ of model.clip(parts, { output: 'raw' })) {
        await model.destroy();
        break;
      }
      for (const each of await Promise.all(pending)) assert.match(each, ended);
      assert.match(await said(between.next()), ended);
      assert.equal((await left.return()).done, true);
      assert.match(await said(model.clip(parts).next()), ended);
      await until(() => isOver && [waiting, decoded, chained].every(({ seen }) => seen.cancels === 1), 'every source is told');
    }
  });

  it('ends an iterator of the caller once, also if that answers late', async () => {
    let returned = 0;
    /** @type {(() => void) | undefined} */
    let answer;
    const iterator = {
      next: () => new Promise((resolve) => { answer = () => resolve({ value: PICTURES[0], done: false }); }),
      return: async () => { returned += 1; return { value: undefined, done: true }; },
    };
    const values = vae.encodeClip(/** @type {any} */ ({ [Symbol.asyncIterator]: () => iterator }));
    const pending = values.next();
    await until(() => answer !== undefined, 'it is asked');
    await values.return();
    answer?.();
    assert.equal((await pending).done, true);
    await values.return();
    assert.equal(returned, 1);
  });

  it('closes the bitmaps that it has drawn of an array, however it ends', async (t) => {
    const before = { OffscreenCanvas: globalThis.OffscreenCanvas, createImageBitmap: globalThis.createImageBitmap };
    t.after(() => Object.assign(globalThis, before));
    // As much of a browser as the copy of a canvas takes.
    class Canvas {}
    let open = 0;
    Object.assign(globalThis, { OffscreenCanvas: Canvas, createImageBitmap: async () => ((open += 1), { ...PICTURES[0], close: () => { open -= 1; } }) });
    const canvases = /** @type {any} */ (Array.from({ length: 5 }, () => new Canvas()));
    await vae.encodeClip(canvases).return();
    assert.equal(open, 0, 'not begun');
    assert.equal((await all(vae.encodeClip(canvases))).length, 2);
    assert.equal(open, 0, 'encoded');
    for await (const _ of vae.encodeClip(canvases)) break;
    assert.equal(open, 0, 'left');
    await assert.rejects(vae.encodeClip(canvases, /** @type {any} */ ({ pad: 'black' })).next());
    assert.equal(open, 0, 'refused');
    // A bitmap moves to a worker when its turn comes; the others stay.
    await models.worker.encodeClip(canvases).return();
    await until(() => open === 0, 'in a worker');
  });

  it('leaves no listener on the signal of a stream that failed', async () => {
    const { signal } = new AbortController();
    await assert.rejects(vae.clipStream(parts, { output: 'bitmap', signal }).getReader().read());
    assert.equal(getEventListeners(signal, 'abort').length, 0);
    await all(vae.clipStream(parts, { output: 'raw', signal }));
    assert.equal(getEventListeners(signal, 'abort').length, 0);
  });

  it('reports an error of a stream that is cancelled, and of a listener, and goes on', async (t) => {
    const heard = t.mock.method(console, 'error', () => {});
    const stream = new ReadableStream({ cancel: () => { throw new RangeError('of the stream'); } });
    await vae.encodeClip(stream).return();
    assert.deepEqual(heard.mock.calls.map(({ arguments: [error] }) => `${error}`), ['RangeError: of the stream']);
    const onProgress = () => { throw new RangeError('of the listener'); };
    assert.equal((await all(vae.clip(parts, { output: 'raw', onProgress }))).length, frames.length);
    assert.equal(`${heard.mock.calls.at(-1)?.arguments[0]}`, 'RangeError: of the listener');
  });

  it('in a worker takes relative addresses from where the page is at the call', async (t) => {
    const server = await startServer({ root: DIST });
    t.after(() => {
      server.close();
      Reflect.deleteProperty(globalThis, 'document');
    });
    const channels = vae.info.latent_channels;
    for (const [folder, shape] of /** @type {[string, number[]][]} */ ([['one', [1, channels, 2, 3]], ['two', [1, channels, 3, 2]]])) {
      server.route(`/${folder}/a.safetensors`, { bytes: writeSafetensors([['latents', { data: new Float32Array(6 * channels), shape }]]) });
      Object.assign(globalThis, { document: { baseURI: server.url(`/${folder}/`) } });
      assert.deepEqual(await models.worker.shapeOf('a.safetensors'), shape, folder);
    }
  });

  it('in a worker has previews of tensors that are not in memory', async () => {
    const data = Float32Array.from({ length: 4 * 6 }, (_, at) => Math.sin(at));
    const tensor = (/** @type {any} */ getData) => ({ dims: [1, 4, 2, 3], type: 'float32', location: 'ml-tensor', getData });
    const wanted = await wgvae.preview({ data, shape: [1, 4, 2, 3] }, { family: 'sd15' });
    assert.deepEqual(await client.preview(tensor(async () => data), { family: 'sd15', worker }), wanted);
    const broken = tensor(async () => { throw new RangeError('gone'); });
    await assert.rejects(client.preview(broken, { family: 'sd15', worker }), /^WgvaeError: .*gone/);
  });

  it('is planned for any form of its frames, wherever they are shown', () => {
    const size = { width: COLUMNS, height: ROWS };
    assert.deepEqual(vae.planClip(size), vae.planClip({ ...size, output: 'image-data' }));
    assert.throws(() => vae.planClip({ ...size, output: /** @type {any} */ ('buffer') }), /^WgvaeError: output: expected one of bitmap, .*, found "buffer"$/);
  });

  it('has times only as video', async () => {
    const first = (/** @type {any} */ options) => vae.clip(parts, options).next();
    await assert.rejects(first({ output: 'raw', fps: 16 }), /^WgvaeError: fps: expected the output video-frame beside it, found raw$/);
    await assert.rejects(first({ output: 'video-frame', fps: 0 }), /^WgvaeError: fps: expected frames per second, above 0, found 0$/);
    await assert.rejects(first({ output: 'video-frame' }), /^WgvaeError: output: expected blob, image-data or raw where there is no ImageBitmap or VideoFrame, found video-frame$/);
  });
});
