// @ts-check
// The plots of memory reports.

import { formatBytes } from './bytes.js';
import { ESTIMATORS, INVOKE_AI, invokeAiConstant } from './estimates.js';
import { plot, range, SHAPES } from './plot.js';
import { publishedBytes, publishedConstant, RTX_4090 } from './published.js';
import { ALL_RUNS, describeRow, elementBytes, impliedConstant, isOfRuns, runsName, sizeOf } from './rows.js';

/** @typedef {import('./rows.js').Row} Row */
/** @typedef {import('./plot.js').Series} Series */
/** @typedef {import('./plot.js').Entry} Entry */
/**
 * Runs that are drawn together: their direction, the bytes of an element, and the rows that
 * succeeded without a budget. `id` and `name` tell them from others.
 * @typedef {{ id: string, name: string, operation: string, elementBytes: number, rows: Row[] }}
 * Group
 */

const COLORS = 6;

/** Axis of picture sizes. @type {import('./plot.js').Axis} */
const SIDES = { name: 'pixels of the picture, as a square', every: 2, label: (pixels) => `${Math.round(Math.sqrt(pixels))}²` };

/** @type {import('./plot.js').Axis} */
const GPU_MEMORY = { name: 'GPU memory', label: formatBytes };

/**
 * Plots the bytes of ledger and allocator over the prediction.
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
      return row.predicted && bytes ? [{ x: row.predicted.peak, y: bytes, text: `${describeRow(row)}: ${formatBytes(bytes)} ${name}` }] : [];
    });
    return { name, color, shape, points };
  });
  const filled = series.filter((one) => one.points.length > 0);
  if (filled.length === 0) return [];
  return [
    plot({
      id: 'predicted-measured',
      title: 'Measured memory over the prediction; on the line they are equal',
      description: `${filled.map((one) => `${one.points.length} marks ${one.name}`).join(', ')}. The tables below have the numbers.`,
      x: { name: 'predicted peak', label: formatBytes },
      y: { name: 'measured', label: formatBytes },
      series: filled,
      legend: filled,
      diagonal: true,
    }),
  ];
}

/**
 * Plots the peak over the picture's size, with the estimates of others.
 * @param {Row[]} rows
 * @returns {HTMLElement[]}
 */
export function peaksByPixels(rows) {
  return groups(rows, false).map((group) => {
    const others = publishedMarks(group, (row) => publishedBytes(row), formatBytes);
    const pixels = [...group.rows.map((row) => row.width * row.height), ...others.series.flatMap((one) => one.points.map((point) => point.x))];
    const own = seriesOf(group.rows, (row) => row.model, (row) => row.width * row.height, (row) => row.measured?.ledger_peak, formatBytes);
    return plot({
      id: `peaks-${group.id}`,
      title: `Peak of GPU memory, ${group.name}`,
      description: `${group.rows.length} ${group.operation}s, and dashed what others estimate for SD 1.5. The tables below have the numbers.`,
      x: SIDES,
      y: GPU_MEMORY,
      series: [...own.series, ...others.series],
      legend: [...own.legend, ...others.legend],
      guides: estimateLines(pixels, group),
    });
  });
}

/**
 * Plots the peak over the length of clips.
 * @param {Row[]} rows
 * @returns {HTMLElement[]}
 */
export function peaksByFrames(rows) {
  return groups(rows, true).map((group) =>
    plot({
      id: `clips-${group.id}`,
      title: `Peak of GPU memory, ${group.name}`,
      description: `${group.rows.length} ${group.operation}s of clips. They run part by part, so that their length makes no difference. The tables below have the numbers.`,
      x: { name: 'pictures of the clip', label: String },
      y: GPU_MEMORY,
      ...seriesOf(group.rows, (row) => `${row.model}, ${sizeOf(row)}`, (row) => row.frames ?? 1, (row) => row.measured?.ledger_peak, formatBytes),
    }),
  );
}

/**
 * Plots the bytes per pixel and element, as wgvae counts them, over the picture's size.
 * @param {Row[]} rows
 * @returns {HTMLElement[]}
 */
export function impliedByPixels(rows) {
  return groups(rows, false).map((group) => {
    const others = publishedMarks(group, publishedConstant, whole);
    const own = seriesOf(group.rows, (row) => row.model, (row) => row.width * row.height, (row) => impliedConstant(row, row.measured?.ledger_peak), whole);
    const series = [...own.series, ...others.series];
    const constant = invokeAiConstant(group.operation);
    const ends = lineEnds(series.flatMap((one) => one.points.map((point) => point.x)));
    return plot({
      id: `implied-${group.id}`,
      title: `Bytes besides the weights, per pixel and byte of an element, ${group.name}`,
      description: `${group.rows.length} ${group.operation}s, and dashed the constant of InvokeAI. The tables below have the numbers.`,
      x: SIDES,
      y: { name: 'bytes per pixel and element', label: String, isLinear: true },
      series,
      legend: [...own.legend, ...others.legend],
      guides: [{ name: `${INVOKE_AI}: ${constant}`, source: 'its formula', points: [ends.low, ends.high].map((x) => ({ x, y: constant })) }],
    });
  });
}

/**
 * Groups measurements by direction and element size.
 * @param {Row[]} rows
 * @param {boolean} areClips
 * @returns {Group[]}
 */
function groups(rows, areClips) {
  const whole = rows.filter((row) => row.measured && row.budget === null);
  const all = ALL_RUNS.filter((runs) => runs.areClips === areClips).flatMap((runs) =>
    [2, 4].map((bytes) => {
      const stored = bytes === 2 ? 'f16' : 'f32';
      const own = whole.filter((row) => isOfRuns(row, runs) && elementBytes(row) === bytes);
      return { id: `${runs.operation}-${stored}`, name: `${runsName(runs)} in ${stored}`, operation: runs.operation, elementBytes: bytes, rows: own };
    }),
  );
  return all.filter((group) => group.rows.length > 0);
}

/**
 * Returns a value of each row, with a colour for each subject and a shape for each adapter.
 * @param {Row[]} rows
 * @param {(row: Row) => string} subject
 * @param {(row: Row) => number} across
 * @param {(row: Row) => number | undefined} value
 * @param {(value: number) => string} label
 * @returns {{ series: Series[], legend: Entry[] }}
 */
function seriesOf(rows, subject, across, value, label) {
  const subjects = [...new Set(rows.map(subject))];
  const adapters = [...new Set(rows.map((row) => row.adapter))];
  const shapeOf = (/** @type {number} */ index) => SHAPES[index % SHAPES.length];
  const series = subjects.flatMap((name, color) =>
    adapters.map((adapter, shape) => ({
      color: color % COLORS,
      shape: shapeOf(shape),
      joined: true,
      points: rows
        .filter((row) => subject(row) === name && row.adapter === adapter)
        .flatMap((row) => {
          const y = value(row);
          return y === undefined ? [] : [{ x: across(row), y, text: `${describeRow(row)}: ${label(y)}` }];
        }),
    })),
  );
  const names = subjects.map((name, color) => ({ name, color: color % COLORS }));
  const machines = adapters.map((name, shape) => ({ name, color: /** @type {const} */ ('grey'), shape: shapeOf(shape) }));
  return { series: series.filter((one) => one.points.length > 0), legend: [...names, ...machines] };
}

/**
 * Returns the published measurements of a group, which are all in f16.
 * @param {Group} group
 * @param {(row: import('./published.js').Published) => number} value
 * @param {(value: number) => string} label
 * @returns {{ series: Series[], legend: Entry[] }}
 */
function publishedMarks({ operation, elementBytes }, value, label) {
  if (elementBytes !== 2) return { series: [], legend: [] };
  const kind = { color: /** @type {const} */ ('grey'), shape: /** @type {const} */ ('ring') };
  const own = RTX_4090.filter((row) => row.operation === operation);
  const points = own.map((row) => ({ x: row.side * row.side, y: value(row), text: `${row.model}, ${row.side} × ${row.side}, PyTorch: ${label(value(row))}` }));
  return { series: [{ ...kind, points }], legend: [{ ...kind, name: 'PyTorch on an RTX 4090, reserved (InvokeAI)' }] };
}

/**
 * Returns the estimates of other tools for SD 1.5 between the smallest and the largest picture.
 * @param {number[]} pixels
 * @param {Group} group
 * @returns {import('./plot.js').Guide[]}
 */
function estimateLines(pixels, { operation, elementBytes }) {
  const { low, high } = lineEnds(pixels);
  const sides = Array.from({ length: 9 }, (_, step) => Math.round(Math.sqrt(low * (high / low) ** (step / 8))));
  return ESTIMATORS.filter((one) => one.isDrawn).map(({ name, source, bytes }) => ({
    name: `${name}, for SD 1.5`,
    source,
    points: sides.map((side) => ({ x: side * side, y: bytes({ model: 'sd15', operation, width: side, height: side, elementBytes }) ?? 0 })),
  }));
}

/** Returns two different ends of a line over all values. @param {number[]} values */
function lineEnds(values) {
  const { low, high } = range(values);
  return low === high ? { low: low / 2, high: high * 2 } : { low, high };
}

/** @param {number} value */
function whole(value) {
  return value.toFixed(0);
}
