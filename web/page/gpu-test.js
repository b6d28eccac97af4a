// @ts-check
// Which kernels are fastest on the visitor's GPU, and whether all give the same: measured when asked for, kept for models that are opened later, and to be handed on.

import { tune } from '../src/worker.js';
import { copyBy } from './copy.js';
import { element, setText, tableRow } from './elements.js';
import { formatSeconds } from './format.js';

/** @typedef {import('../src/index.js').Tuning} Tuning */

export class GpuTest {
  #facts;
  #onFailure;
  /** Whether it may begin: something else on the GPU would be measured with it. */
  #isFree = false;
  #isRunning = false;
  #result = '';

  /**
   * @param {() => object} facts of this page and of the GPU, as far as they are known
   * @param {(file: File) => void} save
   * @param {(error: unknown) => void} onFailure
   */
  constructor(facts, save, onFailure) {
    this.#facts = facts;
    this.#onFailure = onFailure;
    element('gpu-run').addEventListener('click', () => this.#run());
    const copy = element('gpu-copy');
    copy.addEventListener('click', () => copyBy(copy, () => navigator.clipboard.writeText(this.#result)).catch(onFailure));
    element('gpu-save').addEventListener('click', () => save(new File([this.#result], 'wgvae-kernels.json', { type: 'application/json' })));
  }

  /** @param {boolean} isFree whether nothing is loaded, decoded or encoded */
  allow(isFree) {
    this.#isFree = isFree;
    this.#enable();
  }

  #enable() {
    element('gpu-run', HTMLButtonElement).disabled = !this.#isFree || this.#isRunning;
  }

  async #run() {
    this.#isRunning = true;
    this.#enable();
    setText('gpu-said', 'Measuring');
    try {
      this.#show(await tune({ onProgress: ({ done, total }) => setText('gpu-said', `Compiling shaders, ${done} of ${total}`) }));
    } catch (error) {
      setText('gpu-said', '');
      this.#onFailure(error);
    }
    this.#isRunning = false;
    this.#enable();
  }

  /** @param {Tuning} tuning */
  #show(tuning) {
    this.#result = `${JSON.stringify({ schema: 'wgvae-kernels', version: 1, ...this.#facts(), tuning }, undefined, 2)}\n`;
    const { kernels, trials, remembered } = tuning;
    const taken = JSON.stringify(kernels);
    const rows = trials.map((trial, index) => {
      const isTaken = JSON.stringify(trial.kernels) === taken;
      return [formatSeconds(trial.seconds), trial.same_bits ? 'yes' : 'no', isTaken ? 'yes' : '', index === 0 ? 'chosen by rules' : changes(trials[0].kernels, trial.kernels)];
    });
    const table = element('gpu-table', HTMLTableElement);
    table.replaceChildren(tableRow('th', ['time', 'same bits', 'taken', 'kernels']), ...rows.map((row) => tableRow('td', row)));
    const wrong = trials.filter((trial) => !trial.same_bits).length;
    const kept = remembered ? 'kept for models that are opened from now on' : 'not kept: this browser keeps no files here';
    setText('gpu-said', `${wrong === 0 ? `All ${trials.length} give the same bits` : `${wrong} of ${trials.length} give other bits`}; the fastest are ${kept}.`);
    for (const id of ['gpu-shown', 'gpu-copy', 'gpu-save']) element(id).hidden = false;
  }
}

/**
 * In what kernels are others than those of the rules.
 * @param {import('../src/index.js').Kernels} rules
 * @param {import('../src/index.js').Kernels} kernels
 */
function changes(rules, kernels) {
  const words = (/** @type {unknown} */ value) => JSON.stringify(value).replace(/["{}]/g, '').replace(/[:,]/g, ' ');
  const others = Object.entries(kernels).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(rules[name]));
  return others.map(([name, value]) => `${name.replaceAll('_', ' ')}: ${words(value)}`).join(', ');
}
