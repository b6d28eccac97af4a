// @ts-check
// What the page shows beside the picture: every text, and what buttons can be pressed.

import { explain } from './advice.js';
import { MemoryChart } from './chart.js';
import { formatBytes, formatSeconds } from './format.js';

/** @typedef {import('./protocol.js').FromWorker} FromWorker */
/** @typedef {import('./protocol.js').State} State */
/** @typedef {import('../src/index.js').Plan} Plan */

/** @type {Record<State, string>} */
const STATUS = {
  starting: 'Starting',
  idle: 'Choose a model and latents',
  loading: 'Loading the model',
  planning: 'Planning',
  ready: 'Ready to decode',
  decoding: 'Decoding',
  done: 'Done',
  failed: 'Stopped',
};

const BUSY = ['starting', 'loading', 'planning', 'decoding'];

/**
 * The page's element with this id.
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} [type]
 * @returns {T}
 */
export function element(id, type) {
  const found = document.getElementById(id);
  if (!found || (type && !(found instanceof type))) throw new Error(`the page has no ${type?.name ?? 'element'} "${id}"`);
  return /** @type {T} */ (found);
}

export class View {
  #chart = new MemoryChart(element('plan-chart'));
  /** @type {Plan | undefined} */
  #plan;
  /** Seconds of the last decode, for the status. @type {number | undefined} */
  #seconds;

  constructor() {
    // Made when it is looked at: a plan may have thousands of steps.
    element('plan-more').addEventListener('toggle', () => this.#fillTable());
  }

  /** @param {Exclude<FromWorker, { type: 'module' | 'outcome' | 'picture' }>} message */
  receive(message) {
    switch (message.type) {
      case 'state': return this.#state(message);
      case 'model': return this.#model(message);
      case 'latents': return this.#latents(message);
      case 'plan': return this.#showPlan(message.plan);
      case 'progress': return this.#progress(message.progress);
      case 'notice': return this.#notice(message.notice);
      case 'problem': return this.problem(message.problem);
      case 'cache': return this.#cache(message);
    }
  }

  /**
   * @param {Extract<FromWorker, { type: 'module' }>} module
   * @param {string | undefined} family the one that is asked for
   */
  module({ version, families }, family) {
    element('about').textContent = `wgvae ${version}`;
    const select = element('family', HTMLSelectElement);
    select.append(...families.map((name) => new Option(name, name, false, name === family)));
  }

  /** @param {import('./protocol.js').Settings} settings */
  settings({ precision, budget, family }) {
    const facts = [precision === 'auto' ? undefined : precision, budget === undefined ? undefined : `budget ${formatBytes(budget)}`, family];
    element('settings-facts').textContent = facts.filter(Boolean).join(', ');
  }

  /** @param {import('./protocol.js').Problem} problem */
  problem(problem) {
    const { title, message, advice } = explain(problem);
    element('problem-title').textContent = title;
    element('problem-message').textContent = `${message}.`.replace(/[.?!]\.$/, (end) => end[0]);
    element('problem-advice').replaceChildren(...advice.map(listItem));
    element('problem').hidden = false;
    if (problem.during === 'starting') setText('status', STATUS.failed);
    document.body.dataset.problem = problem.code;
  }

  clearProblem() {
    element('problem').hidden = true;
    delete document.body.dataset.problem;
  }

  /**
   * Takes notices away that are about something else than what comes now.
   * @param {'model' | 'decode'} next
   */
  clearNotices(next) {
    const lasting = next === 'decode' ? ['no-ranges', 'cache-full'] : [];
    for (const item of [...element('notices').children]) {
      if (item instanceof HTMLElement && !lasting.includes(item.dataset.code ?? '')) item.remove();
    }
  }

  /** @param {import('./protocol.js').Outcome} outcome */
  outcome({ report, info }) {
    this.#seconds = report.seconds;
    const isEqual = report.measured_peak_bytes === report.predicted_peak_bytes;
    const longest = Math.max(0, ...report.submissions.map((one) => one.seconds));
    fillParts('report-parts', [
      ['Time', formatSeconds(report.seconds)],
      ['Predicted peak', formatBytes(report.predicted_peak_bytes)],
      ['Measured peak', `${formatBytes(report.measured_peak_bytes)}${isEqual ? ', equal to the byte' : ''}`],
      ['Submissions', `${report.submissions.length}, the longest ${formatSeconds(longest)}`],
      ['Model loaded in', formatSeconds(info.load_seconds)],
      ['Shaders compiled', `${report.compiled} in ${formatSeconds(report.compile_seconds)}`],
      ['Stored as', info.storage],
      ['GPU', [info.adapter.name, info.adapter.driver].filter(Boolean).join(', ') || 'the browser does not say'],
    ]);
    element('report').hidden = false;
  }

  /** @param {Extract<FromWorker, { type: 'state' }>} message */
  #state({ state, canDecode }) {
    const isBusy = BUSY.includes(state);
    const focused = document.activeElement?.id;
    const [decode, cancel] = [element('decode', HTMLButtonElement), element('cancel', HTMLButtonElement)];
    decode.disabled = isBusy || !canDecode;
    cancel.disabled = !(state === 'loading' || state === 'decoding');
    // A button that is disabled loses the focus; whoever uses the keyboard goes on with the other.
    if (focused === 'decode' && decode.disabled && !cancel.disabled) cancel.focus();
    if (focused === 'cancel' && cancel.disabled && !decode.disabled) decode.focus();
    element('progress').hidden = !isBusy;
    element('step').hidden = !isBusy;
    if (state === 'loading' || state === 'decoding') this.#busy(state);
    if (state !== 'decoding') this.#chart.mark(0);
    setText('status', this.#status(state));
    document.body.dataset.state = state;
  }

  /** @param {State} state */
  #busy(state) {
    if (state !== document.body.dataset.state) {
      element('progress', HTMLProgressElement).removeAttribute('value');
      element('step').textContent = '';
    }
    this.clearProblem();
  }

  /** @param {State} state */
  #status(state) {
    const { width, height } = this.#plan?.result.size ?? {};
    const size = width ? `${width} × ${height}` : '';
    if (state === 'ready' && this.#plan) return `Ready to decode ${size} pixels`;
    if (state === 'decoding') return `Decoding ${size} pixels`;
    if (state === 'done' && this.#seconds !== undefined) return `Decoded ${size} pixels in ${formatSeconds(this.#seconds)}`;
    return STATUS[state];
  }

  /** @param {Extract<FromWorker, { type: 'model' }>} message */
  #model({ name, info }) {
    setText('model-name', name);
    const facts = info && [
      `${(info.parameters.decoder / 1e6).toFixed(1)} M weights in the decoder`,
      `${info.latent_channels} channels`,
      info.storage,
    ];
    setText('model-facts', facts?.join(', ') ?? '');
  }

  /** @param {Extract<FromWorker, { type: 'latents' }>} message */
  #latents({ name, shape }) {
    setText('latents-name', name);
    setText('latents-facts', shape ? shape.join(' × ') : '');
    const count = shape?.length === 4 ? shape[0] : 1;
    element('index-row').hidden = count < 2;
    element('index', HTMLInputElement).max = String(count);
    element('index', HTMLInputElement).value = '1';
    setText('index-count', `of ${count}`);
  }

  /** @param {Plan | undefined} plan */
  #showPlan(plan) {
    this.#plan = plan;
    element('plan').hidden = !plan;
    if (!plan) return;
    setText('plan-peak', formatBytes(plan.predicted_peak_bytes));
    setText('plan-binding', formatBytes(plan.largest_binding_bytes));
    setText('plan-submissions', `about ${plan.submissions}`);
    this.#chart.show(plan);
    this.#fillTable();
  }

  #fillTable() {
    const plan = this.#plan;
    if (!plan || !element('plan-more', HTMLDetailsElement).open) return;
    fillParts('plan-parts', [
      ['Weights', formatBytes(plan.weight_bytes)],
      ['Activations and scratch', formatBytes(plan.slot_bytes)],
      ['Parameters', formatBytes(plan.parameter_bytes)],
      ['Staging', formatBytes(plan.staging_bytes)],
      ['Left in the computer\'s memory', formatBytes(plan.host_bytes)],
      ['Moved for that', formatBytes(plan.transferred_bytes)],
      ['Steps', plan.steps.toLocaleString('en')],
      ['Work', `${(plan.macs / 1e9).toPrecision(3)} G multiply-adds`],
    ]);
    element('plan-table', HTMLTableElement).replaceChildren(...stageRows(plan));
  }

  /** @param {import('./protocol.js').Progress} progress */
  #progress({ phase, done, total, step }) {
    const bar = element('progress', HTMLProgressElement);
    if (total > 0) bar.value = done / total;
    else bar.removeAttribute('value');
    const amount = phase === 'load' ? `${formatBytes(done)} of ${formatBytes(total)}` : `step ${done} of ${total}`;
    setText('step', total > 0 ? `${step}, ${amount}` : step);
    if (phase === 'decode') this.#chart.mark(done);
  }

  /** @param {import('./protocol.js').Notice} notice */
  #notice({ code, message }) {
    const item = listItem(message.charAt(0).toUpperCase() + message.slice(1));
    item.dataset.code = code;
    element('notices').append(item);
  }

  /** @param {Extract<FromWorker, { type: 'cache' }>} usage */
  #cache({ bytes, entries }) {
    setText('cache-size', entries === 0 ? 'nothing' : formatBytes(bytes));
    element('cache-clear', HTMLButtonElement).disabled = entries === 0;
  }
}

/**
 * A row for each stage of the plan, in order.
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

/**
 * @param {'td' | 'th'} tag
 * @param {string[]} texts
 */
export function tableRow(tag, texts) {
  const row = document.createElement('tr');
  row.append(...texts.map((text) => Object.assign(document.createElement(tag), { textContent: text })));
  return row;
}

/**
 * @param {string} id
 * @param {[string, string][]} parts
 */
function fillParts(id, parts) {
  const pairs = parts.map(([name, value]) => {
    const pair = document.createElement('div');
    pair.append(Object.assign(document.createElement('dt'), { textContent: name }), Object.assign(document.createElement('dd'), { textContent: value }));
    return pair;
  });
  element(id).replaceChildren(...pairs);
}

/**
 * Sets a text only if it is another: whatever is read aloud is read once.
 * @param {string} id
 * @param {string} text
 */
function setText(id, text) {
  const target = element(id);
  if (target.textContent !== text) target.textContent = text;
}

/** @param {string} text */
function listItem(text) {
  return Object.assign(document.createElement('li'), { textContent: text });
}
