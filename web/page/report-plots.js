// @ts-check
// The plots of memory reports, the same as in `wgvae memory --html`: the measured peak over the
// predicted one, the peak over the picture's size with estimates of other tools, and the peak over
// a clip's length.

import { ESTIMATES } from './estimates.js';
import { formatBytes } from './format.js';
import { plot, range, SHAPES } from './plot.js';

/** @typedef {import('./reports.js').Row} Row */
/** @typedef {import('./plot.js').Series} Series */

const COLORS = 6;

/** @param {Row} row */
export function isClip({ frames = 1 }) {
  return frames > 1;
}

/**
 * Returns the size of a picture or clip, for people.
 * @param {Row} row
 */
export function extent(row) {
  return isClip(row) ? `${size(row)}, ${row.frames} frames` : size(row);
}

/** @param {Row} row */
function size({ width, height }) {
  return `${width} × ${height}`;
}

/**
 * @param {Row[]} rows
 * @returns {HTMLElement[]}
 */
export function predictedByMeasured(rows) {
  /**
   * @type {[string, number, import('./plot.js').Shape, (measured: NonNullable<Row['measured']>) =>
   * number | null][]}
   */
  const kinds = [
    ['reserved by the allocator', 1, 'triangle', (measured) => measured.allocator_reserved],
    ['handed out by the allocator', 5, 'square', (measured) => measured.allocator_allocated],
    ['counted by wgvae', 0, 'circle', (measured) => measured.ledger_peak],
  ];
  const series = kinds.map(([name, color, shape, value]) => {
    const points = rows.flatMap((row) => {
      const bytes = row.measured && value(row.measured);
      return row.predicted && bytes ? [{ x: row.predicted.peak, y: bytes, text: `${describe(row)}: ${formatBytes(bytes)} ${name}` }] : [];
    });
    return { name, color, shape, points };
  });
  const filled = series.filter((one) => one.points.length > 0);
  if (filled.length === 0) return [];
  return [
    plot({
      id: 'predicted-measured',
      title: 'Measured memory over the prediction; on the line they are equal',
      description: `${filled.map((one) => `${one.points.length} marks ${one.name}`).join(', ')}. The table below has the numbers.`,
      x: { name: 'predicted peak', label: formatBytes },
      y: { name: 'measured', label: formatBytes },
      series: filled,
      diagonal: true,
    }),
  ];
}

/**
 * Draws one plot for each element size that was measured without a budget.
 * @param {Row[]} rows
 * @returns {HTMLElement[]}
 */
export function peaksByPixels(rows) {
  return wholeByElement(rows.filter((row) => !isClip(row) && row.operation === 'decode')).map(([name, bytes, own]) => pixelsPlot(name, bytes, own));
}

/**
 * Draws one plot for each direction and element size in which clips were measured without a budget.
 * @param {Row[]} rows
 * @returns {HTMLElement[]}
 */
export function peaksByFrames(rows) {
  return ['decode', 'encode'].flatMap((operation) =>
    wholeByElement(rows.filter((row) => isClip(row) && row.operation === operation)).map(([name, , own]) => framesPlot(operation, name, own)),
  );
}

/**
 * Groups successful measurements without a budget by element size: its name, its bytes, and its
 * rows.
 * @param {Row[]} rows
 * @returns {[string, number, Row[]][]}
 */
function wholeByElement(rows) {
  const whole = rows.filter((row) => row.measured && row.budget === null);
  /** @type {[string, number, Row[]][]} */
  const both = [['f16', 2, whole.filter((row) => row.storage !== 'f32')], ['f32', 4, whole.filter((row) => row.storage === 'f32')]];
  return both.filter(([, , own]) => own.length > 0);
}

/**
 * Returns the peaks over a value of each row, with a colour for each subject and a shape for each
 * adapter.
 * @param {Row[]} rows
 * @param {(row: Row) => string} subject
 * @param {(row: Row) => number} across
 * @returns {Series[]}
 */
function peaks(rows, subject, across) {
  const subjects = [...new Set(rows.map(subject))];
  const adapters = [...new Set(rows.map((row) => row.adapter))];
  const series = subjects.flatMap((name, color) =>
    adapters.map((adapter, shape) => ({
      name: adapters.length > 1 ? `${name} on ${adapter}` : name,
      color: color % COLORS,
      shape: SHAPES[shape % SHAPES.length],
      joined: true,
      points: rows
        .filter((row) => subject(row) === name && row.adapter === adapter)
        .map((row) => ({ x: across(row), y: row.measured?.ledger_peak ?? 0, text: `${describe(row)}: ${formatBytes(row.measured?.ledger_peak ?? 0)}` })),
    })),
  );
  return series.filter((one) => one.points.length > 0);
}

/**
 * @param {string} operation
 * @param {string} name
 * @param {Row[]} rows
 */
function framesPlot(operation, name, rows) {
  return plot({
    id: `clips-${operation}-${name}`,
    title: `Peak of GPU memory, ${operation}s of clips, ${name}`,
    description: `${rows.length} ${operation}s of clips. They run part by part, so that their length makes no difference. The table below has the numbers.`,
    x: { name: 'pictures of the clip', label: String },
    y: { name: 'GPU memory', label: formatBytes },
    series: peaks(rows, (row) => `${row.model}, ${size(row)}`, (row) => row.frames ?? 1),
  });
}

/**
 * @param {string} name
 * @param {number} elementBytes
 * @param {Row[]} rows
 */
function pixelsPlot(name, elementBytes, rows) {
  const models = [...new Set(rows.map((row) => row.model))];
  return plot({
    id: `peaks-${name}`,
    title: `Peak of GPU memory, ${name}`,
    description: `${rows.length} decodes of ${models.join(', ')}, and dashed what others estimate for SD 1.5. The table below has the numbers of the decodes.`,
    x: { name: 'pixels of the picture, as a square', every: 2, label: (pixels) => `${Math.round(Math.sqrt(pixels))}²` },
    y: { name: 'GPU memory', label: formatBytes },
    series: peaks(rows, (row) => row.model, (row) => row.width * row.height),
    guides: estimates(rows.map((row) => row.width * row.height), elementBytes),
  });
}

/**
 * Returns the estimates of other tools for SD 1.5 between the smallest and the largest picture.
 * @param {number[]} pixels
 * @param {number} elementBytes
 * @returns {import('./plot.js').Guide[]}
 */
function estimates(pixels, elementBytes) {
  let { low, high } = range(pixels);
  // A line needs two ends.
  if (low === high) [low, high] = [low / 2, high * 2];
  const sides = Array.from({ length: 9 }, (_, step) => Math.round(Math.sqrt(low * (high / low) ** (step / 8))));
  return ESTIMATES.map(({ name, source, bytes }) => ({
    name: `${name}, for SD 1.5`,
    source,
    points: sides.map((side) => ({ x: side * side, y: bytes(side, elementBytes) })),
  }));
}

/** @param {Row} row */
function describe(row) {
  return `${row.model}, ${extent(row)}, ${row.storage}, ${row.adapter}`;
}
