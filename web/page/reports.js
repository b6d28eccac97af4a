// @ts-check
// Memory reports side by side: predictions and measurements. The format is
// results/schema/memory-report.schema.json.

import { viewReports } from '../../crates/memory-report/src/view/view.js';
import { element } from './elements.js';
import { formatBytes } from './format.js';
import { VERSION } from './own-report.js';

/** @typedef {import('../../crates/memory-report/src/view/rows.js').Report} Report */

/** Largest file to read, bytes; reports have a few kilobytes. */
const LARGEST_FILE = 8 << 20;

/** Fields that every measurement has. */
const NEEDED = ['adapter', 'model', 'weights', 'operation', 'width', 'height', 'storage', 'budget', 'predicted', 'measured', 'error'];

export class Reports {
  /** @type {Report[]} */
  #reports = [];

  /**
   * Shows a report of the project until there are others.
   * @param {string} url
   */
  async showExample(url) {
    const answer = await fetch(url).catch(() => undefined);
    if (!answer?.ok) return;
    const report = await readReport(new File([await answer.blob()], 'example.json'));
    if (this.#reports.length > 0) return;
    show([report]);
    element('reports-example').hidden = false;
  }

  /** @param {File[]} files */
  async add(files) {
    element('reports').setAttribute('aria-busy', 'true');
    const problems = [];
    for (const file of files) {
      try {
        const reports = [...this.#reports, await readReport(file)];
        show(reports);
        element('reports-example').hidden = true;
        this.#reports = reports;
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

/** @param {Report[]} reports */
function show(reports) {
  element('reports-plots').replaceChildren(...viewReports(reports));
}

/**
 * @param {File} file
 * @returns {Promise<Report>}
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
  for (const list of ['adapters', 'measurements']) {
    if (!Array.isArray(report[list])) throw new Error(`expected a list of ${list}, found ${JSON.stringify(report[list]) ?? 'none'}`);
  }
  for (const measurement of report.measurements) {
    const absent = NEEDED.find((name) => measurement?.[name] === undefined);
    if (absent) throw new Error(`a measurement has no "${absent}"`);
    const { adapter, measured } = measurement;
    if (!report.adapters[adapter]) throw new Error(`a measurement names adapter ${adapter}, there are ${report.adapters.length}`);
    const { seconds } = measured ?? { seconds: 0 };
    if (!Number.isFinite(seconds)) throw new Error(`a measurement has the time ${JSON.stringify(seconds)}, expected a number of seconds`);
  }
  return report;
}
