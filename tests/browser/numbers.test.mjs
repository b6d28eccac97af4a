// @ts-check
// The same numbers as diffusers in f64 (tests/fixtures) and as the native command line, in each
// browser.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';

import { hasF16 } from './browsers.mjs';
import { relativeError } from './closeness.mjs';
import { fixture } from './fixtures.mjs';
import { decodeNatively } from './native.mjs';
import { readNpy } from './safetensors.mjs';
import { floats, inBrowsers } from './session.mjs';

/** SwiftShader takes a minute for a published network, so only Firefox decodes that one. */
const MODELS = { chromium: ['toy_odd', 'toy_wide'], firefox: ['toy_odd', 'toy_wide', 'sd3_odd'] };

/** Tilings of other tools on WebGPU. The CPU decodes by `cosine`. */
const TILINGS = /** @type {const} */ ({ chromium: ['blend'], firefox: ['blend', 'estimate'] });

/** Allowed error as in tests/gpu/decode.rs, relative to the largest value. */
const F32_ERROR = 1e-4;

/**
 * Most bytes of the module's memory, with any published network loaded: the weights are on the GPU.
 */
const MOST_HEAP = 64 << 20;

/** Allowed error as a multiple of torch's error in f16. */
const F16_ERRORS = 2;

/** Allowed error of `fast`, as a multiple of the same, as in tests/gpu/fast.rs. */
const FAST_ERRORS = 5;

/**
 * Latents that overflow each precision, but not the floats that carry them; and the models tested
 * with them.
 */
const HUGE = { f32: 3e38, f16: 1e6, fast: 1e6 };
const OVERFLOWING = ['toy_odd'];

inBrowsers({ models: MODELS }, (session) => {
  if (session.kind === 'firefox') {
    it('keeps what a budget leaves on the host out of the module', async (t) => {
      const { image, f16Error } = await fixture('sd3_odd');
      const found = await decodeInLeast(session, 'sd3_odd');
      t.diagnostic(`${found.budget} bytes of GPU memory, ${found.host} on the host, a wasm heap of ${(found.heap / 2 ** 20).toFixed(1)} MiB`);
      assert.ok(found.host > MOST_HEAP, `${found.host} bytes on the host say nothing about a heap of ${MOST_HEAP}`);
      assert.ok(found.heap < MOST_HEAP, `the wasm heap has ${found.heap} bytes`);
      assert.ok(relativeError(floats(found.raw), image.data) <= F16_ERRORS * f16Error);
    });
  }

  for (const tiling of TILINGS[session.kind]) decodesInTiles(session, tiling);

  if (hasF16(session.kind)) {
    it('decodes in fast, a few times as far from diffusers as torch is in f16', async (t) => {
      const { image, f16Error } = await fixture('toy_odd');
      const found = await decode(session, 'toy_odd', 'fast', false);
      const error = relativeError(floats(found.raw), image.data);
      t.diagnostic(`${found.storage}: ${error.toExponential(2)}, torch ${f16Error.toExponential(2)}`);
      assert.equal(found.storage, 'fast_f16');
      assert.ok(error <= FAST_ERRORS * f16Error, `relative max error ${error}, torch ${f16Error}`);
      assert.deepEqual(found.overflows, ['not-finite', 'not-finite', 'not-finite']);
    });
  } else {
    it('refuses fast without shader-f16', async () => {
      const folder = session.model('toy_odd/');
      const { error } = await session.run((folder) => lab.outcome(lab.open(folder, { precision: 'fast' })), folder);
      assert.equal(error?.code, 'input');
      assert.match(error?.message ?? '', /^precision: expected f16 or f32, on a device without shader-f16, found fast/);
    });
  }

  for (const name of MODELS[session.kind]) {
    // A published network takes a minute and a half here; a short run takes it in f16 only.
    const skip = name === 'sd3_odd' && !process.env.WGVAE_FULL && 'not in a short run';
    it(`decodes ${name} in f32 as diffusers and as the command line`, { skip }, async (t) => {
      const { image } = await fixture(name);
      const folder = join(session.folder, name);
      const [png, npy] = [await decodeNatively(folder, 'native.png', 'f32'), await decodeNatively(folder, 'native.npy', 'f32')];
      const found = await decode(session, name, 'f32', true);
      const error = relativeError(floats(found.raw), image.data);
      t.diagnostic(`${name} f32: ${error.toExponential(2)} in ${found.seconds.toFixed(2)} s, ${found.storage}`);
      assert.deepEqual(found.shape, image.shape.slice(1));
      assert.ok(error <= F32_ERROR, `relative max error ${error}, at most ${F32_ERROR}`);
      const native = readNpy(await readFile(npy));
      const apart = relativeError(floats(found.raw), native.data);
      assert.ok(apart <= F32_ERROR, `${apart} from ${npy}`);
      assert.ok(found.fromNative <= 1, `${found.fromNative} levels from ${png}`);
      t.diagnostic(`wasm heap ${(found.heap / 2 ** 20).toFixed(1)} MiB`);
      assert.ok(found.heap < MOST_HEAP, `the wasm heap has ${found.heap} bytes`);
      assertWithinOneLevel(Uint8Array.from(Buffer.from(found.rgba, 'base64')), image.data);
      assert.deepEqual(found.overflows, OVERFLOWING.includes(name) ? ['not-finite', 'not-finite', 'not-finite'] : []);
    });

    // SwiftShader compiles slowly, and its f16 is packed for any model.
    if (!hasF16(session.kind) && name !== 'toy_odd') continue;
    it(`decodes ${name} in f16 as well as torch`, async (t) => {
      const { image, f16Error } = await fixture(name);
      const found = await decode(session, name, 'f16', false);
      const error = relativeError(floats(found.raw), image.data);
      t.diagnostic(`${name} ${found.storage}: ${error.toExponential(2)}, torch ${f16Error.toExponential(2)}, in ${found.seconds.toFixed(2)} s`);
      assert.match(found.storage, hasF16(session.kind) ? /^f16$/i : /^packed_?f16$/i);
      assert.ok(error <= F16_ERRORS * f16Error, `relative max error ${error}, torch ${f16Error}`);
      assert.deepEqual(found.overflows, OVERFLOWING.includes(name) ? ['not-finite', 'not-finite', 'not-finite'] : []);
    });
  }
});

inBrowsers({ models: ['toy_odd'], device: 'cpu' }, (session) => decodesInTiles(session, 'cosine'));

/**
 * Defines a test of decodes in tiles.
 * @param {import('./session.mjs').Session} session
 * @param {typeof TILINGS['firefox'][number] | 'cosine'} tiling
 */
function decodesInTiles(session, tiling) {
  it(`decodes as other tools do, as the command line does it: ${tiling}`, async () => {
    const folder = join(session.folder, 'toy_odd');
    const lengths = tiling === 'estimate' ? [] : ['--tile-size', '32', '--tile-overlap', '8'];
    const [npy, png] = [`${tiling}.npy`, `${tiling}.png`].map((output) => decodeNatively(folder, output, 'f32', '--tiling', tiling, ...lengths));
    const found = await decodeTiled(session, 'toy_odd', { tiling, ...(lengths.length > 0 && { tileSize: 32, tileOverlap: 8 }) }, await png);
    const apart = relativeError(floats(found.raw), readNpy(await readFile(await npy)).data);
    assert.ok(apart <= F32_ERROR, `${apart} from the command line`);
    assert.ok(found.fromNative <= 1, `${found.fromNative} levels from the command line's picture`);
    assert.equal(found.onCanvas, tiling === 'estimate' ? 'drawn' : 'input');
    assert.deepEqual(found.plan, [lengths.length > 0 ? 2 * 4 : 1, found.measured]);
  });
}

/**
 * Decodes a model's latents, and with some models latents that overflow, to each output:
 * `overflows` has the codes of the errors.
 * @param {import('./session.mjs').Session} session
 * @param {string} name
 * @param {'f32' | 'f16' | 'fast'} precision
 * @param {boolean} picture true to compare with native.png, too
 */
function decode(session, name, precision, picture) {
  return session.run(
    async (folder, precision, picture, huge) => {
      const decoder = await lab.open(folder, { precision, device: await lab.device() });
      try {
        const latents = `${folder}latents.safetensors`;
        const raw = await decoder.decode(latents, { output: 'raw' });
        const seconds = decoder.report?.seconds ?? NaN;
        // The module is already running: this only returns its exports.
        const heap = (await lab.startWasm().then((wasm) => wasm.init({}))).memory.buffer.byteLength;
        const shape = await decoder.shapeOf(latents);
        const data = new Float32Array(shape.reduce((product, extent) => product * extent, 1)).fill(huge);
        const overflows = [];
        for (const output of huge ? ['raw', 'image-data', 'bitmap'] : []) {
          const { error } = await lab.outcome(decoder.decode({ data, shape }, { output: /** @type {any} */ (output) }));
          overflows.push(error?.code ?? `a picture as ${output}`);
        }
        const found = { raw: lab.base64(raw.data), shape: raw.shape, seconds, heap, overflows };
        const result = { ...found, storage: decoder.info.storage, rgba: '', fromNative: NaN };
        if (!picture) return result;
        const image = await decoder.decode(latents, { output: 'image-data' });
        const fromNative = lab.levelsApart(image, await lab.filePixels(`${folder}native.png`));
        return { ...result, rgba: lab.base64(image.data), fromNative };
      } finally {
        await decoder.destroy();
      }
    },
    session.model(`${name}/`),
    precision,
    picture,
    OVERFLOWING.includes(name) ? HUGE[precision] : 0,
  );
}

/**
 * Decodes a model's latents like other tools. Returns floats, the difference of a bitmap from the
 * command line's picture, and the error for a canvas.
 * @param {import('./session.mjs').Session} session
 * @param {string} name
 * @param {{ tiling: import('../../web/src/index.js').Tiling, tileSize?: number, tileOverlap?:
 * number }} tiling
 * @param {string} png
 */
function decodeTiled(session, name, tiling, png) {
  return session.run(
    async (folder, tiling, png) => {
      const decoder = await lab.open(folder, { precision: 'f32', device: await lab.device() });
      try {
        const latents = `${folder}latents.safetensors`;
        const raw = await decoder.decode(latents, { output: 'raw', ...tiling });
        const [, height, width] = raw.shape;
        const { tiles, predicted_peak_bytes: peak } = decoder.plan({ width, height, output: 'raw', ...tiling });
        const measured = decoder.report?.measured_peak_bytes;
        const bitmap = lab.pixels(await decoder.decode(latents, tiling));
        const { error } = await lab.outcome(decoder.decode(latents, { canvas: new OffscreenCanvas(1, 1), ...tiling }));
        const fromNative = lab.levelsApart(bitmap, await lab.filePixels(`${folder}${png}`));
        return { raw: lab.base64(raw.data), plan: [tiles, peak], measured, fromNative, onCanvas: error?.code ?? 'drawn' };
      } finally {
        await decoder.destroy();
      }
    },
    session.model(`${name}/`),
    tiling,
    png.slice(png.lastIndexOf('/') + 1),
  );
}

/**
 * Decodes in halves with the smallest possible budget: weights and activations wait on the host.
 * @param {import('./session.mjs').Session} session
 * @param {string} name
 */
function decodeInLeast(session, name) {
  return session.run(async (folder) => {
    const latents = `${folder}latents.safetensors`;
    const decoder = await lab.open(folder, { precision: 'f16', memoryBudget: 2 ** 40, parking: 'on' });
    try {
      const scale = decoder.info.pixels_per_latent;
      const [, , height, width] = await decoder.shapeOf(latents);
      const size = { width: width * scale, height: height * scale, output: /** @type {const} */ ('raw') };
      const { error } = await lab.outcome(async () => decoder.plan({ ...size, memoryBudget: 1 << 20 }));
      const budget = error?.smallest ?? NaN;
      const { host_bytes: host } = decoder.plan({ ...size, memoryBudget: budget });
      const { data } = await decoder.decode(latents, { output: 'raw', memoryBudget: budget });
      const { memory } = await (await lab.startWasm()).init({});
      return { raw: lab.base64(data), budget, host, heap: memory.buffer.byteLength };
    } finally {
      await decoder.destroy();
    }
  }, session.model(`${name}/`));
}

/**
 * @param {Uint8Array} rgba
 * @param {Float32Array} image [3, h, w]
 */
function assertWithinOneLevel(rgba, image) {
  const plane = image.length / 3;
  assert.equal(rgba.length, 4 * plane);
  for (let pixel = 0; pixel < plane; pixel += 1) {
    assert.equal(rgba[4 * pixel + 3], 255, `alpha of pixel ${pixel}`);
    for (let channel = 0; channel < 3; channel += 1) {
      const wanted = Math.min(1, Math.max(0, image[channel * plane + pixel] * 0.5 + 0.5)) * 255;
      const found = rgba[4 * pixel + channel];
      assert.ok(Math.abs(found - Math.round(wanted)) <= 1, `pixel ${pixel} channel ${channel}: ${found}, wanted ${wanted}`);
    }
  }
}
