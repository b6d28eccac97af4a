// @ts-check
// Tensors of onnxruntime-web, by its own class (onnxruntime-common), and of transformers.js, by a
// stand-in: their values are read from every location. No browser is needed.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';

import { DIST, ROOT } from './session.mjs';

const SHAPE = [1, 4, 2, 3];
const FLOATS = Float32Array.from({ length: 24 }, (_, index) => index / 4 - 3);
/** These values as halves: multiples of a quarter below 4, with exponents from 13 to 16. */
const HALVES = Uint16Array.from(FLOATS, half);

/** Returns the bits of one of these values as a half float. @param {number} value */
function half(value) {
  if (value === 0) return 0;
  const exponent = Math.floor(Math.log2(Math.abs(value)));
  return (value < 0 ? 0x8000 : 0) | ((exponent + 15) << 10) | ((Math.abs(value) / 2 ** exponent - 1) * 1024);
}

/** @type {any} */
let Tensor;
/** @type {typeof import('../../web/src/latents.js')} */
let latents;
/** @type {typeof import('../../web/src/onnx.js')} */
let onnx;
/** @type {import('../../web/src/wasm.js').Wasm} */
let wasm;
/**
 * The module's last input.
 * @type {{ data?: Float32Array, buffer?: unknown, shape: number[]
 * }}
 */
let given;

/**
 * Wraps a tensor as transformers.js does: getters for the properties of `ort_tensor`, through a
 * Proxy, and an iterator (huggingface.co/docs/transformers.js/api/utils/tensor).
 * @param {any} inside
 */
function wrapped(inside) {
  class Wrapper {
    ort_tensor = inside;
    get dims() { return this.ort_tensor.dims; }
    get type() { return this.ort_tensor.type; }
    get data() { return this.ort_tensor.data; }
    get location() { return this.ort_tensor.location; }
    *[Symbol.iterator]() { yield* this.data; }
  }
  return new Proxy(new Wrapper(), {});
}

/** @param {unknown} tensor */
async function open(tensor) {
  const access = /** @type {any} */ ({ signal: new AbortController().signal });
  const opened = await latents.openLatents(wasm, /** @type {any} */ (tensor), access);
  opened.free();
  return given;
}

before(async () => {
  ({ Tensor } = await import(`${new URL('examples/onnx/node_modules/onnxruntime-common/dist/esm/index.js', `file://${ROOT}`)}`));
  const source = new URL('web/src/', `file://${DIST}/`);
  [latents, onnx] = await Promise.all(['latents.js', 'onnx.js'].map((name) => import(`${new URL(name, source)}`)));
  const { startWasm } = await import(`${new URL('wasm.js', source)}`);
  const started = await startWasm(new Uint8Array(await readFile(join(DIST, 'web/pkg/wgvae_bg.wasm'))));
  const { fromArray } = started.Latents;
  const Latents = {
    fromArray: (/** @type {Float32Array} */ data, /** @type {Uint32Array} */ shape) => ((given = { data, shape: [...shape] }), fromArray(data, shape)),
    // Without a GPU there is no buffer either.
    onGpu: (/** @type {unknown} */ buffer, /** @type {number} */ _, /** @type {Uint32Array} */ shape) => ((given = { buffer, shape: [...shape] }), { free() {} }),
  };
  wasm = /** @type {any} */ ({ ...started, Latents });
});

describe('tensors of onnxruntime-web and transformers.js', () => {
  /**
   * Makes a tensor for each location, in f32 or f16. Values outside memory have to be fetched.
   * @type {Record<string, (type: 'float32' | 'float16', data: any) => any>}
   */
  const PLACES = {
    cpu: (type, data) => new Tensor(type, data, SHAPE),
    'gpu-buffer': (dataType, data) => Tensor.fromGpuBuffer({ size: data.byteLength }, { dataType, dims: SHAPE, download: async () => data }),
    'ml-tensor': (dataType, data) => Tensor.fromMLTensor({}, { dataType, dims: SHAPE, download: async () => data }),
  };

  for (const [location, make] of Object.entries(PLACES)) {
    for (const wrap of [(/** @type {any} */ tensor) => tensor, wrapped]) {
      it(`are read from ${location}, ${wrap === wrapped ? 'of transformers.js' : 'of onnxruntime-web'}`, async () => {
        for (const [type, data] of /** @type {const} */ ([['float32', FLOATS], ['float16', HALVES]])) {
          const tensor = wrap(make(type, data));
          assert.equal(tensor.location, location);
          const found = await open(tensor);
          assert.deepEqual(found.shape, SHAPE);
          if (location === 'gpu-buffer' && type === 'float32') {
            assert.equal(found.buffer, (tensor.ort_tensor ?? tensor).gpuBuffer, 'the device reads it from there');
            assert.equal(tensor.location, location);
          } else {
            assert.deepEqual(found.data, FLOATS);
          }
          // For a picture, or another thread.
          const values = await onnx.valuesOf(wrap(make(type, data)), 'image');
          assert.deepEqual([values.data, values.shape], [data, SHAPE]);
        }
      });
    }
  }

  it('are read as a Float16Array, where there is one', async () => {
    const before = Object.getOwnPropertyDescriptor(globalThis, 'Float16Array');
    // The used part of the class.
    class Halves extends Float32Array {}
    Object.defineProperty(globalThis, 'Float16Array', { value: Halves, configurable: true, writable: true });
    try {
      const found = await open({ dims: SHAPE, type: 'float16', location: 'cpu', data: Halves.from(FLOATS) });
      assert.deepEqual([...(found.data ?? [])], [...FLOATS]);
    } finally {
      if (before) Object.defineProperty(globalThis, 'Float16Array', before);
      else Reflect.deleteProperty(globalThis, 'Float16Array');
    }
  });

  it('are refused by name where they cannot be read', async () => {
    const message = (/** @type {unknown} */ tensor) => open(tensor).then(() => 'read', ({ code, message }) => `${code}: ${message}`);
    const whole = new Tensor('int32', Int32Array.of(1, 2), [2]);
    const closed = Tensor.fromMLTensor({}, { dataType: 'float32', dims: SHAPE });
    const torn = Tensor.fromMLTensor({}, { dataType: 'float32', dims: SHAPE, download: async () => FLOATS.subarray(1) });
    assert.deepEqual(await Promise.all([message(whole), message(closed), message({ dims: SHAPE, type: 'float32', location: 'texture' })]), [
      'input: latents: expected a tensor of float32 or float16, found one of int32',
      'input: latents: expected a tensor that gives its data, found one in "ml-tensor" that does not: The current tensor is not created with a specified data downloader.',
      'input: latents: expected a tensor that gives its data, found one in "texture" that does not: it has no getData()',
    ]);
    assert.equal(await message(torn), `input: latents: expected 24 values for the shape [${SHAPE}], found 23`);
  });
});
