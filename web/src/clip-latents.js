// @ts-check
// The latents of a clip, frame by frame: from a file that is read as far as it is needed, or from a caller's array. Shapes are [1, c, t, h, w] or [c, t, h, w].

import { mismatch } from './errors.js';
import { kindOf, openSource } from './sources.js';
import { toFloats } from './tensors.js';

/** @typedef {import('./wasm.js').Wasm} Wasm */

/**
 * @typedef {object} ClipFrames
 * @property {number} frames
 * @property {number} width of a frame, latents
 * @property {number} height
 * @property {boolean} unscaled
 * @property {(index: number) => Promise<import('../pkg/wgvae.js').Latents>} frame
 * @property {() => void} free
 */

/**
 * @param {Wasm} wasm
 * @param {import('./index.js').ClipInput} input
 * @param {import('./sources.js').Access} access
 * @param {number} channels of the model
 * @returns {Promise<ClipFrames>}
 */
export async function openClipLatents(wasm, input, access, channels) {
  if (typeof input === 'object' && input !== null && 'data' in input) return ofArray(wasm, input, channels);
  const source = await openSource(input, access, { what: 'latents' });
  try {
    const latents = await wasm.ClipLatents.open(source, channels);
    const [, frames, height, width] = latents.shape();
    const free = () => {
      latents.free();
      source.release?.();
    };
    return { frames, width, height, unscaled: latents.areUnscaled(), frame: (index) => latents.frame(index), free };
  } catch (error) {
    source.release?.();
    throw error;
  }
}

/**
 * @param {Wasm} wasm
 * @param {{ data: unknown, shape: readonly number[], unscaled?: boolean }} input
 * @param {number} channels
 * @returns {ClipFrames}
 */
function ofArray(wasm, { data, shape, unscaled = false }, channels) {
  const [c, frames, height, width] = axesOf(shape, channels);
  const floats = toFloats(data);
  if (!floats) throw mismatch('input', 'latents', 'a Float32Array, a Float16Array or a Uint16Array of half floats', kindOf(data));
  const plane = height * width;
  if (floats.length !== c * frames * plane) throw mismatch('input', 'latents', `${c * frames * plane} values for the shape [${shape}]`, `${floats.length}`);
  const frame = async (/** @type {number} */ index) => {
    const own = new Float32Array(c * plane);
    for (let channel = 0; channel < c; channel += 1) {
      const start = (channel * frames + index) * plane;
      own.set(floats.subarray(start, start + plane), channel * plane);
    }
    const latents = wasm.Latents.fromArray(own, Uint32Array.of(1, c, height, width));
    return unscaled ? latents.asUnscaled() : latents;
  };
  return { frames, width, height, unscaled, frame, free: () => {} };
}

/**
 * @param {readonly number[]} shape
 * @param {number} channels
 */
function axesOf(shape, channels) {
  const axes = Array.isArray(shape) && shape.length === 5 && shape[0] === 1 ? shape.slice(1) : shape;
  const isClip = Array.isArray(axes) && axes.length === 4 && axes.every((axis) => Number.isInteger(axis) && axis > 0) && axes[0] === channels;
  if (!isClip) {
    const found = Array.isArray(shape) ? `[${shape.map((axis) => (typeof axis === 'number' ? axis : kindOf(axis)))}]` : kindOf(shape);
    throw mismatch('input', 'shape of the latents', `a clip [1, ${channels}, t, h, w] or [${channels}, t, h, w]`, found);
  }
  return axes;
}
