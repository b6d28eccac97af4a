// @ts-check
// Resizing of pictures before an encode, in Node on the CPU: PIL's pixels to the bit, the command
// line's sizes, and what is said about them. Browsers run the same code on pixels that they read:
// resize.test.mjs.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';

import { clipModelFile } from './clip-models.mjs';
import { clipFixture, fixture, modelFile } from './fixtures.mjs';
import { readSafetensors } from './safetensors.mjs';
import { DIST } from './session.mjs';

/** @param {string} name */
const source = (name) => import(`${new URL(`web/src/${name}.js`, `file://${DIST}/`)}`);

/** @param {string} name */
const golden = async (name) => readSafetensors(await readFile(new URL(`../fixtures/${name}.safetensors`, import.meta.url)));

/** @param {string} text "WIDTHxHEIGHT" */
function sizeOf(text) {
  const [width, height] = text.split('x').map(Number);
  return { width, height };
}

/**
 * Returns a picture as browsers give it, opaque if it has no alpha.
 * @param {{ shape: number[], data: Uint8Array }} levels [h, w, 3] or [h, w, 4]
 */
function pixelsOf({ shape: [height, width, channels], data }) {
  const rgba = channels === 4 ? Uint8ClampedArray.from(data) : Uint8ClampedArray.from({ length: 4 * width * height }, (_, at) => (at % 4 === 3 ? 255 : data[3 * (at >> 2) + (at % 4)]));
  return { data: rgba, width, height };
}

describe('a resized picture', () => {
  /** @type {typeof import('../../web/src/index.js')} */
  let wgvae;
  /** @type {import('../../web/src/index.js').Vae} */
  let vae;
  /** @type {string[]} */
  let said = [];
  before(async () => {
    wgvae = await source('index');
    const { config } = await fixture('toy_odd');
    const onNotice = (/** @type {import('../../web/src/index.js').Notice} */ { code, message }) => { said.push(`${code}: ${message}`); };
    vae = await wgvae.createVae({ model: new Uint8Array(modelFile(config, { encoder: true })), config, device: 'cpu', onNotice });
  });
  after(() => vae.destroy());

  it('has PIL\'s pixels to the bit, whole or a part', async () => {
    /** @type {typeof import('../../web/src/lanczos.js')} */
    const { Lanczos } = await source('lanczos');
    const { names, levels } = await golden('lanczos');
    // Those that end in .down are of Pillow 13, where the passes have another order.
    const resized = names.filter((name) => name.includes('.') && !name.endsWith('.down'));
    assert.ok(resized.length > 40);
    for (const name of resized) {
      const [from, to] = name.split('.');
      const [given, size, wanted] = [pixelsOf(levels(from)), sizeOf(to), pixelsOf(levels(name))];
      // A picture that keeps its size is not resized.
      if (given.width === size.width && given.height === size.height) continue;
      const [left, top] = [Math.min(1, size.width - 1), Math.min(2, size.height - 1)];
      for (const part of [{ x: 0, y: 0, ...size }, { x: left, y: top, width: size.width - left, height: size.height - top }]) {
        const lanczos = new Lanczos(given, size, part, levels(from).shape[2] === 4);
        const { x, y, width, height } = lanczos.source;
        for (let row = y; row < y + height; row += 1) lanczos.add(given.data.slice(4 * (row * given.width + x), 4 * (row * given.width + x + width)));
        const rows = Array.from({ length: part.height }, (_, row) => [...wanted.data.subarray(4 * ((part.y + row) * size.width + part.x), 4 * (part.y + row + 1) * size.width)]);
        assert.deepEqual([...lanczos.finish()], rows.flat(), `${name} from ${part.x}, ${part.y}`);
      }
    }
  });

  it('needs all rows', async () => {
    /** @type {typeof import('../../web/src/lanczos.js')} */
    const { Lanczos } = await source('lanczos');
    const lanczos = new Lanczos({ width: 4, height: 4 }, { width: 2, height: 2 }, { x: 0, y: 0, width: 2, height: 2 }, false);
    lanczos.add(new Uint8ClampedArray(4 * 4 * 3));
    assert.throws(() => lanczos.finish(), /^WgvaeError: the browser gave 3 of 4 rows of the picture$/);
  });

  it('reads no more of a picture than its part needs', async () => {
    /** @type {typeof import('../../web/src/lanczos.js')} */
    const { Lanczos } = await source('lanczos');
    const { source: needed } = new Lanczos({ width: 1000, height: 100 }, { width: 500, height: 50 }, { x: 225, y: 0, width: 50, height: 50 }, false);
    // Six pixels on each side, for three lobes at half the size.
    assert.deepEqual(needed, { x: 445, y: 0, width: 110, height: 100 });
  });

  it('has the command line\'s size', async () => {
    /** @type {typeof import('../../web/src/fit.js')} */
    const { fitted } = await source('fit');
    const sizes = (/** @type {string} */ from, /** @type {import('../../web/src/fit.js').Request} */ request) => {
      const { scaled, part } = fitted(sizeOf(from), request, 8);
      return `${scaled.width}x${scaled.height}, ${part.width}x${part.height} from ${part.x}, ${part.y}`;
    };
    // As in tests/cpu/pictures.rs.
    assert.equal(sizes('100x50', { width: 64, height: 64 }), '128x64, 64x64 from 32, 0');
    assert.equal(sizes('50x100', { width: 64, height: 64, fit: 'cover' }), '64x128, 64x64 from 0, 32');
    assert.equal(sizes('333x200', { width: 100, height: 100 }), '159x96, 96x96 from 31, 0');
    assert.equal(sizes('100x50', { width: 64, height: 64, fit: 'contain' }), '64x32, 64x32 from 0, 0');
    assert.equal(sizes('50x99', { width: 64, height: 64, fit: 'contain' }), '32x64, 32x64 from 0, 0');
    assert.equal(sizes('100x70', { width: 64, height: 64, fit: 'contain' }), '64x40, 64x40 from 0, 0');
    assert.equal(sizes('100x70', { width: 70, height: 70, fit: 'fill' }), '64x64, 64x64 from 0, 0');
    // One side, and the picture's proportions.
    assert.equal(sizes('100x50', { width: 64 }), '64x32, 64x32 from 0, 0');
    assert.equal(sizes('50x100', { width: 64, fit: 'fill' }), '64x128, 64x128 from 0, 0');
    assert.equal(sizes('99x50', { height: 64 }), '120x64, 120x64 from 0, 0');
    // Without a size, borders are left out.
    assert.equal(sizes('101x55', {}), '101x55, 96x48 from 2, 3');
  });

  it('is encoded as PIL\'s picture is, and the size is said', async () => {
    const { levels } = await golden('lanczos');
    for (const [from, to] of [['noise_33x20', '32x16'], ['hard_64x48', '32x24'], ['hard_64x48', '72x56']]) {
      said = [];
      const size = sizeOf(to);
      const found = await vae.encode(pixelsOf(levels(from)), { ...size, fit: 'fill' });
      assert.deepEqual([found.width, found.height], [size.width, size.height]);
      assert.deepEqual(said, [`resized: the picture of ${from.split('_')[1]} pixels is resized to ${to}`]);
      assert.deepEqual([...found.data], [...(await vae.encode(pixelsOf(levels(`${from}.${to}`)))).data]);
    }
    said = [];
    const { width, height } = await vae.encode(pixelsOf(levels('hard_64x48')), { width: 24, height: 24 });
    assert.deepEqual([width, height, said], [24, 24, ['resized: the picture of 64x48 pixels is resized to 32x24, of which the middle 24x24 is encoded']]);
    said = [];
    await vae.encode(pixelsOf(levels('hard_64x48')), { width: 48, height: 48 });
    assert.deepEqual(said, ['cropped: the picture of 64x48 pixels is encoded without its borders, as 48x48']);
    said = [];
    await vae.encode(pixelsOf(levels('hard_64x48')), { width: 64, height: 48 });
    assert.deepEqual(said, []);
  });

  it('is diffusers\' picture where the sides are no multiples', async () => {
    const { metadata, levels, tensor } = await golden('preprocess');
    for (const [width, height, factor] of JSON.parse(metadata.sizes)) {
      if (factor !== 8) continue;
      const found = await vae.encode(pixelsOf(levels(`noise_${width}x${height}`)), { width, height, fit: 'fill' });
      assert.deepEqual([...found.data], [...(await vae.encode(tensor(`noise_${width}x${height}.8`))).data], `${width}x${height}`);
    }
  });

  it('loses its alpha only after the resize, which a model without opacity ignores', async () => {
    const { levels } = await golden('lanczos');
    const glass = pixelsOf(levels('rgba_33x20'));
    const opaque = { ...glass, data: glass.data.map((level, at) => (at % 4 === 3 ? 255 : level)) };
    said = [];
    const size = /** @type {const} */ ({ width: 64, height: 40, fit: 'fill' });
    assert.deepEqual([...(await vae.encode(glass, size)).data], [...(await vae.encode(opaque, size)).data]);
    assert.deepEqual(said.map((text) => text.split(':')[0]), ['resized', 'transparent', 'resized']);

    const { config } = await clipFixture('clip_wan');
    const layered = JSON.stringify({ ...JSON.parse(config), _class_name: 'AutoencoderKLQwenImage', input_channels: 4 });
    const encoder = await wgvae.createEncoder({ model: new Uint8Array(clipModelFile(layered, { encoder: true })), config: layered, device: 'cpu', precision: 'f32' });
    const holes = await encoder.encode(pixelsOf(levels('holes_40x30')), { width: 48, height: 40, fit: 'fill' });
    assert.deepEqual([...holes.data], [...(await encoder.encode(pixelsOf(levels('holes_40x30.48x40')))).data]);
    await encoder.destroy();
  });

  it('may be a frame of a clip, whatever the sizes of the others', async () => {
    const { config } = await clipFixture('clip_wan');
    /** @type {string[]} */
    const heard = [];
    const onNotice = (/** @type {import('../../web/src/index.js').Notice} */ { code, message }) => heard.push(`${code}: ${message}`);
    const vae = await wgvae.createVae({ model: new Uint8Array(clipModelFile(config, { encoder: true })), config, device: 'cpu', clips: true, precision: 'f32', onNotice });
    const { levels } = await golden('lanczos');
    const parts = async (/** @type {any[]} */ frames, /** @type {import('../../web/src/index.js').EncodeClipOptions} */ options = {}) => {
      const all = [];
      for await (const { data, width, height } of vae.encodeClip(frames, options)) all.push({ data: [...data], width, height });
      return all;
    };
    const [one, other] = [levels('noise_33x20'), levels('hard_64x48')].map(pixelsOf);
    const wanted = await parts([levels('noise_33x20.32x16'), ...Array(4).fill(levels('noise_33x20.32x16'))].map(pixelsOf));
    const resized = await parts(Array(5).fill(one), { width: 32, height: 16, fit: 'fill' });
    assert.deepEqual(resized, wanted);
    heard.splice(0);
    assert.deepEqual((await parts([one, other, one, one, one], { width: 32, height: 16 })).map(({ width, height }) => [width, height]), [[32, 16], [32, 16]]);
    assert.deepEqual(heard.map((text) => /^resized: the picture of (\d+x\d+) pixels/.exec(text)?.[1]), ['33x20', '64x48'], 'once for each size');
    // Neither keeps other proportions within one size.
    for (const size of /** @type {const} */ ([{}, { width: 32 }, { width: 32, height: 16, fit: 'contain' }])) {
      await assert.rejects(parts([one, other, one, one, one], size), /frame 2 of the clip: expected \d+x16 pixels, as those before, found /);
    }
    await vae.destroy();
  });

  it('has a size that makes sense, and pixels', async () => {
    const picture = { data: new Uint8ClampedArray(4 * 40 * 30), width: 40, height: 30 };
    const values = { data: new Float32Array(3 * 16 * 16), shape: [3, 16, 16] };
    /** @type {[any, any, RegExp][]} */
    const wrong = [
      [picture, { fit: 'cover' }, /^fit: expected a width or a height beside it, found neither$/],
      [picture, { width: 64, fit: 'covers' }, /^fit: expected one of cover, contain, fill, found "covers" \(did you mean "cover"\?\)$/],
      [picture, { width: 0 }, /^width: expected 1 to 65535 pixels, found 0$/],
      [picture, { height: 64.5 }, /^height: expected 1 to 65535 pixels, found 64.5$/],
      [picture, { width: 7, height: 64 }, /^picture: expected at least 8x8 pixels, found 7x64$/],
      [picture, { height: '64' }, /^height: expected 1 to 65535 pixels, found "64"$/],
      [values, { width: 8 }, /^width and height: expected a picture to resize, found values/],
    ];
    for (const [input, options, message] of wrong) {
      await assert.rejects(vae.encode(input, options), (/** @type {any} */ error) => error instanceof wgvae.WgvaeError && error.code === 'input' && message.test(error.message) || assert.fail(error.message));
    }
  });
});
