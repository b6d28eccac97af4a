// @ts-check
// Random cases for the package's modules, in Node: node tests/browser/fuzz/run.mjs --cases 100000.
// A failure prints the seed of its case: --only SEED runs that case alone.

import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';

import { halves, latentsOfAnyKind } from './cases/latents.mjs';
import { files, links } from './cases/page.mjs';
import { readsAhead } from './cases/read-ahead.mjs';
import { readsOfAFile } from './cases/source.mjs';
import { readsOfABlob, strangeArguments, textOfAnAddress } from './cases/text.mjs';
import { Random } from './random.mjs';
import { keepSurroundings, makeWorld } from './world.mjs';

/** Kinds of cases. The first is the most frequent, because most of the code is behind it. */
const KINDS = [readsOfAFile, readsOfAFile, readsOfAFile, readsOfAFile, textOfAnAddress, readsOfABlob, strangeArguments, latentsOfAnyKind, halves, readsAhead, links, files];

/** Unhandled rejections since the last case. @type {unknown[]} */
const unhandled = [];

/**
 * Runs `cases` cases.
 * @param {{ cases: number, seed: number }} options
 * @returns {Promise<Record<string, number>>} number of cases of each kind
 */
export async function fuzz({ cases, seed }) {
  const listen = (/** @type {unknown} */ error) => unhandled.push(error);
  process.on('unhandledRejection', listen);
  /** @type {Record<string, number>} */
  const counts = {};
  const putBack = keepSurroundings();
  try {
    for (let index = 0; index < cases; index += 1) {
      const name = await oneCase((seed + Math.imul(index, 0x9e3779b1)) >>> 0);
      counts[name] = (counts[name] ?? 0) + 1;
    }
  } finally {
    process.off('unhandledRejection', listen);
    putBack();
  }
  return counts;
}

/** Runs the case that follows from `seed`. @param {number} seed */
export async function oneCase(seed) {
  const random = new Random(seed);
  const kind = random.pick(KINDS);
  const world = makeWorld(random);
  unhandled.length = 0;
  try {
    await kind(world);
    await world.clock.runOut();
    assert.deepEqual(unhandled, [], 'rejections that nobody handled');
  } catch (cause) {
    const path = 'tests/browser/fuzz/run.mjs';
    throw new Error(`${kind.name}: node ${path} --only ${seed}\n${cause instanceof Error ? cause.message : cause}`, { cause });
  }
  return kind.name;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const options = { cases: { type: 'string', default: '100000' }, seed: { type: 'string', default: '1' }, only: { type: 'string' } };
  const { values } = parseArgs({ options: /** @type {any} */ (options) });
  const { cases, seed, only } = /** @type {Record<string, string>} */ (values);
  const start = performance.now();
  const counts = await fuzz(only === undefined ? { cases: Number(cases), seed: Number(seed) } : { cases: 1, seed: Number(only) });
  console.log(counts, `seed ${seed}, ${((performance.now() - start) / 1000).toFixed(1)} s`);
}
