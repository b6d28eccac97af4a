// @ts-check
// Outputs of a decode, and their conversion from the module's results.

import { bitmapOf } from './canvas.js';
import { mismatch } from './errors.js';
import { checkValue, oneOf } from './options.js';
import { pngOf } from './png.js';

/** The module's name for each kind of picture. */
export const OUTPUTS = /** @type {const} */ ({ bitmap: 'canvas', texture: 'canvas', buffer: 'canvas', 'image-data': 'rgba8', blob: 'rgba8', raw: 'raw' });

/** Outputs on the model's device. */
export const ON_DEVICE = ['texture', 'buffer'];

/**
 * Returns the module's name for an output where canvases and bitmaps get pictures from memory. On
 * the CPU there are no other pictures.
 * @param {Pick<import('./index.js').DecodeOptions, 'canvas' | 'output'>} options
 * @param {boolean} isOnCpu
 */
export function hostOutput({ canvas, output = 'bitmap' }, isOnCpu) {
  if (!canvas && ON_DEVICE.includes(output)) {
    if (isOnCpu) throw mismatch('input', 'output', 'one in memory, on the CPU', output);
    return OUTPUTS[output];
  }
  return canvas || output !== 'raw' ? 'rgba8' : 'raw';
}

/**
 * True if canvases and bitmaps get pictures from memory: on the CPU, and pictures with opacity. A
 * canvas for WebGPU takes colours that are multiplied by alpha, and those of a model are not. A
 * canvas for 2D drawing, and an ImageBitmap of an ImageData, take them as they are.
 * @param {boolean} isOnCpu
 * @param {{ out_channels: number }} facts about the model
 */
export function isShownFromMemory(isOnCpu, { out_channels: channels }) {
  return isOnCpu || channels === 4;
}

/** The module's name for each kind of frame. Frames are never drawn with a canvas. */
export const FRAMES = /** @type {const} */ ({ bitmap: 'rgba8', 'image-data': 'rgba8', blob: 'rgba8', raw: 'raw', 'video-frame': 'rgba8' });

/** Microseconds of a second, the unit of times of video. */
const MICROSECONDS = 1e6;

/**
 * Throws unless `output` is one of `outputs` and available here.
 * @param {string} output
 * @param {object} outputs
 */
export function checkOutput(output, outputs) {
  checkValue('output', output, oneOf(...Object.keys(outputs)));
  const isThere = { bitmap: globalThis.createImageBitmap, 'video-frame': globalThis.VideoFrame };
  if (output in isThere && !isThere[/** @type {keyof typeof isThere} */ (output)]) throw mismatch('input', 'output', 'blob, image-data or raw where there is no ImageBitmap or VideoFrame', output);
}

/**
 * Throws if there is an output beside the canvas.
 * @param {{ output?: string }} options
 */
export function checkAlone({ output }) {
  if (output !== undefined) throw mismatch('input', 'output', 'none beside a canvas', output);
}

/**
 * Converts a picture in memory to the requested output.
 * @param {import('./index.js').Output} output
 * @param {any} data bytes of `[height, width, 4]`, or floats of `[channels, height, width]`
 * @param {number} width
 * @param {number} height
 * @param {3 | 4} channels of the model's pictures
 */
export async function delivered(output, data, width, height, channels) {
  if (output === 'raw') return { data, shape: [channels, height, width] };
  if (output === 'blob') return pngOf(data, width, height, channels);
  // Only browsers have the class.
  const image = globalThis.ImageData ? new ImageData(data, width, height) : /** @type {ImageData} */ ({ data, width, height, colorSpace: 'srgb' });
  return output === 'bitmap' ? bitmapOf(image) : image;
}

/**
 * Makes a frame of video, which takes the bytes along.
 * @param {Uint8ClampedArray<ArrayBuffer>} data bytes of `[height, width, 4]`
 * @param {{ width: number, height: number }} size
 * @param {number} index of the frame in the clip
 * @param {number} fps
 */
export function videoFrameOf(data, { width, height }, index, fps) {
  const [timestamp, next] = [index, index + 1].map((frames) => Math.round((MICROSECONDS * frames) / fps));
  /** TypeScript does not know `transfer` yet. @type {VideoFrameBufferInit & { transfer: ArrayBuffer[] }} */
  const facts = { format: 'RGBX', codedWidth: width, codedHeight: height, timestamp, duration: next - timestamp, transfer: [data.buffer] };
  return new VideoFrame(data, facts);
}
