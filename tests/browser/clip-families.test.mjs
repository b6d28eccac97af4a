// @ts-check
// Clips of the networks for video beside Wan 2.1, in both directions: HunyuanVideo 1.5, Wan 2.2 and
// TAEHV. Results must equal the whole clip in f64, in the predicted memory.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { errorOfClip } from './closeness.mjs';
import { clipFixture } from './fixtures.mjs';
import { floats, inBrowsers } from './session.mjs';

const [HUNYUAN, WAN22, TAEHV, PREVIEW] = ['clip_hunyuan_video', 'clip_wan22', 'clip_taew2_1', 'clip_taew2_1_preview'];

/** Allowed error relative to the largest value, as in tests/gpu: at least this. */
const F32_ERROR = 1e-5;

/** Allowed error where values are clamped, as a multiple of torch's own error in f32. */
const TIMES_TORCH = 4;

/** The files of TAEHV do not tell whose latents they take. */
const FAMILY = 'taew2_1';

/** @type {[string, string, string?][]} */
const MODELS = [
  ['HunyuanVideo 1.5', HUNYUAN],
  ['Wan 2.2', WAN22],
  ['TAEHV', TAEHV, FAMILY],
];

/**
 * Checks a clip's frames or latents, which left a page as base64.
 * @param {import('node:test').TestContext} t
 * @param {string[]} found
 * @param {import('./safetensors.mjs').Tensor} wanted
 * @param {number} torch its error in f32
 */
function check(t, found, wanted, torch) {
  const error = errorOfClip(found.map(floats), wanted);
  t.diagnostic(`${error.toExponential(2)}, torch ${torch.toExponential(2)}`);
  assert.ok(error <= Math.max(F32_ERROR, TIMES_TORCH * torch), `relative max error ${error}`);
}

inBrowsers({ clips: [HUNYUAN, WAN22, TAEHV, PREVIEW] }, (session) => {
  const folder = (/** @type {string} */ model) => session.model(`${model}/`);

  for (const [name, model, family] of MODELS) {
    it(`decodes and encodes a clip of ${name}, in the predicted memory`, async (t) => {
      const { latents: { shape: [, , clipLatents] }, frames, errors, encode } = await clipFixture(model);
      const [decoded, encoded] = [frames, encode.pixels].map(({ shape: [, , count, height, width] }) => ({ count, size: { width, height } }));
      const found = await session.run(async (folder, family, clipLatents, size, encoded) => {
        // No class of diffusers has TAEHV's network, so it has no config.json.
        const vae = await lab.openVae(folder, { ...(family && { family, config: undefined }), precision: 'f32', clips: true, device: await lab.device() });
        const predicted = vae.planClip({ ...size, output: 'raw', clipLatents }).predicted_peak_bytes;
        const { frames, peaks } = await lab.clip(vae, `${folder}latents.safetensors`);
        const ofEncode = vae.planEncodeClip({ ...encoded.size, clipLatents }).predicted_peak_bytes;
        const pictures = Array.from({ length: encoded.count }, (_, index) => `${folder}frame_${index}.safetensors`);
        // A tiny autoencoder has no distribution.
        const output = family ? 'mode' : 'moments';
        const { parts, peaks: others } = await lab.encodeClip(vae, pictures, { output, clipLatents });
        await vae.destroy();
        return { frames: frames.map(lab.base64), latents: parts.map(({ data }) => lab.base64(data)), peaks: [predicted, ofEncode], measured: [peaks, others].map((all) => Math.max(...all)), left: lab.gpu.liveBytes() };
      }, folder(model), family, clipLatents, decoded.size, encoded);
      check(t, found.frames, frames, errors.f32);
      check(t, found.latents, encode.moments, encode.errors.f32);
      assert.deepEqual(found.measured, found.peaks);
      assert.equal(found.left, 0);
    });
  }

  it('decodes a clip of HunyuanVideo 1.5 on the CPU', async (t) => {
    const { frames, errors } = await clipFixture(HUNYUAN);
    const found = await session.run(async (folder) => {
      const decoder = await lab.open(folder, { device: 'cpu', clips: true });
      const { frames } = await lab.clip(decoder, `${folder}latents.safetensors`);
      await decoder.destroy();
      return frames.map(lab.base64);
    }, folder(HUNYUAN));
    check(t, found, frames, errors.f32);
  });

  it('plans more memory for longer clips of HunyuanVideo 1.5, and refuses longer ones than planned', async () => {
    const { latents: { shape: [, , count] }, frames: { shape: [, , , height, width] } } = await clipFixture(HUNYUAN);
    const found = await session.run(async (folder, size, count) => {
      const decoder = await lab.open(folder, { precision: 'f32', clips: true, device: await lab.device() });
      const peaks = [count, 33, undefined].map((clipLatents) => decoder.planClip({ ...size, output: 'raw', clipLatents }).predicted_peak_bytes);
      let frames = 0;
      const { error } = await lab.outcome(async () => {
        for await (const _ of decoder.clip(`${folder}latents.safetensors`, { output: 'raw', clipLatents: count - 1 })) frames += 1;
      });
      await decoder.destroy();
      return { peaks, frames, code: error?.code, message: error?.message };
    }, folder(HUNYUAN), { width, height }, count);
    const [short, long, usual] = found.peaks;
    assert.ok(short < long && long === usual, `${found.peaks}`);
    assert.deepEqual([found.frames, found.code], [1 + 4 * (count - 2), 'input']);
    assert.match(found.message ?? '', /at most 4 latents.*clip_latents/);
  });

  it('decodes a clip of TAEHV at the preview rate, which other models and encoders refuse', async (t) => {
    const { frames, errors } = await clipFixture(PREVIEW);
    const found = await session.run(async (tiny, other, latents, family) => {
      const opening = { precision: /** @type {const} */ ('f32'), clips: true, previewRate: true, device: await lab.device() };
      const ofTiny = { ...opening, family, config: undefined };
      const decoder = await lab.open(tiny, ofTiny);
      const { frames } = await lab.clip(decoder, latents);
      await decoder.destroy();
      const errors = [await lab.outcome(lab.open(other, opening)), await lab.outcome(lab.openVae(tiny, ofTiny))].map(({ error }) => [error?.code, error?.message]);
      return { frames: frames.map(lab.base64), errors };
    }, folder(TAEHV), folder(HUNYUAN), `${folder(PREVIEW)}latents.safetensors`, FAMILY);
    check(t, found.frames, frames, errors.f32);
    const [[code, message], [ofEncoder, because]] = found.errors;
    assert.deepEqual([code, ofEncoder], ['input', 'tensor']);
    assert.match(message ?? '', /preview rate: expected a model of TAEHV's family, found AutoencoderKLHunyuanVideo15/);
    assert.match(because ?? '', /encoder/);
  });
});
