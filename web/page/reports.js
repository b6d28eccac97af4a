// @ts-check
// Memory reports side by side: predictions and measurements. The format is
// results/schema/memory-report.schema.json.

import { element, tableRow } from './elements.js';
import { formatBytes, formatSeconds } from './format.js';
import { VERSION } from './own-report.js';
import { extent, isClip, peaksByFrames, peaksByPixels, predictedByMeasured } from './report-plots.js';

/**
 * Predicted bytes. `states`: memory that the parts of a clip keep for the next one.
 * @typedef {{ peak: number, host: number, states?: { total: number } }} Predicted
 */
/**
 * @typedef {{ ledger_peak: number, allocator_allocated: number | null, allocator_reserved: number |
 * null, seconds: number }} Measured bytes, seconds
 */
/**
 * A measurement and its adapter. Images have no `frames`, or 1.
 * @typedef {{
 *   adapter: string, model: string, operation: string, width: number, height: number, frames?:
 *   number, storage: string, budget: number | null, predicted: Predicted | null, measured: Measured
 *   | null, error: string | null,
 * }} Row
 */

/** Largest file to read, bytes; reports have a few kilobytes. */
const LARGEST_FILE = 8 << 20;

export class Reports {
  /** @type {Row[]} */
  #rows = [];

  /**
   * Shows a report of the project until there are others.
   * @param {string} url
   */
  async showExample(url) {
    const answer = await fetch(url).catch(() => undefined);
    if (!answer?.ok) return;
    const rows = await readReport(new File([await answer.blob()], 'example.json'));
    if (this.#rows.length > 0) return;
    show(rows);
    element('reports-example').hidden = false;
  }

  /** @param {File[]} files */
  async add(files) {
    element('reports').setAttribute('aria-busy', 'true');
    const problems = [];
    for (const file of files) {
      try {
        const rows = this.#rows.concat(await readReport(file));
        show(rows);
        element('reports-example').hidden = true;
        this.#rows = rows;
      } catch (error) {
        problems.push(`${file.name}: ${error instanceof Error ? error.message : error}`);
      }
    }
    this.fail(problems.join('; '));
    element('reports').setAttribute('aria-busy', 'false');
  }

  /** @param {string} problem '' clears it */
  fail(problem) {
    element('reports-problem').textContent = problem;
    element('reports-problem').hidden = problem === '';
  }
}

/** @param {Row[]} rows */
function show(rows) {
  element('reports-plots').replaceChildren(summary(rows), ...predictedByMeasured(rows), ...peaksByPixels(rows), ...peaksByFrames(rows), table(rows));
}

/**
 * @param {File} file
 * @returns {Promise<Row[]>}
 */
async function readReport(file) {
  if (file.size > LARGEST_FILE) throw new Error(`no memory report, it has ${formatBytes(file.size)}`);
  let report;
  try {
    report = JSON.parse(await file.text());
  } catch {
    throw new Error('not a JSON file');
  }
  if (report?.schema !== 'wgvae-memory-report') throw new Error('not a memory report: its "schema" is not "wgvae-memory-report"');
  const { version } = report;
  if (!Number.isInteger(version) || version < 1 || version > VERSION) throw new Error(`version ${version} of the format, expected 1 to ${VERSION}`);
  return report.measurements.map((/** @type {any} */ one) => {
    const adapter = report.adapters[one.adapter];
    if (!adapter) throw new Error(`a measurement names adapter ${one.adapter}, there are ${report.adapters.length}`);
    const { seconds } = one.measured ?? { seconds: 0 };
    if (!Number.isFinite(seconds)) throw new Error(`a measurement has the time ${JSON.stringify(seconds)}, expected a number of seconds`);
    return { ...one, adapter: shortName(adapter) };
  });
}

/**
 * Returns the name and driver of an adapter, without the details that drivers put in brackets.
 * @param {{ name: string, driver: string, backend: string }} adapter
 */
function shortName({ name, driver, backend }) {
  const words = (driver || '').split(' (')[0].split(' ');
  const at = words.findIndex((word) => /\d.*\.|\..*\d/.test(word));
  const version = at < 0 ? backend : words.slice(Math.max(0, at - 1), at + 1).join(' ');
  return [(name || 'GPU').split(' (')[0], version].filter(Boolean).join(', ');
}

/** @param {Row[]} rows */
function summary(rows) {
  const measured = rows.filter((row) => row.measured);
  const exact = measured.filter((row) => row.predicted?.peak === row.measured?.ledger_peak);
  const failed = rows.length - measured.length;
  const failures = failed > 0 ? ` ${failed} failed.` : '';
  const textContent = `In ${exact.length} of ${measured.length} runs the measured peak equals the predicted one to the byte.${failures}`;
  return Object.assign(document.createElement('p'), { textContent });
}

/** @param {Row[]} rows */
function table(rows) {
  const scroll = Object.assign(document.createElement('div'), { className: 'scroll', tabIndex: 0 });
  scroll.setAttribute('role', 'region');
  scroll.setAttribute('aria-label', 'All measurements');
  const all = document.createElement('table');
  // Columns that only clips have are shown if there are clips.
  const withClips = rows.some(isClip);
  const header = ['adapter', 'model', 'direction', withClips ? 'picture or clip' : 'picture', 'stored as', 'budget', 'predicted'];
  all.append(tableRow('th', [...header, ...(withClips ? ['kept for the next part', 'in host memory'] : []), 'counted', 'reserved', 'time']));
  for (const row of rows) all.append(tableRow('td', cells(row, withClips)));
  scroll.append(all);
  return scroll;
}

/**
 * @param {Row} row
 * @param {boolean} withClips
 */
function cells(row, withClips) {
  const { adapter, model, operation, storage, budget, predicted, measured, error } = row;
  const bytes = (/** @type {number | null | undefined} */ value) => (value === null || value === undefined ? '' : formatBytes(value));
  const counted = measured ? bytes(measured.ledger_peak) : `failed: ${error}`;
  const time = measured ? formatSeconds(measured.seconds) : '';
  const kept = withClips ? [bytes(predicted?.states?.total), bytes(predicted?.host)] : [];
  return [adapter, model, operation, extent(row), storage, bytes(budget), bytes(predicted?.peak), ...kept, counted, bytes(measured?.allocator_reserved), time];
}
