// @ts-check
// Clips of TAEHV's tiny autoencoders in Node on the CPU: their encode takes any number of frames.
// tests/gpu/clips.rs compares their numbers with upstream's network.

import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';

import { fill, weight } from './fixtures.mjs';
import { writeSafetensors } from './safetensors.mjs';
import { DIST } from './session.mjs';

/** Channels of every level; the published networks have 64 to 256. */
const WIDTH = 8;

const [LATENT_CHANNELS, ROWS, COLUMNS] = [16, 16, 32];

/** The package as it is published. @type {typeof import('../../web/src/index.js')} */
let wgvae;
before(async () => {
  wgvae = await import(`${new URL('web/src/index.js', `file://${DIST}/`)}`);
});

/**
 * Returns tensors of three blocks, from layer `first` on.
 * @param {string} half
 * @param {number} first
 * @returns {[string, number[]][]}
 */
function blocks(half, first) {
  return [0, 1, 2].flatMap((block) => [0, 2, 4].flatMap((part) => {
    const name = `${half}.${first + block}.conv.${part}`;
    const inputs = part === 0 ? 2 * WIDTH : WIDTH;
    return /** @type {[string, number[]][]} */ ([[`${name}.weight`, [WIDTH, inputs, 3, 3]], [`${name}.bias`, [WIDTH]]]);
  }));
}

/**
 * Returns a file of TAEHV's tensors with narrow levels.
 * @param {number} latents channels
 * @param {number} patch pixels that the highest level holds in its channels
 */
function tinyFile(latents = LATENT_CHANNELS, patch = 1) {
  /** @type {(name: string, outputs: number, inputs: number, side: number, bias?: boolean) => [string, number[]][]} */
  const conv = (name, outputs, inputs, side, bias = true) => [[`${name}.weight`, [outputs, inputs, side, side]], ...(bias ? /** @type {[string, number[]][]} */ ([[`${name}.bias`, [outputs]]]) : [])];
  const encoder = [
    ...conv('encoder.0', WIDTH, 3 * patch, 3),
    ...[2, 7, 12].flatMap((layer, level) => [
      ...conv(`encoder.${layer}.conv`, WIDTH, level < 2 ? 2 * WIDTH : WIDTH, 1, false),
      ...conv(`encoder.${layer + 1}`, WIDTH, WIDTH, 3, false),
      ...blocks('encoder', layer + 2),
    ]),
    ...conv('encoder.17', latents, WIDTH, 3),
  ];
  const decoder = [
    ...conv('decoder.1', WIDTH, latents, 3),
    ...[3, 9, 15].flatMap((layer, level) => [
      ...blocks('decoder', layer),
      ...conv(`decoder.${layer + 4}.conv`, level > 0 ? 2 * WIDTH : WIDTH, WIDTH, 1, false),
      ...conv(`decoder.${layer + 5}`, WIDTH, WIDTH, 3, false),
    ]),
    ...conv('decoder.22', 3 * patch, WIDTH, 3),
  ];
  return writeSafetensors([...encoder, ...decoder].map(([name, shape]) => [name, weight(name, shape)]));
}

/** @param {number} index */
function frame(index) {
  return { data: fill(`frame ${index}`, 3 * ROWS * COLUMNS, 0, 1), shape: [1, 3, ROWS, COLUMNS] };
}

describe('clips of tiny autoencoders', () => {
  it('repeats the last frame until the last latent is full, and decodes 1 + 4 n frames', async () => {
    const model = new Uint8Array(tinyFile());
    const vae = await wgvae.createVae({ model, family: 'taew2_1', device: 'cpu', clips: true, precision: 'f32' });
    assert.deepEqual([vae.info.fills_parts, vae.info.frames_per_latent], [true, 4]);
    const encode = async (/** @type {number[]} */ indices, /** @type {import('../../web/src/index.js').EncodeClipOptions} */ options = {}) => {
      const parts = [];
      for await (const part of vae.encodeClip(indices.map(frame), options)) parts.push(part);
      return parts;
    };
    const six = await encode([0, 1, 2, 3, 4, 5]);
    assert.deepEqual(six.map(({ frames, added }) => [frames, added]), [[4, 0], [2, 0]]);
    const filled = await encode([0, 1, 2, 3, 4, 5, 5, 5]);
    assert.deepEqual(six.map(({ data }) => [...data]), filled.map(({ data }) => [...data]));
    const other = await encode([0, 1, 2, 3, 4, 5, 6, 7]);
    assert.deepEqual([...other[0].data], [...six[0].data]);
    assert.notDeepEqual([...other[1].data], [...six[1].data]);
    await assert.rejects(encode([0, 1], { pad: 'mirror' }), /pad: expected 'repeat' or none, .*found mirror/);
    let decoded = 0;
    for await (const { shape } of vae.clip(six, { output: 'raw' })) {
      assert.deepEqual(shape, [3, ROWS, COLUMNS]);
      decoded += 1;
    }
    assert.equal(decoded, 5);
    await vae.destroy();
  });

  it('has the numbers of frames that CogVideoX and MiniMax-H3 have', async () => {
    const open = (/** @type {string} */ family, /** @type {Uint8Array} */ file) => wgvae.createVae({ model: new Uint8Array(file), family, device: 'cpu', clips: true, precision: 'f32' });
    const lengths = async (/** @type {import('../../web/src/index.js').Vae} */ vae, /** @type {number} */ count, /** @type {import('../../web/src/index.js').EncodeClipOptions} */ options = {}) => {
      const parts = [];
      for await (const part of vae.encodeClip(Array.from({ length: count }, (_, index) => frame(index)), options)) parts.push(part);
      let decoded = 0;
      for await (const _ of vae.clip(parts, { output: 'raw' })) decoded += 1;
      return { parts: parts.map(({ frames, added }) => [frames, added]), decoded };
    };
    const cogvideox = await open('taecvx', tinyFile());
    assert.equal(cogvideox.info.starts, 'first_if_odd');
    assert.deepEqual(await lengths(cogvideox, 7), { parts: [[4, 0], [3, 0]], decoded: 8 });
    assert.deepEqual(await lengths(cogvideox, 9), { parts: [[4, 0], [4, 0], [1, 0]], decoded: 9 });
    await cogvideox.destroy();
    const h3 = await open('taeh3', tinyFile(24, 4));
    assert.equal(h3.info.starts, 'every_fifth');
    assert.deepEqual(await lengths(h3, 5), { parts: [[1, 0], [4, 0]], decoded: 5 });
    assert.deepEqual(await lengths(h3, 18, { pad: 'repeat' }), { parts: [[1, 0], [4, 0], [4, 0], [4, 0], [4, 0], [1, 0], [0, 4]], decoded: 22 });
    assert.deepEqual(await lengths(h3, 8, { pad: 'repeat' }), { parts: [[1, 0], [4, 0], [3, 1], [0, 4], [0, 4], [0, 1], [0, 4]], decoded: 22 });
    await assert.rejects(lengths(h3, 6), /such as 22 .*adds 16\), found 6/);
    await assert.rejects(h3.encode(frame(0)), /a clip, because this model's latents of one image are two frames/);
    await assert.rejects(async () => {
      for await (const _ of h3.clip({ data: new Float32Array(24 * 3), shape: [1, 24, 3, 1, 1] }, { output: 'raw' })) assert.fail('a frame');
    }, /expected 5n \+ 2 frames of latents, such as 2, 7 and 12, found 3/);
    await h3.destroy();
  });

  it('plans an encode of any number of frames', async () => {
    const plan = (/** @type {'encode' | 'decode'} */ direction, /** @type {number} */ frames) => wgvae.planFor({ family: 'taew2_1', width: 64, height: 64, device: 'cpu', direction, frames });
    assert.equal((await plan('encode', 4)).parts, 1);
    assert.equal((await plan('encode', 6)).parts, 2);
    assert.equal((await plan('decode', 5)).parts, 2);
    await assert.rejects(plan('decode', 6), /frames: expected 1, 5, 9 and so on, found 6/);
    await assert.rejects(plan('encode', 0), /frames: expected 1 or more, found 0/);
    const others = (/** @type {string} */ family, /** @type {'encode' | 'decode'} */ direction, /** @type {number} */ frames) => wgvae.planFor({ family, width: 64, height: 64, device: 'cpu', direction, frames });
    assert.equal((await others('taecvx', 'decode', 16)).parts, 4);
    assert.equal((await others('taeh3', 'encode', 39)).parts, 12);
    await assert.rejects(others('taecvx', 'decode', 5), /frames: expected 1, 8, 9 and so on, found 5/);
    await assert.rejects(others('taeh3', 'encode', 23), /frames: expected 5, 22, 39 and so on, found 23/);
  });
});
