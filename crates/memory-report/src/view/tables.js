// @ts-check
// The tables of memory reports.

import { adapterLabels, vendor } from './adapters.js';
import { formatMib } from './bytes.js';
import { ESTIMATORS } from './estimates.js';
import { publishedBytes, publishedConstant, RESERVE_RATIOS, RTX_4090 } from './published.js';
import { ALL_RUNS, elementBytes, impliedConstant, isClip, isExact, isOfRuns, reserveRatio, runsName, sizeOf, storageName } from './rows.js';
import { heading, link, table } from './tags.js';

/** @typedef {import('./rows.js').Row} Row */
/** @typedef {import('./rows.js').Report} Report */
/** @typedef {import('./adapters.js').Adapter} Adapter */
/** @typedef {import('./tags.js').Column} Column */

/**
 * Returns the table of machines and their adapters.
 * @param {Report[]} reports
 */
export function adaptersTable(reports) {
  const labels = adapterLabels(reports);
  /** @type {Map<string, { report: Report, adapter: Adapter }>} */
  const once = new Map();
  reports.forEach((report, index) =>
    report.adapters.forEach((adapter, at) => {
      const label = labels[index][at];
      if (!once.has(label)) once.set(label, { report, adapter });
    }),
  );
  const rows = [...once].map(([label, { report: { machine, wgvae }, adapter }]) => [
    label,
    vendor(adapter),
    `${adapter.device_type}, ${adapter.backend}`,
    [adapter.name, adapter.driver].filter(Boolean).join('; '),
    `${machine.os} ${machine.arch}, ${machine.cpus} processors`,
    wgvae,
  ]);
  return table('Adapters', ['adapter', 'vendor', { name: 'kind', wraps: true }, { name: 'driver', wraps: true }, { name: 'machine', wraps: true }, 'wgvae'], rows);
}

/**
 * Returns the tables of all rows, for each adapter and kind of runs.
 * @param {Row[]} rows
 */
export function measurementTables(rows) {
  const adapters = [...new Set(rows.map((row) => row.adapter))];
  return adapters.flatMap((adapter) =>
    ALL_RUNS.flatMap((runs) => {
      const own = rows.filter((row) => row.adapter === adapter && isOfRuns(row, runs));
      const title = `${adapter}: ${runsName(runs)}`;
      return own.length === 0 ? [] : [heading('h3', title), measurements(title, runs, own)];
    }),
  );
}

/**
 * @param {string} title
 * @param {import('./rows.js').Runs} runs
 * @param {Row[]} rows
 */
function measurements(title, { operation, areClips }, rows) {
  const [frames, kept, implied] = areClips ? [['frames'], ['kept', 'in host memory'], []] : [[], [], ['counted', 'reserved']];
  const what = ['model', 'size', ...frames.map(number), 'stored as', ...['budget', 'predicted', ...kept].map(number)];
  const took = ['allocated', 'reserved', 'process', 'load', 'prepare', operation, ...implied].map(number);
  const columns = [...what, number('measured'), 'equal', ...took];
  return table(title, columns, rows.map((row) => [...known(row), ...(row.measured ? taken(row) : [`failed: ${row.error}`])]));
}

/**
 * Returns the cells that failed runs have, too.
 * @param {Row} row
 */
function known(row) {
  const { model, frames, budget, predicted } = row;
  const [length, kept] = isClip(row) ? [[String(frames)], [shown(predicted?.states?.total, formatMib), shown(predicted?.host, formatMib)]] : [[], []];
  return [model, sizeOf(row), ...length, storageName(row), shown(budget, formatMib), shown(predicted?.peak, formatMib), ...kept];
}

/**
 * Returns the cells of measured values.
 * @param {Row} row
 */
function taken(row) {
  const { measured } = row;
  const bytes = [measured?.allocator_allocated, measured?.allocator_reserved, measured?.peak_rss].map((value) => shown(value, formatMib));
  const times = [measured?.load_seconds, measured?.prepare_seconds, measured?.seconds].map((value) => shown(value, seconds));
  const totals = isClip(row) ? [] : [measured?.ledger_peak, measured?.allocator_reserved];
  const implied = totals.map((total) => shown(impliedConstant(row, total), rounded));
  return [shown(measured?.ledger_peak, formatMib), isExact(row) ? 'yes' : 'no', ...bytes, ...times, ...implied];
}

/**
 * Returns the table of reserved over allocated memory, with a bar for each ratio.
 * @param {Row[]} rows
 */
export function ratiosTable(rows) {
  /** @type {Map<string, { vendor: string, adapter: string, run: string, values: number[] }>} */
  const found = new Map();
  for (const row of rows) {
    const ratio = reserveRatio(row);
    if (ratio === undefined) continue;
    const own = JSON.stringify([row.adapter, row.model, row.operation]);
    const one = found.get(own) ?? { vendor: row.vendor, adapter: row.adapter, run: `${row.model} ${row.operation}`, values: [] };
    one.values.push(ratio);
    found.set(own, one);
  }
  const measured = [...found.values()].map(({ vendor, adapter, run, values }) => ({ vendor, adapter, run, ratio: values.reduce((sum, value) => sum + value) / values.length, kind: 'bar' }));
  const others = RESERVE_RATIOS.map(({ model, operation, ratio }) => ({ vendor: 'NVIDIA', adapter: 'RTX 4090, PyTorch (published)', run: `${model} ${operation}`, ratio, kind: 'bar other' }));
  const all = [...measured, ...others];
  const most = all.reduce((most, { ratio }) => Math.max(most, ratio), 1);
  const cells = all.map(({ vendor, adapter, run, ratio, kind }) => [vendor, adapter, run, ratio.toFixed(2), bar(ratio / most, kind)]);
  return table('Reserve ratios', ['vendor', 'adapter', 'run', number('ratio'), 'compared'], cells);
}

/**
 * @param {number} part of the whole width
 * @param {string} kind
 */
function bar(part, kind) {
  const track = Object.assign(document.createElement('div'), { className: 'track' });
  const inner = Object.assign(document.createElement('div'), { className: kind });
  inner.style.width = `${(100 * part).toFixed(1)}%`;
  track.append(inner);
  return track;
}

/** Returns the table of formulas. */
export function formulasTable() {
  const rows = ESTIMATORS.map(({ name, formula, source, address }) => [name, formula, address ? link(address, source) : source]);
  return table('Formulas', ['estimate', { name: 'formula', wraps: true }, { name: 'source', wraps: true }], rows);
}

/**
 * Returns the table of estimates for every image that was measured without a budget: one row for
 * each model, direction, size and storage.
 * @param {Row[]} rows
 */
export function estimatesTable(rows) {
  /** @type {Map<string, Row>} */
  const unique = new Map();
  for (const row of rows) {
    const own = JSON.stringify([row.model, row.operation, row.width, row.height, elementBytes(row)]);
    if (row.budget === null && !isClip(row) && row.measured && !unique.has(own)) unique.set(own, row);
  }
  const cells = [...unique.values()].map((row) => {
    const took = row.measured?.ledger_peak ?? 0;
    return [row.model, sizeOf(row), row.operation, storageName(row), formatMib(took), ...estimated({ ...row, elementBytes: elementBytes(row) }, took)];
  });
  return table('Estimates of the measured pictures', ['model', 'size', 'direction', 'stored as', number('wgvae, measured'), ...ESTIMATORS.map(({ name }) => number(name))], cells);
}

/** Returns the table of published measurements with their estimates. */
export function publishedTable() {
  const cells = RTX_4090.map((row) => {
    const { model, operation, side } = row;
    const work = { model, operation, width: side, height: side, elementBytes: 2 };
    const took = publishedBytes(row);
    return [model, `${side} × ${side}`, operation, formatMib(took), shown(row.seconds, seconds), rounded(publishedConstant(row)), ...estimated(work, took)];
  });
  const columns = ['reserved', 'seconds', 'bytes per pixel and element', ...ESTIMATORS.map(({ name }) => name)];
  return table('Published measurements', ['model', 'size', 'direction', ...columns.map(number)], cells);
}

/**
 * Returns each estimate in MiB, with its ratio to the bytes that were taken.
 * @param {import('./estimates.js').Work} work
 * @param {number} took
 */
function estimated(work, took) {
  return ESTIMATORS.map((estimator) => shown(estimator.bytes(work), (bytes) => `${formatMib(bytes)} (${(bytes / Math.max(took, 1)).toFixed(2)})`));
}

/**
 * Names a column of numbers.
 * @param {string} name
 * @returns {Column}
 */
function number(name) {
  return { name, isNumber: true };
}

/**
 * Formats a value, or a dash if there is none.
 * @param {number | null | undefined} value
 * @param {(value: number) => string} text
 */
function shown(value, text) {
  return value === null || value === undefined ? '–' : text(value);
}

/** @param {number} value */
function seconds(value) {
  return value.toFixed(2);
}

/** @param {number} value */
function rounded(value) {
  return value.toFixed(0);
}
