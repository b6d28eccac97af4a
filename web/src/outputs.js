// @ts-check
// What a decode can give, and how it is made of what the module gives.

import { bitmapOf } from './canvas.js';
import { mismatch } from './errors.js';
import { pngOf } from './png.js';

/** What the module calls each kind of picture. */
export const OUTPUTS = /** @type {const} */ ({ bitmap: 'canvas', texture: 'canvas', buffer: 'canvas', 'image-data': 'rgba8', blob: 'rgba8', raw: 'raw' });

/** Those that are on the model's device, for whoever has that. */
export const ON_DEVICE = ['texture', 'buffer'];

/** And of frame, which no canvas is drawn with. */
export const FRAMES = /** @type {const} */ ({ bitmap: 'rgba8', 'image-data': 'rgba8', blob: 'rgba8', raw: 'raw' });

/**
 * Fails for what is none of `outputs`, and for what there is not here.
 * @param {string} output
 * @param {object} outputs
 */
export function checkOutput(output, outputs) {
  if (!Object.hasOwn(outputs, output)) throw mismatch('input', 'output', Object.keys(outputs).join(', '), `${output}`);
  if (output === 'bitmap' && !globalThis.createImageBitmap) throw mismatch('input', 'output', 'blob, image-data or raw where there are no ImageBitmaps', output);
}

/**
 * A picture in memory, as it is wanted.
 * @param {import('./index.js').Output} output
 * @param {any} data bytes of `[height, width, 4]`, or floats of `[3, height, width]`
 * @param {number} width
 * @param {number} height
 */
export async function delivered(output, data, width, height) {
  if (output === 'raw') return { data, shape: [3, height, width] };
  if (output === 'blob') return pngOf(data, width, height);
  // Only browsers have the class.
  const image = globalThis.ImageData ? new ImageData(data, width, height) : /** @type {ImageData} */ ({ data, width, height, colorSpace: 'srgb' });
  return output === 'bitmap' ? bitmapOf(image) : image;
}
