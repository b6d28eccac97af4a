// @ts-check
// Plans without a model and without a device, without a browser: equal to the native command
// line's.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';

import { planNatively } from './native.mjs';
import { DIST } from './session.mjs';

/** @typedef {import('../../web/src/index.js').PlanForOptions} Options */

/** The package as it is published. @type {typeof import('../../web/src/index.js')} */
let wgvae;
/** @type {Uint8Array<ArrayBuffer>} */
let wasm;
let folder = '';
before(async () => {
  wgvae = await import(`${new URL('web/src/index.js', `file://${DIST}/`)}`);
  wasm = new Uint8Array(await readFile(join(DIST, 'web/pkg/wgvae_bg.wasm')));
  folder = await mkdtemp(join(tmpdir(), 'wgvae-plan-'));
});
after(() => rm(folder, { recursive: true, force: true }));

/** @param {Options} options */
const plan = (options) => wgvae.planFor({ ...options, wasm });

/** Returns the fields that plans of the package and of the command line share. @param {any} plan */
const shared = ({ timeline, tiles, limits, ...facts }) => facts;

describe('planFor', () => {
  /** @type {[string, Options, string[]][]} */
  const cases = [
    ['a decode', { family: 'sd15', width: 1024, height: 1024, output: 'image-data' }, ['--family', 'sd15', '--size', '1024x1024']],
    ['other precision, sides and floats', { family: 'flux2', width: 320, height: 176, precision: 'f32', output: 'raw' }, ['--family', 'flux2', '--size', '320x176', '--precision', 'f32', '--output', 'raw']],
    ['a budget', { family: 'sdxl', width: 512, height: 512, memoryBudget: 200 << 20, output: 'image-data' }, ['--family', 'sdxl', '--size', '512x512', '--memory-budget', `${200 << 20}`]],
    ['a budget without parking', { family: 'sd15', width: 512, height: 512, memoryBudget: 250 << 20, parking: 'off', output: 'image-data' }, ['--family', 'sd15', '--size', '512x512', '--memory-budget', `${250 << 20}`, '--parking', 'off']],
    ['an encode of any size', { family: 'sd3', width: 301, height: 211, direction: 'encode' }, ['--family', 'sd3', '--size', '301x211', '--encode']],
    ['the CPU', { device: 'cpu', family: 'sd15', width: 256, height: 256, output: 'image-data' }, ['--family', 'sd15', '--size', '256x256', '--limits', 'cpu']],
    ['a device without shader-f16', { family: 'taesd', width: 256, height: 256, limits: { shader_f16: false }, output: 'image-data' }, ['--family', 'taesd', '--size', '256x256', '--packed']],
  ];
  for (const [what, options, parameters] of cases) {
    it(`plans as the command line: ${what}`, async () => {
      const found = await plan(options);
      assert.deepEqual(shared(found), shared(await planNatively(...parameters)));
      assert.equal(found.timeline.reduce((sum, { steps }) => sum + steps, 0), found.steps);
      if (options.memoryBudget) assert.ok(found.predicted_peak_bytes <= options.memoryBudget);
    });
  }

  /** @type {[string, Partial<Options>, string[]][]} */
  const clips = [
    ['a decode', {}, []],
    ['a decode within a budget', { memoryBudget: 40 << 20 }, ['--memory-budget', `${40 << 20}`]],
    ['an encode', { direction: 'encode' }, ['--encode']],
  ];
  for (const [what, options, flags] of clips) {
    it(`plans clips as the command line: ${what}`, async () => {
      const found = await wgvae.planFor({ family: 'wan21', width: 64, height: 64, frames: 81, ...options, wasm });
      const native = await planNatively('--family', 'wan21', '--size', '64x64', '--frames', '81', ...flags);
      assert.deepEqual(
        [found.predicted_peak_bytes, found.predicted_seconds, found.state_bytes, found.host_bytes, found.parts],
        [native.predicted_peak_bytes, native.predicted_seconds, native.clip.state_bytes, native.clip.host_bytes, native.clip.latent_frames],
      );
      assert.deepEqual([shared(found.first), shared(found.next)], [native.clip.first_plan, shared(native.plan)]);
      assert.equal(found.macs, found.first.macs + 20 * found.next.macs);
    });
  }

  it('plans clips at the preview rate as the command line', async () => {
    const size = { family: 'taew2_1', width: 64, height: 64, frames: 6, previewRate: true };
    const native = await planNatively('--family', 'taew2_1', '--size', '64x64', '--frames', '6', '--preview-rate');
    const found = await wgvae.planFor({ ...size, wasm });
    assert.deepEqual([shared(found.first), shared(found.next)], [native.clip.first_plan, shared(native.plan)]);
    assert.deepEqual([found.frames, found.parts], [1, 6]);
    const refused = [{ ...size, family: 'wan21' }, { ...size, direction: /** @type {const} */ ('encode') }];
    const [other, encode] = await Promise.all(refused.map((options) => plan(options).then(String, String)));
    assert.match(other, /preview rate: expected a model of TAEHV's family/);
    assert.match(encode, /previewRate: expected a decode with it/);
  });

  it('plans the same memory for every border, and refuses other words and models', async () => {
    const size = { family: 'sdxl', width: 64, height: 64 };
    const native = shared(await planNatively('--family', 'sdxl', '--size', '64x64', '--border', 'reflect'));
    assert.deepEqual(shared(await plan({ ...size, border: 'reflect', output: 'image-data' })), native);
    const word = await plan(/** @type {any} */ ({ ...size, border: 'mirror' })).then(String, String);
    assert.match(word, /border: expected one of zeros, reflect/);
    const other = await plan({ ...size, family: 'taesd', border: 'reflect' }).then(String, String);
    assert.match(other, /border: expected a model of AutoencoderKL's kind, found AutoencoderTiny/);
  });

  it('takes the limits of a device from a file of the command line, or from an adapter', async () => {
    const size = { family: 'sd15', width: 768, height: 512, output: /** @type {const} */ ('image-data') };
    const { limits } = await planNatively('--family', 'sd15', '--size', '8x8');
    const large = { ...limits, max_buffer_size: 2 ** 32, max_storage_buffer_binding_size: 2 ** 31, vendor: 'nvidia', min_uniform_buffer_offset_alignment: 64 };
    await writeFile(join(folder, 'limits.json'), JSON.stringify(large));
    const native = shared(await planNatively('--family', 'sd15', '--size', '768x512', '--limits', join(folder, 'limits.json')));
    assert.deepEqual(shared(await plan({ ...size, limits: large })), native);
    const adapter = {
      limits: { maxBufferSize: 2 ** 32, maxStorageBufferBindingSize: 2 ** 31, minUniformBufferOffsetAlignment: 64, maxComputeWorkgroupStorageSize: 2 ** 20 },
      features: new Set(['shader-f16']),
      info: { vendor: 'nvidia', isFallbackAdapter: false },
    };
    assert.deepEqual(shared(await plan({ ...size, limits: /** @type {any} */ (adapter) })), native);
  });

  it('counts the work of all tiles', async () => {
    const size = { family: 'sd15', width: 1024, height: 1024 };
    const [whole, tiled] = [await plan({ ...size }), await plan({ ...size, tiling: 'blend', tileSize: 512, tileOverlap: 128 })];
    assert.deepEqual([whole.tiles, tiled.tiles], [1, 9]);
    assert.ok(tiled.predicted_peak_bytes < whole.predicted_peak_bytes);
    // Area of 4 whole tiles, 4 of 512x256 and one of 256x256. Each has a bit less than its share of
    // the attention's work.
    const parts = (4 * 512 * 512 + 4 * 512 * 256 + 256 * 256) / (1024 * 1024);
    assert.ok(tiled.macs > 0.8 * parts * whole.macs && tiled.macs < parts * whole.macs, `${tiled.macs} of ${whole.macs}`);
  });

  it('takes config.json as text, as an object and as a file, and says the smallest budget', async () => {
    const config = JSON.stringify({ _class_name: 'AutoencoderTiny', latent_channels: 4 });
    const size = { width: 256, height: 256 };
    const [text, object, file] = [config, JSON.parse(config), new Blob([config])].map((config) => plan({ ...size, config }));
    assert.deepEqual(await object, await text);
    assert.deepEqual(await file, await text);
    const error = await plan({ ...size, config, memoryBudget: 1024 }).catch((error) => error);
    assert.deepEqual([error.name, error.code], ['WgvaeError', 'budget']);
    assert.ok((await plan({ ...size, config, memoryBudget: error.smallest })).predicted_peak_bytes <= error.smallest);
  });

  it('names the option that is wrong', async () => {
    const right = { family: 'sd15', width: 64, height: 64 };
    /** @type {[any, RegExp][]} */
    const wrong = [
      [{ ...right, family: 'sd9' }, /^family: expected one of sd15, .*found "sd9"$/],
      [{ ...right, family: 7 }, /^family: expected text, found 7$/],
      [{ width: 64, height: 64 }, /^model: expected its family, or its config, found neither$/],
      [{ ...right, config: {} }, /^model: .*found both$/],
      [{ ...right, width: 60 }, /^width of the picture: expected a multiple of 8 pixels, found 60$/],
      [{ ...right, height: undefined }, /^height of the picture: expected 1 to 4294967295 pixels, found undefined$/],
      [{ ...right, width: 2 ** 32 }, /^width: expected a whole number below 2 \*\* 32, found 4294967296$/],
      [{ ...right, width: 2 ** 31 }, /picture|size|image/],
      [{ ...right, budget: 1 }, /^budget: expected one of family, .*memoryBudget.*found an option "budget" \(did you mean "memoryBudget"\?\)$/],
      [{ ...right, memoryBudget: NaN }, /^memoryBudget: expected a whole number, found NaN$/],
      [{ ...right, precision: 'f64' }, /^precision: expected one of auto, f32, f16, fast, found "f64"$/],
      [{ ...right, direction: 'both' }, /^direction: expected one of decode, encode, found "both"$/],
      [{ ...right, direction: 'encode', tiling: 'blend' }, /^tiling: expected a decode with it/],
      [{ ...right, tileSize: 512 }, /^tile size: expected no value, unless tiling is blend or cosine, found 512/],
      [{ ...right, tiling: 'blend', tileSize: 100 }, /^tile size: .*100/],
      [{ ...right, frames: 5 }, /^frames: expected a model for video with it, found 5/],
      [{ family: 'wan21', width: 64, height: 64, frames: 6 }, /^frames: expected 1, 5, 9 and so on, found 6$/],
      [{ family: 'wan21', width: 64, height: 64, frames: 0 }, /^frames: /],
      [{ family: 'wan21', width: 64, height: 64, frames: 5, tiling: 'estimate' }, /^tiling: /],
      [{ ...right, limits: 7 }, /^limits: expected a GPUAdapter.*found 7$/],
      [{ ...right, limits: { features: new Set() } }, /^limits: expected a GPUAdapter.*found Object$/],
      [{ ...right, limits: { max_size: 7 } }, /^limits\.max_size: expected a limit of a device/],
      [{ ...right, limits: { max_buffer_size: 'large' } }, /^limits\.max_buffer_size: .*"large"/],
      [{ ...right, limits: { min_uniform_buffer_offset_alignment: 3 } }, /^limits, min_uniform_buffer_offset_alignment: expected a power of two/],
      [{ ...right, limits: { kind: 'tpu' } }, /^limits\.kind: .*tpu/],
    ];
    for (const [options, message] of wrong) {
      const error = await plan(options).then((found) => assert.fail(`${JSON.stringify(options)} has a plan of ${found.predicted_peak_bytes} bytes`), (error) => error);
      assert.equal(error.name, 'WgvaeError', error.stack);
      assert.match(error.message, message);
      assert.equal(error.code, 'input', error.message);
    }
    const network = await plan({ width: 64, height: 64, config: { _class_name: 'UNet' } }).catch((error) => error);
    assert.deepEqual([network.name, network.code], ['WgvaeError', 'config']);
  });
});
