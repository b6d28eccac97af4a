// @ts-check
// Pictures with opacity, and latents with layers: a model of Qwen-Image-Layered's kind. Its red,
// green and blue are those of the golden clip's first frame, because they have the same weights.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { inflateSync } from 'node:zlib';

import { relativeError } from './closeness.mjs';
import { clipModelFile } from './clip-models.mjs';
import { clipFixture, frameOf, latentsFile } from './fixtures.mjs';
import { floats, inBrowsers } from './session.mjs';
import { keepDownloads, openAddress, reach, save, text } from './visitor.mjs';

const GOLDEN = 'clip_wan';
const CLIENT = '/web/src/worker.js';

/** Allowed error, as in tests/gpu, relative to the largest value. */
const F32_ERROR = 1e-4;

inBrowsers({ clips: [GOLDEN] }, (session) => {
  /** Serves the model and its latents with layers, once for each test. */
  async function files() {
    const { config, latents, frames } = await clipFixture(GOLDEN);
    const layered = JSON.stringify({ ...JSON.parse(config), _class_name: 'AutoencoderKLQwenImage', input_channels: 4 });
    return {
      model: session.server.route('/layered/model.safetensors', { bytes: clipModelFile(layered, { encoder: true }) }),
      config: session.server.route('/layered/config.json', { bytes: layered }),
      latents: session.server.route('/layered/latents.safetensors', { bytes: latentsFile(latents) }),
      golden: frameOf(frames, 0).data,
    };
  }

  for (const device of /** @type {const} */ (['webgpu', 'cpu'])) {
    it(`decodes on ${device} to four channels, in the memory that was predicted`, async () => {
      const { golden, ...urls } = await files();
      const found = await session.run(async (urls, device) => {
        const { latents, ...model } = urls;
        const decoder = await lab.wgvae.createDecoder({ ...model, device, precision: 'f32' });
        const raw = await decoder.decode(latents, { output: 'raw' });
        const [, height, width] = raw.shape;
        const image = await decoder.decode(latents, { output: 'image-data' });
        const blob = await decoder.decode(latents, { output: 'blob' });
        const peaks = [];
        for (const output of /** @type {const} */ (['bitmap', 'image-data', 'raw'])) {
          await decoder.decode(latents, { output });
          const { predicted_peak_bytes: planned } = decoder.plan({ width, height, output });
          peaks.push(new Set([planned, decoder.report?.predicted_peak_bytes, decoder.report?.measured_peak_bytes]).size);
        }
        const canvas = new OffscreenCanvas(1, 1);
        await decoder.decode(latents, { canvas });
        const drawn = [canvas.height, canvas.width];
        const { predicted_peak_bytes: here } = decoder.plan({ width, height });
        const limits = decoder.device && decoder.info.adapter.limits;
        const { predicted_peak_bytes: anywhere } = await lab.wgvae.planFor({ config: model.config, device, width, height, precision: 'f32', limits });
        const channels = [decoder.info.in_channels, decoder.info.out_channels];
        await decoder.destroy();
        return { raw: lab.base64(raw.data), shape: raw.shape, image: lab.base64(image.data), png: lab.base64(new Uint8Array(await blob.arrayBuffer())), peaks, drawn, isPlanned: here === anywhere, channels, left: decoder.ledger().current };
      }, urls, device);
      const { raw, image, png, ...facts } = found;
      assert.deepEqual(facts, { shape: [4, 24, 40], peaks: [1, 1, 1], drawn: [24, 40], isPlanned: true, channels: [4, 4], left: 0 });
      const values = floats(raw);
      assert.ok(relativeError(values.subarray(0, golden.length), golden) <= F32_ERROR);
      // Each channel is rounded by itself: colours are not multiplied by alpha.
      const levels = Buffer.from(image, 'base64');
      const area = 24 * 40;
      const wrong = levels.filter((level, at) => Math.abs(level - 255 * Math.min(1, Math.max(0, values[(at % 4) * area + (at >> 2)] / 2 + 0.5))) > 0.501);
      assert.equal(wrong.length, 0);
      assert.ok(levels.some((level, at) => at % 4 === 3 && level < 200), 'the test has no transparent pixel');
      assert.deepEqual(pixelsOfPng(Buffer.from(png, 'base64')), { width: 40, height: 24, levels: [...levels] });
    });
  }

  it('shows the same on canvases, as bitmaps and from a worker, over what is behind', async () => {
    const { golden, ...urls } = await files();
    const found = await session.run(async (urls, client) => {
      const { latents, ...model } = urls;
      const decoder = await lab.wgvae.createDecoder({ ...model, device: await lab.device(), precision: 'f32' });
      const remote = await /** @type {typeof import('../../web/src/worker.js')} */ (await import(client)).createDecoder({ ...model, precision: 'f32', device: 'cpu' });
      const image = await decoder.decode(latents, { output: 'image-data' });
      const [shown, again, sent, presented] = Array.from({ length: 4 }, () => document.createElement('canvas'));
      shown.id = 'shown';
      Object.assign(document.body.style, { margin: '0', background: 'rgb(20, 200, 90)' });
      document.body.prepend(shown);
      await decoder.decode(latents, { canvas: shown });
      await decoder.present(again);
      const bitmap = await decoder.decode(latents);
      await remote.decode(latents, { canvas: sent });
      await remote.present(presented);
      const ink = [20, 200, 90];
      /** @param {CanvasImageSource} source */
      const over = (source) => {
        const canvas = new OffscreenCanvas(image.width, image.height);
        const context = /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext('2d'));
        context.fillStyle = `rgb(${ink})`;
        context.fillRect(0, 0, image.width, image.height);
        context.drawImage(source, 0, 0);
        return context.getImageData(0, 0, image.width, image.height);
      };
      const wanted = new ImageData(image.width, image.height);
      wanted.data.forEach((_, at) => {
        const alpha = image.data[at | 3] / 255;
        wanted.data[at] = at % 4 === 3 ? 255 : alpha * image.data[at] + (1 - alpha) * ink[at % 4];
      });
      const apart = [shown, again, bitmap, sent, presented].map((source) => lab.levelsApart(over(source), wanted));
      const kept = new OffscreenCanvas(4, 4);
      kept.getContext('webgpu');
      const { error } = await lab.outcome(decoder.decode(latents, { canvas: kept }));
      await Promise.all([decoder.destroy(), remote.destroy()]);
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      return { apart, code: error?.code, wanted: lab.base64(wanted.data) };
    }, urls, CLIENT);
    // Colours times alpha are rounded to 8 bits, and once more when they are drawn.
    assert.ok(found.apart.every((levels) => levels <= 2), `${found.apart}`);
    assert.equal(found.code, 'canvas');
    const shot = await (await session.page.$('#shown'))?.screenshot({ encoding: 'base64' });
    const apart = await session.run(async (shot, wanted) => {
      const data = Uint8ClampedArray.from(atob(wanted), (letter) => letter.charCodeAt(0));
      return lab.levelsApart(await lab.filePixels(`data:image/png;base64,${shot}`), new ImageData(data, 40, 24));
    }, shot ?? '', found.wanted);
    assert.ok(apart <= 2, `the screen is ${apart} levels apart`);
  });

  it('leaves textures and buffers as they are', async () => {
    const { golden, ...urls } = await files();
    const found = await session.run(async (urls) => {
      const { latents, ...model } = urls;
      const device = /** @type {GPUDevice} */ (await lab.device());
      const decoder = await lab.wgvae.createDecoder({ ...model, device, precision: 'f32' });
      const image = await decoder.decode(latents, { output: 'image-data' });
      const { buffer, shape } = await decoder.decode(latents, { output: 'buffer' });
      const texture = await decoder.decode(latents, { output: 'texture' });
      const copies = [buffer.size, 256 * texture.height].map((size) => device.createBuffer({ size, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ }));
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(buffer, 0, copies[0], 0, buffer.size);
      encoder.copyTextureToBuffer({ texture }, { buffer: copies[1], bytesPerRow: 256 }, [texture.width, texture.height]);
      device.queue.submit([encoder.finish()]);
      await Promise.all(copies.map((copy) => copy.mapAsync(GPUMapMode.READ)));
      const [bytes, rows] = copies.map((copy) => new Uint8Array(copy.getMappedRange()).slice());
      const order = texture.format === 'bgra8unorm' ? [2, 1, 0, 3] : [0, 1, 2, 3];
      const ofTexture = image.data.map((_, at) => rows[256 * Math.floor(at / 4 / image.width) + 4 * ((at >> 2) % image.width) + order[at % 4]]);
      for (const each of [...copies, buffer, texture]) each.destroy();
      await decoder.destroy();
      return { shape, isSame: [lab.isSame(bytes, image.data), lab.isSame(ofTexture, image.data)] };
    }, urls);
    assert.deepEqual(found, { shape: [24, 40, 4], isSame: [true, true] });
  });

  it('decodes the layers of latents as pictures', async () => {
    const { golden, ...urls } = await files();
    const { latents } = await clipFixture(GOLDEN);
    const layers = [0, 4].map((index) => [...frameOf(latents, index).data]);
    const found = await session.run(async (urls, folder, layers) => {
      const { latents, ...model } = urls;
      const decoder = await lab.wgvae.createDecoder({ ...model, device: await lab.device(), precision: 'f32' });
      const shape = await decoder.shapeOf(latents);
      // [1, 16, 2, 3, 5]: a channel has its two layers side by side.
      const data = Float32Array.from({ length: 2 * layers[0].length }, (_, at) => layers[Math.floor(at / 15) % 2][15 * Math.floor(at / 30) + (at % 15)]);
      const both = { data, shape: [1, 16, 2, 3, 5] };
      const isSame = [];
      for (const [index, ofFile] of [0, 4].entries()) {
        const one = await decoder.decode({ data: Float32Array.from(layers[index]), shape: [1, 16, 3, 5] }, { output: 'raw' });
        for (const [input, picture] of /** @type {[any, number][]} */ ([[both, index], [latents, ofFile]])) {
          isSame.push(lab.isSame((await decoder.decode(input, { output: 'raw', index: picture })).data, one.data));
        }
      }
      const beyond = await lab.outcome(decoder.decode(both, { output: 'raw', index: 2 }));
      const video = await lab.open(folder, { device: await lab.device() });
      const frames = await lab.outcome(video.decode(both));
      const six = await lab.outcome(decoder.decode({ data, shape: [1, 1, 16, 2, 3, 5] }));
      await Promise.all([decoder.destroy(), video.destroy()]);
      return { shape, isSame, errors: [beyond, frames, six].map(({ error }) => `${error?.code}: ${error?.message}`) };
    }, urls, session.model(`${GOLDEN}/`), layers);
    const { errors, ...facts } = found;
    assert.deepEqual(facts, { shape: [5, 16, 3, 5], isSame: [true, true, true, true] });
    assert.match(errors[0], /^input: .*index/);
    assert.match(errors[1], /^input: .*2 frames/);
    assert.match(errors[2], /^input: .*\[n, c, layers, h, w\]/);
  });

  it('encodes every kind of picture with its opacity, and pictures without it as opaque', async () => {
    const { golden, ...urls } = await files();
    const found = await session.run(async (urls) => {
      const { latents, ...model } = urls;
      /** @type {string[]} */
      const notices = [];
      const vae = await lab.wgvae.createVae({ ...model, device: await lab.device(), precision: 'f32', onNotice: ({ code }) => notices.push(code) });
      const { pngOf } = /** @type {typeof import('../../web/src/png.js')} */ (await import(/** @type {any} */ ('/web/src/png.js')));
      const image = lab.noise(41, 26);
      // Every alpha, from 0 on: colours of transparent pixels count, too.
      for (let at = 3; at < image.data.length; at += 4) image.data[at] = at >> 2;
      const opaque = lab.noise(41, 26);
      const encode = async (/** @type {any} */ input) => (await vae.encode(input, { output: 'moments' })).data;
      // The middle, with sides that are multiples of 8.
      const [wanted, wantedOpaque] = [await encode(lab.valuesOf(image, 0, 1, 40, 24, 4)), await encode(lab.valuesOf(opaque, 0, 1, 40, 24, 4))];
      const png = await pngOf(image.data, 41, 26, 4);
      const straight = await createImageBitmap(image, { premultiplyAlpha: 'none' });
      const element = Object.assign(new Image(), { src: URL.createObjectURL(png) });
      await element.decode();
      const kinds = { ImageData: image, object: { data: image.data, width: 41, height: 26 }, png, bytes: new Uint8Array(await png.arrayBuffer()), img: element, ImageBitmap: straight };
      const plain = { ImageData: opaque, canvas: lab.canvasOf(opaque), png: await pngOf(opaque.data, 41, 26, 3), floats: lab.valuesOf(opaque, 0, 1, 40, 24) };
      const wrong = [];
      for (const [name, input] of Object.entries(kinds)) if (!lab.isSame(await encode(input), wanted)) wrong.push(name);
      for (const [name, input] of Object.entries(plain)) if (!lab.isSame(await encode(input), wantedOpaque)) wrong.push(`opaque ${name}`);
      // A canvas for 2D drawing has rounded its colours by itself.
      const drawn = lab.canvasOf(image);
      const rounded = /** @type {OffscreenCanvasRenderingContext2D} */ (drawn.getContext('2d')).getImageData(0, 0, 41, 26);
      const isRounded = lab.isSame(await encode(rounded), await encode(drawn));
      const two = await lab.outcome(encode({ data: new Float32Array(2 * 64), shape: [2, 8, 8] }));
      await vae.destroy();
      return { wrong, isOther: !lab.isSame(wanted, wantedOpaque), isRounded, notices: [...new Set(notices)], error: `${two.error?.code}: ${two.error?.message}` };
    }, urls);
    const { error, ...facts } = found;
    assert.deepEqual(facts, { wrong: [], isOther: true, isRounded: true, notices: ['cropped'] });
    assert.match(error, /^input: image: expected 4 channels, .*found 2 channels/);
  });

  it('shows layers and pictures with opacity on the page, and saves them with it', async () => {
    const { model, config, latents } = await files();
    const page = await session.open(`/?${new URLSearchParams({ model, config, latents, index: '2' })}`);
    assert.equal(await reach(page, 'ready', 'failed'), 'ready', await text(page, 'problem'));
    assert.deepEqual([await text(page, 'input-facts'), await text(page, 'index-count')], ['5 × 16 × 3 × 5', 'of 5']);
    await page.click('#decode');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    const seen = await page.$eval('#picture', (canvas) => getComputedStyle(canvas).backgroundImage);
    assert.match(seen, /^repeating-conic-gradient/);
    await keepDownloads(page);
    /** Returns the smallest alpha of a file or a canvas. @param {string} source data URL, or id */
    const leastAlpha = (source) => page.evaluate(async (source) => {
      const image = new Image();
      if (source.startsWith('data:')) await Object.assign(image, { src: source }).decode();
      const drawn = image.width > 0 ? image : /** @type {HTMLCanvasElement} */ (document.getElementById(source));
      const context = /** @type {OffscreenCanvasRenderingContext2D} */ (new OffscreenCanvas(drawn.width, drawn.height).getContext('2d'));
      context.drawImage(drawn, 0, 0);
      return context.getImageData(0, 0, drawn.width, drawn.height).data.reduce((least, level, at) => (at % 4 === 3 ? Math.min(least, level) : least), 255);
    }, source);
    const saved = await save(page);
    assert.ok((await leastAlpha(saved.data)) < 200, 'the saved picture is opaque');
    // The picture is an input as well.
    const png = session.server.route('/layered/picture.png', { bytes: Buffer.from(saved.data.split(',')[1], 'base64'), type: 'image/png' });
    await openAddress(page, 'input', png);
    await page.waitForFunction(() => document.querySelector('#input-name')?.textContent === 'picture.png');
    assert.equal(await reach(page, 'ready', 'failed'), 'ready', await text(page, 'problem'));
    await page.click('#decode');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    assert.ok((await leastAlpha('original')) < 200 && (await leastAlpha('picture')) < 200, 'a shown picture is opaque');
    assert.match(await text(page, 'psnr'), /dB/);
    assert.equal(await text(page, 'notices'), '');
    assert.deepEqual(session.complaints(), []);
  });
});

/**
 * Reads a PNG file as png.js writes it: with alpha, and rows that differ from the row above.
 * @param {Buffer} png
 */
function pixelsOfPng(png) {
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  // 8 bits, with alpha.
  assert.deepEqual([...png.subarray(24, 26)], [8, 6]);
  assert.equal(png.toString('latin1', 37, 41), 'sRGB');
  const rows = inflateSync(png.subarray(54, 54 + png.readUInt32BE(46)));
  /** @type {number[]} */
  const levels = [];
  for (let row = 0; row < height; row += 1) {
    for (let at = 0; at < 4 * width; at += 1) levels.push((rows[row * (4 * width + 1) + 1 + at] + (levels[levels.length - 4 * width] ?? 0)) & 255);
  }
  return { width, height, levels };
}
