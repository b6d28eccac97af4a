// @ts-check
// Small files as text, and other values that callers pass: readText of sources.js.

import assert from 'node:assert/strict';

import { Access, openSource, readText } from '../../../../web/src/sources.js';
import { MemoryBlob, MemoryFile } from '../blobs.mjs';
import { FileServer, someManners } from '../file-server.mjs';
import { checkBytes, checkError } from '../outcome.mjs';
import { replace } from '../world.mjs';

/** @typedef {import('../world.mjs').World} World */

/**
 * @param {World} world
 * @param {Promise<any>} promise
 * @param {boolean} mayStall
 * @param {AbortController} controller
 */
async function outcome({ clock }, promise, mayStall, controller) {
  const found = promise.then((value) => ({ value }), (error) => ({ error }));
  if (!(await clock.runUntil(found))) {
    assert.ok(mayStall, 'an operation never ends');
    controller.abort();
    assert.ok(await clock.runUntil(found), 'an operation never ends, though it was aborted');
  }
  const settled = await found;
  if ('error' in settled) checkError(settled.error, controller.signal.aborted ? [controller.signal.reason] : []);
  return settled;
}

/** Reads a config.json from an address. @param {World} world */
export async function textOfAnAddress(world) {
  const { random, clock } = world;
  const server = new FileServer(random, clock, { manners: someManners(random), faults: random.pick([0, 0.3]), length: random.below(2000) });
  replace('fetch', server.fetch);
  const controller = new AbortController();
  const read = readText(random.chance(0.5) ? 'config.json' : new URL('https://page.test/config.json'), new Access(controller.signal, () => {}, true), 'config');
  const settled = await outcome(world, read, server.hasStalled || server.faults > 0, controller);
  if ('value' in settled) assert.equal(settled.value, new TextDecoder().decode(server.version.bytes));
}

/**
 * Reads slices of a user's file, which may have changed since it was chosen.
 * @param {World} world
 */
export async function readsOfABlob(world) {
  const { random } = world;
  const bytes = random.bytes(random.below(500));
  const blob = random.chance(0.5) ? new MemoryFile([bytes], random.pick(['', 'vae.safetensors'])) : new MemoryBlob([bytes]);
  const controller = new AbortController();
  const access = new Access(controller.signal, () => {}, true);
  const source = await openSource(/** @type {any} */ (blob), access, { what: 'model' });
  assert.equal(source.length, bytes.length);
  for (let reads = random.below(5); reads > 0; reads -= 1) {
    blob.fault = random.pick(['none', 'none', 'gone', 'shrunk', 'broken']);
    if (random.chance(0.1)) controller.abort();
    const offset = random.below(bytes.length + 1);
    const length = random.below(bytes.length - offset + 1);
    const settled = await outcome(world, source.read(offset, length), false, controller);
    if ('value' in settled) checkBytes(settled.value, offset, length, [bytes], blob.fault);
  }
}

/**
 * Returns any JavaScript value that may be passed as a file.
 * @param {import('../random.mjs').Random} random
 * @returns {any}
 */
export function anything(random) {
  return random.pick([
    undefined, null, true, 0, NaN, '', ' ', 'http://', 'https://[', '%', '\0', 'a b', '{', '{"a": 1}', [], {}, [1], () => {}, Symbol('file'), 7n,
    new Date(0), new Map(), new ArrayBuffer(4), new Uint8Array(3), new Float32Array(2), new DataView(new ArrayBuffer(2)),
    Object.create(null), new URL('https://page.test/a'),
  ]);
}

/** Passes invalid arguments. @param {World} world */
export async function strangeArguments(world) {
  const { random, clock } = world;
  const server = new FileServer(random, clock, { manners: someManners(random), faults: 0.2, length: 20 });
  replace('fetch', server.fetch);
  const controller = new AbortController();
  const access = new Access(controller.signal, () => {}, false);
  const input = anything(random);
  const promise = random.chance(0.5) ? openSource(input, access, { what: 'model' }) : readText(input, access, 'config');
  await outcome(world, promise, true, controller);
}
