// @ts-check
// Measurements of several reports in one list. The format of a report is
// results/schema/memory-report.schema.json.

import { adapterLabels, vendor } from './adapters.js';

/**
 * Predicted bytes. `states`: memory that the parts of a clip keep for the next one.
 * @typedef {{ peak: number, weights: number, host: number, states?: { total: number } }} Predicted
 */
/**
 * Measured bytes and seconds.
 * @typedef {{
 *   ledger_peak: number, allocator_allocated: number | null, allocator_reserved: number | null,
 *   peak_rss: number | null, load_seconds: number, prepare_seconds: number, seconds: number,
 * }} Measured
 */
/**
 * A measurement. `adapter`: its index. Images have no `frames`, or 1.
 * @typedef {{
 *   adapter: number, model: string, operation: string, width: number, height: number, frames?:
 *   number, storage: string, budget: number | null, predicted: Predicted | null, measured: Measured
 *   | null, error: string | null,
 * }} Measurement
 */
/**
 * @typedef {{
 *   wgvae: string, machine: import('./adapters.js').Machine, adapters:
 *   import('./adapters.js').Adapter[], measurements: Measurement[],
 * }} Report
 */
/**
 * A measurement with the short name and the manufacturer of its adapter.
 * @typedef {Omit<Measurement, 'adapter'> & { adapter: string, vendor: string }} Row
 */

/**
 * Kind of runs: decodes or encodes, of images or of clips.
 * @typedef {{ operation: string, areClips: boolean }} Runs
 */

/** All kinds, images before clips. @type {Runs[]} */
export const ALL_RUNS = ['decode', 'encode'].flatMap((operation) => [false, true].map((areClips) => ({ operation, areClips })));

/**
 * @param {Report[]} reports
 * @returns {Row[]}
 */
export function rowsOf(reports) {
  const labels = adapterLabels(reports);
  return reports.flatMap(({ adapters, measurements }, report) =>
    measurements.map((one) => ({ ...one, adapter: labels[report][one.adapter], vendor: vendor(adapters[one.adapter]) })),
  );
}

/** @param {{ frames?: number }} row */
export function isClip({ frames = 1 }) {
  return frames > 1;
}

/**
 * @param {Row} row
 * @param {Runs} runs
 */
export function isOfRuns(row, { operation, areClips }) {
  return row.operation === operation && isClip(row) === areClips;
}

/** Returns the name of these runs. @param {Runs} runs */
export function runsName({ operation, areClips }) {
  return `${operation}s${areClips ? ' of clips' : ''}`;
}

/** @param {Row} row */
export function isExact({ predicted, measured }) {
  return predicted !== null && measured !== null && predicted.peak === measured.ledger_peak;
}

/** Returns the bytes of one stored element. @param {Row} row */
export function elementBytes({ storage }) {
  return storage === 'f32' ? 4 : 2;
}

/** Names of ways to store, where they differ from the format's. */
const STORAGE_NAMES = new Map([['packed_f16', 'f16, packed'], ['fast_f16', 'fast']]);

/** Returns the name of the storage of weights and activations. @param {Row} row */
export function storageName({ storage }) {
  return STORAGE_NAMES.get(storage) ?? storage;
}

/** @param {Row} row */
export function sizeOf({ width, height }) {
  return `${width} × ${height}`;
}

/** Returns the row in words. @param {Row} row */
export function describeRow(row) {
  const frames = isClip(row) ? `, ${row.frames} frames` : '';
  return `${row.model}, ${sizeOf(row)}${frames}, ${storageName(row)}, ${row.adapter}`;
}

/**
 * Returns the bytes that the allocator reserved, divided by the bytes that it handed out.
 * @param {Row} row
 */
export function reserveRatio({ measured }) {
  if (!measured?.allocator_allocated || measured.allocator_reserved === null) return undefined;
  return measured.allocator_reserved / measured.allocator_allocated;
}

/**
 * Returns the bytes besides the weights for each pixel and each byte of an element, which InvokeAI
 * calls the scaling constant. A clip has none, because its length does not show in its memory.
 * @param {Row} row
 * @param {number | null | undefined} total bytes, weights included
 */
export function impliedConstant(row, total) {
  if (total === null || total === undefined || !row.predicted || isClip(row)) return undefined;
  return Math.max(total - row.predicted.weights, 0) / (row.width * row.height * elementBytes(row));
}
