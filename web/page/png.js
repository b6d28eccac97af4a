// @ts-check
// Frames as PNG files: the same pixels in less memory.

import { WgvaeError } from '../src/index.js';

/** @param {ImageData} image */
export async function toPng(image) {
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext('2d')?.putImageData(image, 0, 0);
  try {
    return await canvas.convertToBlob({ type: 'image/png' });
  } catch (cause) {
    throw new WgvaeError('canvas', `the browser makes no PNG of a frame of ${image.width}x${image.height} pixels`, { cause });
  }
}

/** @param {Blob} png @returns {Promise<ImageData>} */
export async function fromPng(png) {
  const bitmap = await createImageBitmap(png, { colorSpaceConversion: 'none', premultiplyAlpha: 'none' });
  const { width, height } = bitmap;
  const context = new OffscreenCanvas(width, height).getContext('2d', { willReadFrequently: true });
  context?.drawImage(bitmap, 0, 0);
  bitmap.close();
  if (!context) throw new WgvaeError('canvas', 'the browser has no canvas to read the frame from');
  return context.getImageData(0, 0, width, height);
}
