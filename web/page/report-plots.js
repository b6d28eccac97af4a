// @ts-check
// The plots of memory reports, the same as those of `wgvae memory --html`: measured over predicted, and the peak over the picture's size with what others
// estimate for it.

import { ESTIMATES } from './estimates.js';
import { formatBytes } from './format.js';
import { plot, range, SHAPES } from './plot.js';

/** @typedef {import('./reports.js').Row} Row */
/** @typedef {import('./plot.js').Series} Series */

const COLORS = 6;

/**
 * @param {Row[]} rows
 * @returns {HTMLElement[]}
 */
export function predictedByMeasured(rows) {
  /** @type {[string, number, import('./plot.js').Shape, (measured: NonNullable<Row['measured']>) => number | null][]} */
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
 * One plot for each size of an element that was measured without a budget.
 * @param {Row[]} rows
 * @returns {HTMLElement[]}
 */
export function peaksByPixels(rows) {
  const whole = rows.filter((row) => row.measured && row.budget === null && row.operation === 'decode');
  const [half, full] = [whole.filter((row) => row.storage !== 'f32'), whole.filter((row) => row.storage === 'f32')];
  return [...(half.length > 0 ? [peaks('f16', 2, half)] : []), ...(full.length > 0 ? [peaks('f32', 4, full)] : [])];
}

/**
 * @param {string} name
 * @param {number} elementBytes
 * @param {Row[]} rows
 */
function peaks(name, elementBytes, rows) {
  const models = [...new Set(rows.map((row) => row.model))];
  const adapters = [...new Set(rows.map((row) => row.adapter))];
  /** @type {Series[]} */
  const series = models.flatMap((model, color) =>
    adapters.map((adapter, shape) => ({
      name: adapters.length > 1 ? `${model} on ${adapter}` : model,
      color: color % COLORS,
      shape: SHAPES[shape % SHAPES.length],
      joined: true,
      points: rows
        .filter((row) => row.model === model && row.adapter === adapter)
        .map((row) => ({ x: row.width * row.height, y: row.measured?.ledger_peak ?? 0, text: `${describe(row)}: ${formatBytes(row.measured?.ledger_peak ?? 0)}` })),
    })),
  );
  return plot({
    id: `peaks-${name}`,
    title: `Peak of GPU memory, ${name}`,
    description: `${rows.length} decodes of ${models.join(', ')}, and dashed what others estimate for SD 1.5. The table below has the numbers of the decodes.`,
    x: { name: 'pixels of the picture, as a square', every: 2, label: (pixels) => `${Math.round(Math.sqrt(pixels))}²` },
    y: { name: 'GPU memory', label: formatBytes },
    series: series.filter((one) => one.points.length > 0),
    guides: estimates(rows.map((row) => row.width * row.height), elementBytes),
  });
}

/**
 * What others estimate for SD 1.5 between the smallest and the largest picture.
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
function describe({ model, width, height, storage, adapter }) {
  return `${model}, ${width} × ${height}, ${storage}, ${adapter}`;
}
