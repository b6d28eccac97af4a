// @ts-check
// Parameters of links to the page, and files dropped on it: query.js and sort-files.js.

import assert from 'node:assert/strict';

import { absolute, readQuery } from '../../../../web/page/query.js';
import { sortFiles } from '../../../../web/page/sort-files.js';
import { MemoryFile } from '../blobs.mjs';
import { checkError } from '../outcome.mjs';

/** @typedef {import('../world.mjs').World} World */

const KEYS = ['model', 'config', 'latents', 'family', 'precision', 'budget', 'size', '__proto__', ''];
const VALUES = ['a.safetensors', 'https://files.test/x', 'javascript:alert(1)', 'data:,x', '//', 'http://[', '%', '%zz', ' ', 'f16', 'fast', 'auto', '0', '-1', '640', '1e999', 'Infinity', 'NaN', '0x10', '𝒳'];
const NAMES = ['a.safetensors', 'model.fp16.safetensors', 'latents.npy', 'config.json', 'x.safetensors.index.json', 'README.md', '', 'b.latent'];

/** @param {World} world */
export async function links({ random }) {
  const pairs = Array.from({ length: random.below(6) }, () => `${random.pick(KEYS)}=${random.chance(0.5) ? encodeURIComponent(random.pick(VALUES)) : random.pick(VALUES)}`);
  const search = random.chance(0.8) ? `?${pairs.join('&')}` : String.fromCharCode(...Array.from({ length: random.below(20) }, () => random.below(256)));
  const query = readQuery(search);
  for (const url of [...(query.model ?? []), query.config, query.latents]) {
    assert.ok(url === undefined || new URL(url).href === url, `${url} is no address`);
  }
  const { budget, precision, family } = query;
  assert.ok(budget === undefined || (Number.isFinite(budget) && budget > 0), `a budget of ${budget}`);
  assert.ok(['auto', 'f16', 'f32', 'fast'].includes(/** @type {string} */ (precision)), `the precision ${precision}`);
  assert.ok(family === undefined || typeof family === 'string');
  absolute(random.pick(VALUES));
}

/** @param {World} world */
export async function files({ random, clock }) {
  const headers = ['{"latents":{}}', '{"a":1,"b":2,"c":3,"d":4,"e":5}', '{}', 'null', '[]', '7', '"text"', '{', '\u0093NUMPY', '{"__proto__":1}', 'GIF89a'];
  const file = () => {
    const header = new TextEncoder().encode(random.pick(headers));
    const length = new Uint8Array(8);
    new DataView(length.buffer).setBigUint64(0, random.chance(0.8) ? BigInt(header.length) : BigInt(random.next()) << BigInt(random.below(33)), true);
    const made = new MemoryFile(random.chance(0.8) ? [length, header] : [random.bytes(random.below(20))], random.pick(NAMES));
    made.fault = random.pick(['none', 'none', 'none', 'gone', 'shrunk']);
    return made;
  };
  const chosen = Array.from({ length: random.below(5) }, file);
  const found = sortFiles(/** @type {any} */ (chosen), random.pick([undefined, 'model', 'input'])).then((value) => ({ value }), (error) => ({ error }));
  assert.ok(await clock.runUntil(found), 'files are never sorted');
  const outcome = await found;
  if ('error' in outcome) return checkError(outcome.error);
  const { model, input } = /** @type {any} */ (outcome.value);
  assert.ok(model || input, 'nothing was found, and nobody is told');
  for (const one of [...(model?.files ?? []), input?.file]) assert.ok(one === undefined || chosen.includes(one));
}
