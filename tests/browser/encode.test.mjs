// @ts-check
// Encoding of pictures to latents: diffusers' numbers, every kind of picture on a page, and
// pictures that a model rejects.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { hasF16 } from './browsers.mjs';
import { fixture } from './fixtures.mjs';
import { floats, inBrowsers } from './session.mjs';

const MODEL = 'toy_odd';

/**
 * Allowed errors as in tests/gpu: relative to the largest value, and as a multiple of torch's error
 * in f16.
 */
const F32_ERROR = 1e-4;
const F16_ERRORS = 2;

inBrowsers({ models: [MODEL] }, (session) => {
  const folder = () => session.model(`${MODEL}/`);

  for (const precision of /** @type {const} */ (['f32', 'f16'])) {
    it(`encodes in ${precision} as diffusers, within the memory that was predicted`, async (t) => {
      const golden = (await fixture(MODEL)).encode;
      assert.ok(golden);
      const found = await session.run(async (folder, precision) => {
        const vae = await (precision === 'f32' ? lab.sharedVae(folder) : lab.openVae(folder, { precision }));
        const { data, shape, unscaled, width, height } = await vae.encode(`${folder}image.safetensors`, { output: 'moments' });
        const { predicted_peak_bytes: predicted } = vae.planEncode({ width, height });
        const { report, info } = vae;
        if (precision !== 'f32') await vae.destroy();
        return { moments: lab.base64(data), shape, unscaled, size: [width, height], peaks: [report?.predicted_peak_bytes, report?.measured_peak_bytes, predicted], storage: info.storage };
      }, folder(), precision);
      const error = relativeError(floats(found.moments), golden.moments.data);
      t.diagnostic(`${found.storage}: ${error.toExponential(2)}, torch in f16 ${golden.f16Error.toExponential(2)}`);
      assert.deepEqual([found.shape, found.size, found.unscaled], [golden.moments.shape, [94, 43], true]);
      assert.ok(error <= (precision === 'f32' ? F32_ERROR : F16_ERRORS * golden.f16Error), `relative max error ${error}`);
      assert.match(found.storage, precision === 'f32' ? /^f32$/ : hasF16(session.kind) ? /^f16$/ : /^packed_f16$/);
      assert.ok(found.peaks.every((peak) => peak === found.peaks[0]), JSON.stringify(found.peaks));
    });
  }

  it('gives latents that decode takes as they are, in the diffusion model\'s scale or the VAE\'s own', async () => {
    const found = await session.run(async (folder) => {
      const vae = await lab.sharedVae(folder);
      const image = `${folder}image.safetensors`;
      const moments = await vae.encode(image, { output: 'moments' });
      const [latents, own] = [await vae.encode(image), await vae.encode(image, { unscaled: true })];
      const { scaling_factor: factor, shift_factor: shift } = /** @type {any} */ (vae.info.config);
      const scaled = own.data.map((value) => (value - (shift ?? 0)) * factor);
      const furthest = latents.data.reduce((most, value, index) => Math.max(most, Math.abs(value - scaled[index])), 0);
      const [picture, other] = [await vae.decode(latents, { output: 'raw' }), await vae.decode(own, { output: 'raw' })];
      const apart = picture.data.reduce((most, value, index) => Math.max(most, Math.abs(value - other.data[index])), 0);
      const refusal = await lab.outcome(vae.decode(moments));
      return {
        shapes: [latents.shape, own.shape, picture.shape], isMean: lab.isSame(own.data, moments.data.subarray(0, own.data.length)), flags: [latents.unscaled, own.unscaled],
        furthest, apart, refused: refusal.error?.code,
      };
    }, folder());
    const { furthest, apart, ...facts } = found;
    assert.deepEqual(facts, { shapes: [[1, 4, 5, 11], [1, 4, 5, 11], [3, 40, 88]], isMean: true, flags: [false, true], refused: 'input' });
    assert.ok(furthest < 1e-5 && apart < 1e-4, `${furthest}, ${apart}`);
  });

  it('draws the same sample for the same seed', async () => {
    const found = await session.run(async (folder) => {
      const vae = await lab.sharedVae(folder);
      const image = `${folder}image.safetensors`;
      const sample = async (/** @type {number | undefined} */ seed) => (await vae.encode(image, { output: 'sample', unscaled: true, seed })).data;
      const { data } = await vae.encode(image, { output: 'moments' });
      const [zero, again, one] = [await sample(undefined), await sample(0), await sample(1)];
      const noise = [...zero].map((value, index) => (value - data[index]) / Math.exp(data[index + zero.length] / 2));
      return { isSame: lab.isSame(zero, again), isOther: !lab.isSame(zero, one), spread: Math.hypot(...noise) / Math.sqrt(noise.length) };
    }, folder());
    assert.ok(found.isSame && found.isOther, JSON.stringify(found));
    assert.ok(found.spread > 0.8 && found.spread < 1.2, `standard deviation ${found.spread}`);
  });

  it('loads the encoder alone, tells how far it is, and frees all', async () => {
    const found = await session.run(async (folder) => {
      const { device } = await lab.sharedVae(folder);
      const before = lab.gpu.liveBytes();
      /** @type {string[]} */
      const phases = [];
      const options = { model: `${folder}both.safetensors`, config: `${folder}config.json`, device };
      const encoder = await lab.wgvae.createEncoder({ ...options, onProgress: ({ phase, done, total }) => phases.at(-1) !== phase && total > 0 && done <= total && phases.push(phase) });
      const alone = encoder.ledger().current;
      const vae = await lab.wgvae.createVae(options);
      const both = vae.ledger().current;
      const decoder = await lab.wgvae.createDecoder(options);
      const decoding = decoder.ledger().current;
      await encoder.encode(`${folder}image.safetensors`);
      for (const model of [encoder, vae, decoder]) await model.destroy();
      const late = await lab.outcome(encoder.encode(`${folder}image.safetensors`));
      return { sum: alone + decoding - both, alone, phases, left: lab.gpu.liveBytes() - before, late: late.error?.code, hasDecode: 'decode' in encoder, ended: encoder.ledger().current };
    }, folder());
    assert.ok(found.alone > 0);
    assert.deepEqual({ ...found, alone: 1 }, { sum: 0, alone: 1, phases: ['load', 'compile', 'encode'], left: 0, late: 'destroyed', hasDecode: false, ended: 0 });
  });

  it('stops when it is aborted, and the next one is right, behind a decode', async (t) => {
    const found = await session.run(async (folder) => {
      const vae = await lab.sharedVae(folder);
      const image = lab.noise(320, 192);
      const wanted = await vae.encode(image);
      const before = vae.ledger().current;
      const [controller, reason] = [new AbortController(), new Error('enough')];
      let aborted = NaN;
      const onProgress = (/** @type {{ phase: string, done: number }} */ { phase, done }) => {
        if (phase !== 'encode' || done === 0 || controller.signal.aborted) return;
        aborted = performance.now();
        controller.abort(reason);
      };
      const isReason = await vae.encode(image, { signal: controller.signal, onProgress }).catch((/** @type {unknown} */ error) => error === reason);
      const waited = performance.now() - aborted;
      const earlier = await vae.encode(image, { signal: AbortSignal.abort(reason) }).catch((/** @type {unknown} */ error) => error === reason);
      const [picture, again] = await Promise.all([vae.decode(`${folder}latents.safetensors`, { output: 'image-data' }), vae.encode(image)]);
      return { isReason, earlier, waited, left: vae.ledger().current - before, right: lab.isSame(wanted.data, again.data) && (await lab.isRight(folder, picture)) };
    }, folder());
    t.diagnostic(`rejected ${found.waited.toFixed(1)} ms after the abort`);
    assert.deepEqual({ ...found, waited: 0 }, { isReason: true, earlier: true, waited: 0, left: 0, right: true });
  });

  it('keeps a budget, to the bit', async () => {
    const found = await session.run(async (folder) => {
      const { device } = await lab.sharedVae(folder);
      const vae = await lab.openVae(folder, { precision: 'f32', memoryBudget: 2 ** 40, parking: 'on', device });
      const image = lab.noise(320, 192);
      const wanted = await vae.encode(image);
      const budget = Math.ceil((vae.report?.measured_peak_bytes ?? NaN) / 2);
      const within = await vae.encode(image, { memoryBudget: budget });
      const peak = vae.report?.measured_peak_bytes ?? NaN;
      const { error } = await lab.outcome(vae.encode(image, { memoryBudget: 1 }));
      await vae.destroy();
      return { isSame: lab.isSame(wanted.data, within.data), isWithin: peak <= budget, refused: error?.code, hasSmallest: error?.smallest > 1 };
    }, folder());
    assert.deepEqual(found, { isSame: true, isWithin: true, refused: 'budget', hasSmallest: true });
  });

  it('goes on with another device when its own is lost', async () => {
    const found = await session.run(async (folder) => {
      /** @type {string[]} */
      const notices = [];
      const vae = await lab.openVae(folder, { precision: 'f32', onNotice: ({ code }) => notices.push(code) });
      const image = `${folder}image.safetensors`;
      const wanted = await vae.encode(image);
      vae.device.destroy();
      const again = await vae.encode(image);
      await vae.destroy();
      return { notices, isSame: lab.isSame(wanted.data, again.data) };
    }, folder());
    assert.deepEqual(found, { notices: ['device-recovered'], isSame: true });
  });
});

inBrowsers({ models: [MODEL], device: 'cpu' }, (session) => {
  const folder = () => session.model(`${MODEL}/`);

  it('takes every kind of picture to the same latents', async () => {
    const found = await session.run(async (folder) => {
      const vae = await lab.sharedVae(folder);
      const image = lab.noise(61, 42);
      const canvas = lab.canvasOf(image);
      const png = await canvas.convertToBlob();
      const element = Object.assign(new Image(), { src: URL.createObjectURL(png) });
      await element.decode();
      const visible = Object.assign(document.createElement('canvas'), { width: 61, height: 42 });
      visible.getContext('2d')?.putImageData(image, 0, 0);
      const bytes = new Uint8Array(await png.arrayBuffer());
      // The middle, with sides that are multiples of 8.
      const wanted = await vae.encode(lab.valuesOf(image, 2, 1, 56, 40));
      /** @type {Record<string, any>} */
      const inputs = {
        ImageData: image, OffscreenCanvas: canvas, canvas: visible, ImageBitmap: await createImageBitmap(image), img: element, VideoFrame: new VideoFrame(visible, { timestamp: 0 }),
        Blob: png, File: new File([png], 'a.png'), bytes, buffer: bytes.buffer, address: element.src,
      };
      /** @type {string[]} */
      const wrong = [];
      for (const [name, input] of Object.entries(inputs)) {
        const { data, width, height } = await vae.encode(input);
        const apart = data.reduce((most, value, index) => Math.max(most, Math.abs(value - wanted.data[index])), 0);
        // Video converts the colours.
        if (apart > (name === 'VideoFrame' ? 0.2 : 0) || width !== 56 || height !== 40) wrong.push(`${name}: ${apart}, ${width}x${height}`);
      }
      inputs.VideoFrame.close();
      // It still belongs to the caller.
      return { wrong, isThere: inputs.ImageBitmap.width === 61 };
    }, folder());
    assert.deepEqual(found, { wrong: [], isThere: true });
  });

  it('says what of a picture is not encoded', async () => {
    const found = await session.run(async (folder) => {
      /** @type {string[]} */
      const notices = [];
      const device = await lab.device();
      const encoder = await lab.wgvae.createEncoder({
        model: `${folder}both.safetensors`, config: `${folder}config.json`, precision: 'f32', device, onNotice: ({ code, message }) => notices.push(`${code}: ${message}`),
      });
      const opaque = await encoder.encode(lab.noise(48, 40));
      const glass = await encoder.encode(lab.noise(48, 40, 128));
      const { pngOf } = /** @type {typeof import('../../web/src/png.js')} */ (await import(/** @type {any} */ ('/web/src/png.js')));
      // So faint that a canvas would keep only a few levels of its colours.
      const faint = await encoder.encode(await pngOf(lab.noise(48, 40, 3).data, 48, 40, 4));
      await encoder.encode(lab.noise(50, 40));
      await encoder.destroy();
      return { notices, isSame: [glass, faint].map(({ data }) => lab.isSame(opaque.data, data)) };
    }, folder());
    assert.equal(found.notices.length, 3, JSON.stringify(found.notices));
    assert.match(found.notices[0], /^transparent: /);
    assert.match(found.notices[1], /^transparent: /);
    assert.match(found.notices[2], /^cropped: .*50x40.*48x40/);
    assert.deepEqual(found.isSame, [true, true]);
  });

  it('takes pictures the right way up', async () => {
    const found = await session.run(async (folder) => {
      const vae = await lab.sharedVae(folder);
      // Two flat halves, which JPEG hardly changes.
      const canvas = new OffscreenCanvas(64, 32);
      const context = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext('2d'));
      context.fillStyle = '#d04020';
      context.fillRect(0, 0, 64, 32);
      context.fillStyle = '#2040d0';
      context.fillRect(0, 0, 32, 32);
      const plain = new Uint8Array(await (await canvas.convertToBlob({ type: 'image/jpeg', quality: 1 })).arrayBuffer());
      // EXIF with one entry: orientation 6, a quarter turn.
      const exif = [0xff, 0xe1, 0, 34, ...[...'Exif\0\0MM'].map((letter) => letter.charCodeAt(0)), 0, 42, 0, 0, 0, 8, 0, 1, 1, 18, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0];
      const turned = new Blob([plain.slice(0, 2), Uint8Array.from(exif), plain.slice(2)]);
      const upright = new OffscreenCanvas(32, 64);
      const other = /** @type {OffscreenCanvasRenderingContext2D} */ (upright.getContext('2d'));
      other.rotate(Math.PI / 2);
      other.drawImage(await createImageBitmap(new Blob([plain])), 0, -32);
      const [got, wanted] = [await vae.encode(turned), await vae.encode(upright)];
      const apart = got.data.reduce((most, value, index) => Math.max(most, Math.abs(value - wanted.data[index])), 0);
      return { size: [got.width, got.height], apart };
    }, folder());
    assert.deepEqual(found.size, [32, 64]);
    assert.ok(found.apart < 0.02, `${found.apart}`);
  });

  it('says what is wrong with a picture', async () => {
    const found = await session.run(async (folder) => {
      const vae = await lab.sharedVae(folder);
      const canvas = lab.canvasOf(lab.noise(64, 48));
      const cut = async (/** @type {string} */ type, /** @type {number} */ by) => {
        const blob = await canvas.convertToBlob({ type });
        return blob.slice(0, blob.size - by);
      };
      const values = lab.valuesOf(lab.noise(16, 16));
      const whole = await cut('image/jpeg', 0);
      await vae.encode(whole);
      const before = vae.ledger().current;
      /** @type {Record<string, [any, any?]>} */
      const inputs = {
        channels: [{ data: new Float32Array(4 * 64), shape: [4, 8, 8] }],
        finite: [{ data: values.data.map((value, index) => (index === 5 ? NaN : value)), shape: values.shape }],
        shape: [{ data: values.data, shape: [3, 16, 15] }],
        axes: [{ data: values.data, shape: [768] }],
        small: [lab.noise(7, 40)], tiny: [{ data: new Float32Array(3 * 49), shape: [3, 7, 7] }],
        index: [values, { index: 1 }], seed: [values, { seed: -1 }], output: [values, { output: 'mean' }],
        text: [new Blob(['no picture at all, but some text'])], empty: [new Blob([])],
        cutPng: [await cut('image/png', 20)], cutJpeg: [await cut('image/jpeg', 2000)],
        nothing: [undefined], number: [7], object: [{}], missing: ['missing.png'],
      };
      /** @type {Record<string, string>} */
      const codes = {};
      for (const [name, [input, options]] of Object.entries(inputs)) {
        const { error } = await lab.outcome(vae.encode(input, options));
        codes[name] = `${error?.code} ${error?.isTyped}`;
      }
      // Data that cameras append to a picture.
      const { value } = await lab.outcome(vae.encode(new Blob([whole, Uint8Array.of(0xff, 0xda, 0, 8, 1, 2)])));
      return { codes, size: [value?.width, value?.height], left: vae.ledger().current - before };
    }, folder());
    const input = 'input true';
    const format = 'format true';
    assert.deepEqual(found, {
      codes: {
        channels: input, finite: input, shape: input, axes: input, small: input, tiny: input, index: input, seed: input, output: input,
        text: format, empty: format, cutPng: format, cutJpeg: format, nothing: input, number: input, object: input, missing: 'http true',
      },
      size: [64, 48], left: 0,
    });
  });

  it('says which half a model lacks', async () => {
    const found = await session.run(async (folder) => {
      const device = await lab.device();
      const options = { model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json`, device };
      const messages = [];
      for (const create of [lab.wgvae.createEncoder, lab.wgvae.createVae]) {
        const { error } = await lab.outcome(create(options));
        messages.push(`${error?.code}: ${error?.message}`);
      }
      const unscaled = await lab.wgvae.createEncoder({ ...options, model: `${folder}both.safetensors`, unscaled: true });
      const { error } = await lab.outcome(unscaled.encode(`${folder}image.safetensors`, { unscaled: false }));
      messages.push(`${error?.code}: ${error?.message}`);
      await unscaled.destroy();
      return messages;
    }, folder());
    assert.equal(found.length, 3);
    for (const message of found.slice(0, 2)) assert.match(message, /^input: .*expected a model with encoder weights, found only decoder weights/);
    assert.match(found[2], /^input: .*scaled.*loaded/);
  });

  it('says that values are of another range, and that an SVG has no pixels', async () => {
    const found = await session.run(async (folder) => {
      /** @type {string[]} */
      const notices = [];
      const device = await lab.device();
      const encoder = await lab.openVae(folder, { device, precision: 'f32', onNotice: ({ code }) => notices.push(code) });
      const { data, shape } = lab.valuesOf(lab.noise(16, 16));
      await encoder.encode({ data, shape });
      // Values slightly outside the range, as after a resize.
      await encoder.encode({ data: data.map((value) => 1.2 * value), shape });
      const soFar = notices.length;
      await encoder.encode({ data: data.map((value) => 127.5 * (value + 1)), shape });
      const svg = new Blob(['<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="16" height="16"/>'], { type: 'image/svg+xml' });
      const { error } = await lab.outcome(encoder.encode(svg));
      await encoder.destroy();
      return { soFar, notices, message: error?.message, code: error?.code };
    }, folder());
    assert.deepEqual(found, { soFar: 0, notices: ['range'], code: 'format', message: 'picture: expected a picture that this browser reads, found an SVG, which has no pixels of its own: draw it onto a canvas first' });
  });

  it('does not show a picture that another site keeps to itself', async () => {
    const found = await session.run(async (folder, image) => {
      const vae = await lab.sharedVae(folder);
      const element = Object.assign(new Image(), { src: image });
      await element.decode();
      const { error } = await lab.outcome(vae.encode(element));
      return { code: error?.code, isTyped: error?.isTyped, hasAdvice: /\(CORS\).*crossorigin/.test(error?.message) };
    }, folder(), foreignPicture(session));
    assert.deepEqual(found, { code: 'input', isTyped: true, hasAdvice: true });
  });
});

/**
 * Returns a picture at another origin, without CORS.
 * @param {import('./session.mjs').Session} session
 */
function foreignPicture(session) {
  const url = new URL(session.server.route('/foreign.png', { file: new URL('../../assets/demo.png', import.meta.url).pathname }));
  url.hostname = url.hostname === 'localhost' ? '127.0.0.1' : 'localhost';
  return url.href;
}

/**
 * @param {Float32Array} values
 * @param {Float32Array} golden
 */
function relativeError(values, golden) {
  assert.equal(values.length, golden.length);
  const most = golden.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  return values.reduce((worst, value, index) => Math.max(worst, Math.abs(value - golden[index])), 0) / most;
}
