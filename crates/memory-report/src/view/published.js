// @ts-check
// Measurements of InvokeAI's investigation: PyTorch, f16, RTX 4090, with the memory that PyTorch
// reserved. Source: the report in InvokeAI's pull request 8414 (2025). Its "MB" are MiB: 1068 for
// 512x512 in f16 is its constant 2136.

/** Name of the measured GPU. */
export const PUBLISHED_DEVICE = 'NVIDIA GeForce RTX 4090, PyTorch, f16';

/** Address of the numbers. */
export const PUBLISHED_SOURCE = 'https://github.com/invoke-ai/InvokeAI/pull/8414';

/**
 * A measurement of a square picture: its side in pixels, reserved MiB, and seconds if published.
 * @typedef {{ model: string, operation: string, side: number, mib: number, seconds?: number }}
 * Published
 */

/** @type {Published[]} */
export const RTX_4090 = [
  { model: 'flux1', operation: 'decode', side: 512, mib: 1068 },
  { model: 'flux1', operation: 'decode', side: 1024, mib: 4260, seconds: 0.15 },
  { model: 'flux1', operation: 'decode', side: 2048, mib: 16932, seconds: 0.69 },
  { model: 'sd15', operation: 'decode', side: 512, mib: 1018 },
  { model: 'sd15', operation: 'decode', side: 1024, mib: 4226, seconds: 0.15 },
  { model: 'sd15', operation: 'decode', side: 2048, mib: 16994, seconds: 0.71 },
  { model: 'sdxl', operation: 'decode', side: 512, mib: 1088 },
  { model: 'sdxl', operation: 'decode', side: 1024, mib: 4274 },
  { model: 'flux1', operation: 'encode', side: 1024, mib: 1798, seconds: 0.08 },
  { model: 'flux1', operation: 'encode', side: 2048, mib: 7198, seconds: 0.41 },
];

/**
 * Bytes that PyTorch reserved divided by the bytes that it allocated, on average over all sizes.
 * @type {{ model: string, operation: string, ratio: number }[]}
 */
export const RESERVE_RATIOS = [
  { model: 'flux1', operation: 'decode', ratio: 1.8 },
  { model: 'sd15', operation: 'decode', ratio: 1.55 },
  { model: 'sdxl', operation: 'decode', ratio: 1.56 },
  { model: 'flux1', operation: 'encode', ratio: 1.15 },
  { model: 'sd15', operation: 'encode', ratio: 1.31 },
  { model: 'sdxl', operation: 'encode', ratio: 1.31 },
];

/** Returns the reserved bytes. @param {Published} row */
export function publishedBytes({ mib }) {
  return mib * 2 ** 20;
}

/** Returns the reserved bytes for each pixel and each byte of an element. @param {Published} row */
export function publishedConstant(row) {
  return publishedBytes(row) / (row.side * row.side * 2);
}
