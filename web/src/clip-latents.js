// @ts-check
// Latents of a clip, frame by frame: from a file that is read as far as needed, from a caller's
// array, or from parts that come one after the other. Shapes are [1, c, t, h, w] or [c, t, h, w].

import { kindOf, mismatch } from './errors.js';
import { isIterable, Values } from './iterate.js';
import { checkStated, stated } from './latents.js';
import { isTensor, valuesOf } from './onnx.js';
import { openSource } from './sources.js';
import { toFloats } from './tensors.js';

/** @typedef {import('./wasm.js').Wasm} Wasm */
/** @typedef {import('../pkg/wgvae.js').Latents} Latents */

/**
 * @typedef {object} ClipFrames
 * @property {number} width of a frame, latents
 * @property {number} height
 * @property {boolean} [unscaled] if the latents tell it
 * @property {number} [count] of frames, if it is known
 * @property {() => Promise<Latents | undefined>} next returns the next frame; undefined after the
 * last
 * @property {() => Promise<void> | void} free
 */

/**
 * Returns the parts of a clip that come one after the other; undefined if the clip is one value.
 * @param {any} input
 */
export function partsOf(input) {
  return isIterable(input) && !isTensor(input) && !('data' in input) ? new Values(input, 'latents') : undefined;
}

/**
 * @param {import('./loaded.js').Loaded} loaded
 * @param {import('./index.js').ClipInput} input
 * @param {Values | undefined} parts of the input, as `partsOf` returns them
 * @param {import('./sources.js').Access} access
 * @returns {Promise<ClipFrames>}
 */
export async function openClipLatents(loaded, input, parts, access) {
  const { wasm, info } = loaded;
  const channels = info.latent_channels;
  if (parts) return { ...await ofParts(wasm, parts, access.signal, channels), count: framesOf(input) };
  const array = await arrayOf(input);
  if (array) return ofArray(wasm, array, channels);
  const source = await openSource(/** @type {import('./index.js').FileInput} */ (input), access, { what: 'latents' });
  try {
    const latents = await wasm.ClipLatents.open(source, channels);
    // The model may have ended meanwhile, and its planner with it.
    if (access.signal.aborted) latents.free();
    access.signal.throwIfAborted();
    const [, frames, height, width] = latents.shape();
    /** Settles when nothing is being read. @type {Promise<unknown>} */
    let idle = Promise.resolve();
    const read = (/** @type {number} */ index) => {
      const frame = latents.frame(index);
      idle = frame.catch(() => {});
      return frame;
    };
    const free = async () => {
      await idle;
      latents.free();
      source.release?.();
    };
    return { width, height, unscaled: latents.areUnscaled(loaded.engine.planner), count: frames, next: each(frames, read), free };
  } catch (error) {
    source.release?.();
    throw error;
  }
}

/**
 * Returns latents that are in memory, or are brought there whole.
 * @param {any} input
 * @returns {Promise<import('./index.js').ClipLatents | undefined>}
 */
async function arrayOf(input) {
  if (isTensor(input)) return valuesOf(input, 'latents');
  return typeof input === 'object' && input !== null && 'data' in input ? input : undefined;
}

/**
 * @param {number} frames
 * @param {(index: number) => Promise<Latents>} read
 */
function each(frames, read) {
  let index = 0;
  return async () => (index < frames ? read(index++) : undefined);
}

/**
 * @param {Wasm} wasm
 * @param {{ data: unknown, shape: readonly number[], unscaled?: boolean }} input
 * @param {number} channels
 * @returns {ClipFrames}
 */
function ofArray(wasm, { data, shape, unscaled }, channels) {
  checkStated({ unscaled });
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
    return stated(wasm.Latents.fromArray(own, Uint32Array.of(1, c, height, width)), { unscaled });
  };
  return { width, height, unscaled, count: frames, next: each(frames, frame), free: () => {} };
}

/**
 * Reads parts, each a clip in an array. All must have one size and one scale.
 * @param {Wasm} wasm
 * @param {Values} parts
 * @param {AbortSignal} signal
 * @param {number} channels
 * @returns {Promise<ClipFrames>}
 */
async function ofParts(wasm, parts, signal, channels) {
  let count = 0;
  const open = async () => {
    const { done, value } = await parts.next(signal);
    if (done) return undefined;
    count += 1;
    const array = await arrayOf(value);
    if (array) return ofArray(wasm, array, channels);
    throw mismatch('input', `part ${count} of the latents`, '{ data, shape }', kindOf(value));
  };
  try {
    let part = await open();
    if (!part) throw mismatch('input', 'latents', 'at least one part', 'none');
    const { width, height, unscaled } = part;
    const next = async () => {
      for (; part; part = await open()) {
        const isLike = part.width === width && part.height === height && isUnscaled(part) === isUnscaled({ unscaled });
        if (!isLike) throw mismatch('input', `part ${count} of the latents`, `${said({ width, height, unscaled })}, as the first`, said(part));
        const frame = await part.next();
        if (frame) return frame;
      }
      return undefined;
    };
    return { width, height, unscaled, next, free: () => parts.free() };
  } catch (error) {
    await parts.free();
    throw error;
  }
}

/**
 * Returns the number of frames of parts that are all there; undefined if they come one by one.
 * @param {unknown} parts
 * @returns {number | undefined}
 */
function framesOf(parts) {
  if (!Array.isArray(parts)) return undefined;
  const frames = parts.reduce((sum, part) => sum + part?.shape?.at?.(-3), 0);
  return Number.isInteger(frames) ? frames : undefined;
}

/** @param {{ unscaled?: boolean }} latents */
function isUnscaled({ unscaled }) {
  return unscaled ?? false;
}

/** @param {{ width: number, height: number, unscaled?: boolean }} part */
function said({ width, height, unscaled }) {
  const scale = unscaled === undefined ? 'without a stated scale' : unscaled ? 'of the VAE\'s own' : 'in the diffusion model\'s scale';
  return `${width}x${height} latents ${scale}`;
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
