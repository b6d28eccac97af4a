// @ts-check
// The package in Node, on Dawn (npm's webgpu), and in Deno, in the main thread and in a worker
// thread: equal to the command line on the same driver and to diffusers in f64.

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, it } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { inflateSync } from 'node:zlib';

import { relativeError } from './closeness.mjs';
import { fixture } from './fixtures.mjs';
import { runOnDriver, runPlainly, WGVAE } from './native.mjs';
import { readNpy, writeSafetensors } from './safetensors.mjs';
import { DIST, floats, ROOT, writeModel } from './session.mjs';

const MODEL = 'toy_odd';

/** Allowed error as in tests/gpu/decode.rs, relative to the largest value. */
const F32_ERROR = 1e-4;

const PROGRAM = fileURLToPath(new URL('without-browser.mjs', import.meta.url));
const ENTRY = join(DIST, 'package', 'src', 'index.js');

/**
 * Runtimes: the program, its first arguments, its runner, its error for a bitmap, and the text that
 * marks its program in the manual. Deno's WebGPU works on any driver; Dawn needs a newer one than
 * some systems have.
 * @type {Record<string, { program: string, parameters: string[], run: typeof runOnDriver, bitmap:
 * RegExp, mark: string }>}
 */
const RUNTIMES = {
  Node: { program: process.execPath, parameters: [], run: runOnDriver, bitmap: /^input: output: expected blob, image-data or raw where there is no ImageBitmap or VideoFrame, found bitmap$/, mark: "from 'webgpu'" },
  Deno: { program: fileURLToPath(new URL('node_modules/.bin/deno', import.meta.url)), parameters: ['run', '--allow-all', '--no-remote'], run: runPlainly, bitmap: /^88x40$/, mark: 'Deno.' },
};

const folder = join(await mkdtemp(join(tmpdir(), 'wgvae-runtimes-')), MODEL);
await writeModel(folder, await fixture(MODEL));
// The state after `npm i wgvae webgpu`, and the model under the manual's name.
await mkdir(join(folder, 'node_modules'));
await symlink(join(DIST, 'package'), join(folder, 'node_modules', 'wgvae'), 'dir');
await symlink(fileURLToPath(new URL('node_modules/webgpu', import.meta.url)), join(folder, 'node_modules', 'webgpu'), 'dir');
await writeFile(join(folder, 'package.json'), '{ "dependencies": { "wgvae": "*" } }');
await symlink(join(folder, 'both.safetensors'), join(folder, 'vae.safetensors'));
// Deno's own files go there, too.
process.env.DENO_DIR = join(dirname(folder), 'deno');
/**
 * Results of the main thread and of a worker; empty without an adapter.
 * @type {Record<string, any[]>}
 */
const found = {};
/** Prints the errors where WebGPU gives no adapter, and where there is no WebGPU. */
const WITHOUT_GPU = `
const { tune } = await import(${JSON.stringify(pathToFileURL(ENTRY).href)});
Object.defineProperty(globalThis, 'navigator', { value: {} });
const errors = [];
for (const gpu of [{ requestAdapter: async () => null }, undefined]) await tune({ gpu }).catch(({ code, message }) => errors.push([code, message]));
console.log(JSON.stringify(errors));
`;
for (const [name, { program, parameters, run }] of Object.entries(RUNTIMES)) found[name] = JSON.parse((await run(program, [...parameters, PROGRAM, ENTRY, folder])) || '[]');

describe('the package without a browser', () => {
  for (const [name, runtime] of Object.entries(RUNTIMES)) {
    const { run, bitmap: ofBitmap } = runtime;
    const results = found[name];
    // A machine without a GPU may have a driver that is too old for Dawn; the driver of cargo xtask
    // is new enough.
    const isMissing = results.length === 0 && name === 'Node' && !process.env.WGVAE_RUNNER;
    describe(name, { skip: isMissing && 'Dawn finds no adapter: it wants a GPU, or a newer CPU driver' }, () => {
      define(results, run, ofBitmap);
      it('runs the program of the manual', () => runManual(runtime, results[0]));
    });
  }
});

describe('without a browser and without a GPU', () => {
  /** @type {Record<string, RegExp>} */
  const withoutWebGpu = { Node: /package webgpu as `gpu`/, Deno: /--unstable-webgpu/ };
  for (const [name, { program, parameters }] of Object.entries(RUNTIMES)) {
    it(`says in ${name} what to do`, async () => {
      const file = join(dirname(folder), `without-gpu-${name}.mjs`);
      await writeFile(file, WITHOUT_GPU);
      /** @type {[string, string][]} */
      const errors = JSON.parse(await runPlainly(program, [...parameters, file]));
      assert.deepEqual(errors.map(([code]) => code), ['no-adapter', 'no-webgpu']);
      const [[, noAdapter], [, noWebGpu]] = errors;
      assert.match(noAdapter, /driver.*VK_DRIVER_FILES/);
      assert.match(noWebGpu, withoutWebGpu[name]);
      assert.doesNotMatch(`${noAdapter} ${noWebGpu}`, /browser/);
    });
  }
});

after(() => rm(dirname(folder), { recursive: true, force: true }));

/**
 * Runs the program in docs/guide/browser-node.md, with the model and the imports in place.
 * @param {(typeof RUNTIMES)[string]} runtime
 * @param {{ rgba: string, shape: number[] }} result
 */
async function runManual({ program, parameters, run, mark }, { rgba, shape: [, , width] }) {
  const blocks = [...(await readFile(join(ROOT, 'docs', 'guide', 'browser-node.md'), 'utf8')).matchAll(/^```js\n([^`]*)^```$/gm)].map(([, code]) => code);
  const code = blocks.find((block) => block.includes(mark));
  assert.ok(code, `a program with ${mark} in docs/guide/browser-node.md`);
  // Compares pixels in f32, because other precisions differ.
  await writeFile(join(folder, 'program.mjs'), code.replace('createDecoder({', "createDecoder({ precision: 'f32',"));
  await rm(join(folder, 'picture.png'), { force: true });
  const before = process.cwd();
  process.chdir(folder);
  await run(program, [...parameters, 'program.mjs']).finally(() => process.chdir(before));
  const rows = rowsOf(await readFile(join(folder, 'picture.png')), width);
  assert.deepEqual(Buffer.concat(rows), opaque(Buffer.from(rgba, 'base64')));
}

/**
 * @param {any[]} results
 * @param {typeof runOnDriver} run runs the command line, to compare with
 * @param {RegExp} ofBitmap
 */
function define(results, run, ofBitmap) {
  it('finds an adapter', () => assert.equal(results.length, 2));

  it('decodes as the command line and as diffusers, with the peak that was predicted, and frees all', async (t) => {
    const npy = join(folder, 'native.npy');
    await run(WGVAE, ['decode', '--model', folder, '--latents', join(folder, 'latents.safetensors'), '--precision', 'f32', '-o', npy]);
    const [native, { image }] = [readNpy(await readFile(npy)), await fixture(MODEL)];
    for (const { raw, shape, peaks, left, adapter } of results) {
      const [apart, error] = [native, image].map(({ data }) => relativeError(floats(raw), data));
      t.diagnostic(`${adapter}: ${apart.toExponential(2)} from the command line, ${error.toExponential(2)} from diffusers`);
      assert.deepEqual(shape, image.shape.slice(1));
      assert.ok(apart <= F32_ERROR && error <= F32_ERROR, `${apart}, ${error}`);
      assert.equal(peaks[0], peaks[1]);
      assert.equal(left, 0);
    }
  });

  it('gives the same in a worker thread, and leaves the global object as it was', () => {
    const [main, worker] = results;
    assert.deepEqual(worker, main);
    assert.equal(main.hasChanged, false);
  });

  it('tells of loading, compiling, decoding and encoding', () => {
    for (const { phases } of results) assert.deepEqual(phases, ['load', 'compile', 'decode', 'encode']);
  });

  it('gives pixels, PNG files and buffers, and bitmaps or says that there are none', () => {
    const [{ rgba, png, shape: [, height, width], bitmap, buffer }] = results;
    const pixels = Buffer.from(rgba, 'base64');
    assert.equal(pixels.length, 4 * width * height);
    assert.deepEqual(buffer, [height, width, 4, 4 * width * height]);
    assert.deepEqual(rowsOf(Buffer.from(png, 'base64'), width), Array.from({ length: height }, (_, row) => opaque(pixels.subarray(4 * width * row, 4 * width * (row + 1)))));
    assert.match(bitmap, ofBitmap);
  });

  it('encodes pixels as the command line', async () => {
    const [{ rgba, moments, shape: [, height, width] }] = results;
    const file = join(folder, 'picture.safetensors');
    const values = Float32Array.from({ length: 3 * width * height }, (_, at) => {
      const [channel, pixel] = [Math.floor(at / (width * height)), at % (width * height)];
      return 2 * (Buffer.from(rgba, 'base64')[4 * pixel + channel] / 255) - 1;
    });
    await writeFile(file, writeSafetensors([['image', { shape: [1, 3, height, width], data: values }]]));
    const out = join(folder, 'moments.npy');
    await run(WGVAE, ['encode', '--model', join(folder, 'both.safetensors'), '--image', file, '--precision', 'f32', '--moments', '-o', out]);
    const native = readNpy(await readFile(out));
    assert.deepEqual(moments.shape, native.shape);
    assert.ok(relativeError(floats(moments.data), native.data) <= F32_ERROR);
  });
}

/** Returns the bytes of red, green and blue. @param {Buffer} rgba */
function opaque(rgba) {
  return Buffer.from(rgba.filter((_, at) => at % 4 !== 3));
}

/**
 * Returns the rows of a PNG file of RGB with filters None, Sub or Up.
 * @param {Buffer} png
 * @param {number} width
 */
function rowsOf(png, width) {
  const parts = [];
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at)) {
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  }
  const all = inflateSync(Buffer.concat(parts));
  const stride = 3 * width;
  /** @type {Buffer[]} */
  const rows = [];
  for (let at = 0; at < all.length; at += 1 + stride) {
    const row = Buffer.from(all.subarray(at + 1, at + 1 + stride));
    const above = rows.at(-1);
    if (all[at] === 1) for (let index = 3; index < stride; index += 1) row[index] += row[index - 3];
    if (all[at] === 2 && above) for (let index = 0; index < stride; index += 1) row[index] += above[index];
    rows.push(row);
  }
  return rows;
}
