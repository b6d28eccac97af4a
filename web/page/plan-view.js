// @ts-check
// The plan on the page, before and during the work: every step of a picture, or the memory of a
// clip, which does not depend on its number of parts.

import { MemoryChart } from './chart.js';
import { element, fillParts, setText, tableRow } from './elements.js';
import { formatBytes } from './format.js';

/** @typedef {import('../src/index.js').Plan} Plan */

export class PlanView {
  #chart = new MemoryChart(element('plan-chart'));
  /** @type {import('./news.js').Plans} */
  #plans = [];
  /** Index of the shown plan. */
  #current = 0;

  constructor() {
    // Built when it is opened, because a plan may have thousands of steps.
    element('advanced').addEventListener('toggle', () => this.#fillTable());
  }

  /** @param {import('./news.js').Plans} plans */
  show(plans) {
    this.#plans = plans;
    element('plan').hidden = plans.length === 0;
    const isClip = plans[0]?.frames !== undefined;
    for (const id of ['plan-chart', 'plan-legend']) element(id).hidden = isClip;
    element('plan-more').hidden = isClip || plans.length === 0;
    if (plans.length > 0) this.showOf(plans[0].operation);
  }

  /** @param {import('./news.js').Operation} operation */
  showOf(operation) {
    this.#current = Math.max(0, this.#plans.findIndex((planned) => planned.operation === operation));
    const planned = this.#plans[this.#current];
    if (!planned) return;
    const peaks = this.#plans.map(({ operation, plan }) => `${formatBytes(plan.predicted_peak_bytes)} to ${operation}`);
    const peak = formatBytes(Math.max(...this.#plans.map(({ plan }) => plan.predicted_peak_bytes)));
    if (planned.frames !== undefined) {
      const length = planned.frames === 1 ? 'For clips of one frame' : `For clips of up to ${planned.frames} frames`;
      setText('plan-of', peaks.length > 1 ? `${length}: ${peaks.join(', ')}` : `${length}.`);
      const most = (/** @type {'state_bytes' | 'host_bytes'} */ part) => formatBytes(Math.max(...this.#plans.map((each) => (each.frames === undefined ? 0 : each.plan[part]))));
      const [states, host] = [most('state_bytes'), most('host_bytes')];
      fillParts('plan-figures', [['Peak memory', peak], ['Kept for later frames', states], ['In the computer\'s memory', host]]);
      return;
    }
    const { plan } = planned;
    setText('plan-of', peaks.length > 1 ? `${peaks.join(', ')}; the chart shows the ${operation}` : '');
    fillParts('plan-figures', [['Peak memory', peak], ['Weights', formatBytes(plan.weight_bytes)], ['Multiply-adds', `${(plan.macs / 1e9).toPrecision(3)} G`]]);
    this.#chart.show(plan);
    this.#fillTable();
  }

  /** Shows the number of finished steps. @param {number} done */
  mark(done) {
    this.#chart.mark(done);
  }

  #fillTable() {
    const planned = this.#plans[this.#current];
    if (!planned || planned.frames !== undefined || !element('advanced', HTMLDetailsElement).open) return;
    const { plan } = planned;
    fillParts('plan-parts', [
      ['Largest binding', formatBytes(plan.largest_binding_bytes)],
      ['Submissions', `about ${plan.submissions}`],
      ['Activations and scratch', formatBytes(plan.slot_bytes)],
      ['Parameters', formatBytes(plan.parameter_bytes)],
      ['Staging', formatBytes(plan.staging_bytes)],
      ['Left in the computer\'s memory', formatBytes(plan.host_bytes)],
      ['Transferred', formatBytes(plan.transferred_bytes)],
      ['Steps', plan.steps.toLocaleString('en')],
    ]);
    element('plan-table', HTMLTableElement).replaceChildren(...stageRows(plan));
  }
}

/**
 * Returns a row for each stage of the plan, in order.
 * @param {Plan} plan
 */
function stageRows({ timeline }) {
  /** @type {Map<string, { steps: number, macs: number, live: number }>} */
  const stages = new Map();
  for (const { stage, steps, macs, live_bytes } of timeline) {
    const sum = stages.get(stage) ?? { steps: 0, macs: 0, live: 0 };
    stages.set(stage, { steps: sum.steps + steps, macs: sum.macs + macs, live: Math.max(sum.live, live_bytes) });
  }
  const head = tableRow('th', ['stage', 'steps', 'G multiply-adds', 'activations']);
  const rows = [...stages].map(([stage, { steps, macs, live }]) => tableRow('td', [stage, `${steps}`, (macs / 1e9).toFixed(2), formatBytes(live)]));
  return [head, ...rows];
}
