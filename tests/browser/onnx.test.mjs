// @ts-check
// examples/onnx: latents of onnxruntime-web are decoded on its device, from the buffer that holds
// them.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, it } from 'node:test';

import { DIST, inBrowsers } from './session.mjs';

/** The demo's latents, from which the example's sampler starts. */
const LATENTS = '/assets/demo/latents.safetensors';

/** Shape [1, c, h, w] of the part of them that the example gets here, which decodes faster. */
const SHAPE = [1, 16, 16, 24];

const EXAMPLE = '/examples/onnx/index.html?steps=1';

/** Bytes of these latents in f32, which are read once. */
const LATENT_BYTES = 4 * SHAPE.reduce((product, side) => product * side);

const ENDED = () => /^(Done|Error)/.test(document.querySelector('#status')?.textContent ?? '');

inBrowsers({ kinds: ['chromium'] }, (session) => {
  before(async () => {
    session.server.route(LATENTS, { bytes: partOfLatents(await readFile(join(DIST, LATENTS))) });
  });

  it('shows on the canvas what the same latents give as an array, and reads no more than these back', async (t) => {
    const page = await session.open('/tests/blank.html');
    await page.evaluateOnNewDocument(countReadbacks);
    await page.goto(session.server.url(EXAMPLE));
    await page.waitForFunction(ENDED);
    assert.match(await statusOf(page), /^Done: 1 steps/);

    const readback = await page.evaluate(() => /** @type {any} */ (globalThis).readback);
    const levels = await session.run(compareWithArray, await photograph(page, '#canvas'));
    t.diagnostic(`${levels} levels apart, ${readback} bytes read back`);
    assert.ok(levels <= 1, `${levels} levels apart`);
    assert.ok(readback < LATENT_BYTES + 4096, `${readback} bytes read back: more than latents and reports take, and a picture has ${64 * 4 * SHAPE[2] * SHAPE[3]}`);
  });

  it('decodes every step, where each is the input of the next', async (t) => {
    const page = await session.open('/tests/onnx.html');
    await page.waitForFunction(() => 'lab' in globalThis);
    const steps = await session.run(sampleAndCompare);
    t.diagnostic(JSON.stringify(steps));
    assert.equal(steps.length, 3);
    for (const { location, levels, moved } of steps) {
      assert.equal(location, 'gpu-buffer');
      assert.ok(levels <= 1, `${levels} levels apart`);
      assert.ok(moved > 1, `the picture is as before the step: ${moved} levels apart`);
    }
  });

  it('shows what went wrong', async () => {
    session.server.route(LATENTS, { status: 404 });
    const page = await session.open(EXAMPLE);
    await page.waitForFunction(ENDED);
    assert.match(await statusOf(page), /^Error: .*latents\.safetensors: HTTP 404$/);
    session.expectComplaint(/latents\.safetensors: HTTP 404/);
  });
});

/**
 * Returns a file with the first rows and columns of latents in f16.
 * @param {Buffer} file
 */
function partOfLatents(file) {
  const start = 8 + Number(file.readBigUInt64LE());
  const [, , height, width] = JSON.parse(file.toString('utf8', 8, start)).latents.shape;
  const [, channels, rows, columns] = SHAPE;
  const kept = Array.from({ length: channels * rows }, (_, row) => {
    const first = start + 2 * width * (Math.floor(row / rows) * height + (row % rows));
    return file.subarray(first, first + 2 * columns);
  });
  const header = Buffer.from(JSON.stringify({ latents: { dtype: 'F16', shape: SHAPE, data_offsets: [0, LATENT_BYTES / 2] } }));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return Buffer.concat([length, header, ...kept]);
}

/** @param {import('puppeteer-core').Page} page */
const statusOf = (page) => page.$eval('#status', ({ textContent }) => textContent ?? '');

/** Runs before the page's own scripts: adds up the bytes of buffers that are mapped for reading. */
function countReadbacks() {
  const counted = /** @type {any} */ (globalThis);
  counted.readback = 0;
  const mapAsync = GPUBuffer.prototype.mapAsync;
  GPUBuffer.prototype.mapAsync = function (/** @type {number} */ mode, offset = 0, size = this.size - offset) {
    if (mode === GPUMapMode.READ) counted.readback += size;
    return mapAsync.call(this, mode, offset, size);
  };
}

/**
 * Returns the canvas on the screen as the data URL of a picture. Its content cannot be read once a
 * frame has passed.
 * @param {import('puppeteer-core').Page} page
 * @param {string} selector
 */
async function photograph(page, selector) {
  const canvas = await page.$(selector);
  // Shows one pixel of the picture per pixel of the screen, whatever the layout.
  await canvas?.evaluate((element) => element.setAttribute('style', 'position: fixed; inset: 0 auto auto 0; max-width: none; width: auto'));
  return `data:image/png;base64,${await canvas?.screenshot({ encoding: 'base64' })}`;
}

/**
 * Runs in the example's page, after its one step: its strength is 1, so its latents are the demo's.
 * @param {string} shown
 */
async function compareWithArray(shown) {
  await import('/tests/lab.js');
  const { readLatents } = await import('/examples/onnx/latents.js');
  // On the page's device, whose shaders are already compiled.
  const { env } = await import('onnxruntime-web/webgpu');
  const decoder = await lab.open('/assets/demo/model/', { device: await env.webgpu.device });
  const latents = await readLatents(new URL('/assets/demo/latents.safetensors', location.href));
  const wanted = await decoder.decode(latents, { output: 'image-data' });
  await decoder.destroy();
  return lab.levelsApart(await lab.filePixels(shown), wanted);
}

/**
 * Runs three steps between small noises: each is decoded from the GPU, then read back and decoded
 * as an array.
 */
async function sampleAndCompare() {
  const { openSampler } = await import('/examples/onnx/sampler.js');
  const { gaussianNoise } = await import('/examples/onnx/latents.js');
  const shape = [1, 16, 6, 10];
  const sampler = await openSampler(new URL('/examples/onnx/step.onnx', location.href));
  const decoder = await lab.open('/assets/demo/model/', { device: sampler.device });
  const canvas = document.createElement('canvas');
  const steps = [];
  let before = new ImageData(8 * shape[3], 8 * shape[2]);
  for await (const latents of sampler.sample(gaussianNoise(shape, 1), gaussianNoise(shape, 2), 3)) {
    await decoder.decode(latents, { canvas });
    const found = lab.pixels(canvas);
    const { location } = latents;
    const data = /** @type {Float32Array} */ (await latents.getData());
    const wanted = await decoder.decode({ data, shape }, { output: 'image-data' });
    steps.push({ location, levels: lab.levelsApart(found, wanted), moved: lab.levelsApart(found, before) });
    before = found;
  }
  await decoder.destroy();
  await sampler.release();
  return steps;
}
