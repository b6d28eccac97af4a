// @ts-check
// Tests of the kernels on the visitor's GPU: measures the fastest and stores them for models opened
// later, checks that each computes the same as diffusers, and writes both results for a bug report.

import { selftest, tune } from '../src/worker.js';
import { copyBy } from './copy.js';
import { element, setText, tableRow } from './elements.js';
import { formatSeconds } from './format.js';
import { withHostWorker } from './host-worker.js';

/** @typedef {import('../src/index.js').Progress} Progress */
/** @typedef {import('../src/index.js').Tuning} Tuning */
/** @typedef {import('../src/index.js').Selftest} Selftest */
/** @typedef {import('../src/index.js').SelftestRow} SelftestRow */
/**
 * Files that the check decodes.
 * @typedef {{ model: string, config: string, reference: string }} Files
 */

/** Names of the element types for people. @type {Record<SelftestRow['elements'], string>} */
const ELEMENTS = { f32: 'f32', f16: 'f16', packed_f16: 'f16, packed in pairs', fast: 'fast' };

export class GpuTest {
  #facts;
  #onFailure;
  /** True if a test may begin: other work on the GPU would distort it. */
  #isFree = false;
  #isRunning = false;
  /** Results to copy or save. @type {{ tuning?: Tuning, selftest?: Selftest }} */
  #results = {};

  /**
   * @param {() => object} facts returns known facts about this page and the GPU
   * @param {Files} files
   * @param {(file: File) => void} save
   * @param {(error: unknown) => void} onFailure
   */
  constructor(facts, files, save, onFailure) {
    this.#facts = facts;
    this.#onFailure = onFailure;
    element('gpu-run').addEventListener('click', () => this.#run('gpu-said', () => this.#measure()));
    element('gpu-check').addEventListener('click', () => this.#run('gpu-check-said', () => this.#check(files)));
    const copy = element('gpu-copy');
    copy.addEventListener('click', () => copyBy(copy, () => navigator.clipboard.writeText(this.#text())).catch(onFailure));
    element('gpu-save').addEventListener('click', () => save(new File([this.#text()], 'wgvae-kernels.json', { type: 'application/json' })));
  }

  /** @param {boolean} isFree true if nothing is being loaded, decoded or encoded */
  allow(isFree) {
    this.#isFree = isFree;
    this.#enable();
  }

  #enable() {
    for (const id of ['gpu-run', 'gpu-check']) element(id, HTMLButtonElement).disabled = !this.#isFree || this.#isRunning;
  }

  /**
   * @param {string} said id of the element that shows the progress
   * @param {() => Promise<void>} test
   */
  async #run(said, test) {
    this.#isRunning = true;
    this.#enable();
    try {
      await test();
      for (const id of ['gpu-copy', 'gpu-save']) element(id).hidden = false;
    } catch (error) {
      setText(said, '');
      this.#onFailure(error);
    }
    this.#isRunning = false;
    this.#enable();
  }

  async #measure() {
    setText('gpu-said', 'Measuring');
    const onProgress = (/** @type {Progress} */ { done, total }) => setText('gpu-said', `Compiling shaders, ${done} of ${total}`);
    const tuning = await withHostWorker('kernels', (worker) => tune({ worker, onProgress }));
    this.#results.tuning = tuning;
    const { kernels, trials, remembered } = tuning;
    const taken = JSON.stringify(kernels);
    const rows = trials.map((trial, index) => {
      const isTaken = JSON.stringify(trial.kernels) === taken;
      return [formatSeconds(trial.seconds), yesOrNo(trial.same_bits), isTaken ? 'yes' : '', index === 0 ? 'chosen by rules' : changes(trials[0].kernels, trial.kernels)];
    });
    show('gpu-shown', 'gpu-table', ['time', 'same bits', 'taken', 'kernels'], rows);
    const wrong = trials.filter((trial) => !trial.same_bits).length;
    const kept = remembered ? 'kept for models opened from now on' : 'not kept: this browser stores no files';
    setText('gpu-said', `${wrong === 0 ? `All ${trials.length} give the same bits` : `${wrong} of ${trials.length} give other bits`}; the fastest are ${kept}.`);
  }

  /** @param {Files} files */
  async #check(files) {
    setText('gpu-check-said', 'Checking');
    const onProgress = (/** @type {Progress} */ { done, total }) => setText('gpu-check-said', `Checking, ${done} of ${total}`);
    const found = await withHostWorker('kernels', (worker) => selftest({ ...files, worker, onProgress }));
    this.#results.selftest = found;
    const rows = found.rows.map((row) => [
      row.right ? 'right' : 'WRONG', ELEMENTS[row.elements], `${row.error?.toExponential(1) ?? 'no number'} of ${row.most.toExponential(1)}`, yesOrNo(row.same_bits),
      formatSeconds(row.seconds), changes(found.rows[0].kernels, row.kernels) || 'of CPUs',
    ]);
    show('gpu-checked', 'gpu-check-table', ['', 'elements', 'error', 'same bits', 'time', 'kernels'], rows);
    const wrong = rows.filter(([verdict]) => verdict !== 'right').length;
    setText('gpu-check-said', wrong === 0 ? `All ${rows.length} agree with diffusers.` : `${wrong} of ${rows.length} are WRONG: please report the result.`);
  }

  #text() {
    return `${JSON.stringify({ schema: 'wgvae-kernels', version: 1, ...this.#facts(), ...this.#results }, undefined, 2)}\n`;
  }
}

/**
 * @param {string} region
 * @param {string} table
 * @param {string[]} head
 * @param {string[][]} rows
 */
function show(region, table, head, rows) {
  element(table, HTMLTableElement).replaceChildren(tableRow('th', head), ...rows.map((row) => tableRow('td', row)));
  element(region).hidden = false;
}

/** @param {boolean} is */
function yesOrNo(is) {
  return is ? 'yes' : 'no';
}

/**
 * Returns the differences of `kernels` from `some`, in words.
 * @param {import('../src/index.js').Kernels} some
 * @param {import('../src/index.js').Kernels} kernels
 */
function changes(some, kernels) {
  const words = (/** @type {unknown} */ value) => JSON.stringify(value).replace(/["{}]/g, '').replace(/[:,]/g, ' ');
  const before = new Map(Object.entries(some));
  const others = Object.entries(kernels).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before.get(name)));
  return others.map(([name, value]) => `${name.replaceAll('_', ' ')}: ${words(value)}`).join(', ');
}
