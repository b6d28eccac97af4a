// @ts-check
// Clips as streams, in Node on the CPU: frames that are read, and pictures that are written.
// video-frames.test.mjs has frames of video, and the worker.

import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { clipModelFile } from './clip-models.mjs';
import { clipFixture } from './fixtures.mjs';
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

const PICTURES = Array.from({ length: 9 }, (_, index) => pixels(index + 1));

describe('a clip', () => {
  /** @type {typeof import('../../web/src/index.js')} */
  let wgvae;
  /** @type {import('../../web/src/index.js').Vae} */
  let vae;
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
    vae = await wgvae.createVae({ model: new Uint8Array(clipModelFile(config, { encoder: true })), config, device: 'cpu', clips: true, precision: 'f32', onProgress });
    for await (const part of vae.encodeClip(PICTURES)) parts.push(part);
    afterEncode = vae.ledger().current;
    for await (const { data } of vae.clip(parts, { output: 'raw' })) frames.push([...data]);
    afterAll = vae.ledger().current;
    for await (const _ of vae.clip(parts, { output: 'raw' })) break;
    afterFirst = vae.ledger().current;
  });
  after(() => vae.destroy());
  beforeEach(() => progress.clear());

  /** Waits until the memory of a clip is free. @param {number} held */
  async function freed(held) {
    for (const end = Date.now() + 60_000; vae.ledger().current !== held && Date.now() < end; ) await sleep(5);
    assert.equal(vae.ledger().current, held);
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

  it('has times only as video', async () => {
    const first = (/** @type {any} */ options) => vae.clip(parts, options).next();
    await assert.rejects(first({ output: 'raw', fps: 16 }), /^WgvaeError: fps: expected the output video-frame beside it, found raw$/);
    await assert.rejects(first({ output: 'video-frame', fps: 0 }), /^WgvaeError: fps: expected frames per second, above 0, found 0$/);
    await assert.rejects(first({ output: 'video-frame' }), /^WgvaeError: output: expected blob, image-data or raw where there is no ImageBitmap or VideoFrame, found video-frame$/);
  });
});
