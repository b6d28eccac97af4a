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
  idle: 'Choose a model, and latents or a picture',
  loading: 'Loading the model',
  planning: 'Planning',
  ready: 'Ready to decode',
  encoding: 'Encoding',
  decoding: 'Decoding',
  done: 'Done',
  failed: 'Stopped',
};

const BUSY = ['starting', 'loading', 'planning', 'encoding', 'decoding'];

/** Those that can be stopped. */
const STOPPABLE = ['loading', 'encoding', 'decoding'];

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
  /** @type {import('./protocol.js').Plans} */
  #plans = [];
  /** Which of them is shown. */
  #current = 0;
  /** Seconds of what was done last, for the status. @type {number | undefined} */
  #seconds;

  constructor() {
    // Made when it is looked at: a plan may have thousands of steps.
    element('plan-more').addEventListener('toggle', () => this.#fillTable());
  }

  /** @param {Exclude<FromWorker, { type: 'module' | 'outcomes' | 'original' | 'picture' }>} message */
  receive(message) {
    switch (message.type) {
      case 'state': return this.#state(message);
      case 'model': return this.#model(message);
      case 'input': return this.#input(message);
      case 'plans': return this.#showPlans(message.plans);
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

  /** @param {import('./protocol.js').Outcome[]} outcomes of what was done, in order */
  outcomes(outcomes) {
    this.#seconds = outcomes.reduce((sum, { report }) => sum + report.seconds, 0);
    const [last] = outcomes.slice(-1);
    const { info } = last;
    fillParts('report-parts', [
      ...partsOf(outcomes.map(({ report }) => report)),
      ['Model loaded in', formatSeconds(info.load_seconds)],
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
    cancel.disabled = !STOPPABLE.includes(state);
    // A button that is disabled loses the focus; whoever uses the keyboard goes on with the other.
    if (focused === 'decode' && decode.disabled && !cancel.disabled) cancel.focus();
    if (focused === 'cancel' && cancel.disabled && !decode.disabled) decode.focus();
    element('progress').hidden = !isBusy;
    element('step').hidden = !isBusy;
    if (STOPPABLE.includes(state)) this.#busy(state);
    if (state === 'encoding' || state === 'decoding') this.#showPlanOf(state === 'encoding' ? 'encode' : 'decode');
    else this.#chart.mark(0);
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
    const { width, height } = this.#plans.at(-1)?.plan.result.size ?? {};
    if (!width) return STATUS[state];
    const isRoundTrip = this.#plans.length > 1;
    const pixels = `${width} × ${height} pixels`;
    if (state === 'ready') return `Ready to ${isRoundTrip ? 'encode and decode' : 'decode'} ${pixels}`;
    if (state === 'encoding' || state === 'decoding') return `${STATUS[state]} ${pixels}`;
    if (state === 'done' && this.#seconds !== undefined) return `${isRoundTrip ? 'Encoded and decoded' : 'Decoded'} ${pixels} in ${formatSeconds(this.#seconds)}`;
    return STATUS[state];
  }

  /** @param {Extract<FromWorker, { type: 'model' }>} message */
  #model({ name, info }) {
    setText('model-name', name);
    const millions = (/** @type {number} */ count) => (count / 1e6).toFixed(1);
    const encoder = info?.parameters.encoder ? `${millions(info.parameters.encoder)} M in its encoder` : 'no encoder';
    const facts = info && [
      `${millions(info.parameters.decoder)} M weights in the decoder, ${encoder}`,
      `${info.latent_channels} channels`,
      info.storage,
    ];
    setText('model-facts', facts?.join(', ') ?? '');
  }

  /** @param {Extract<FromWorker, { type: 'input' }>} message */
  #input({ name, shape, size }) {
    setText('input-name', name);
    setText('input-facts', shape?.join(' × ') ?? (size ? `${size.width} × ${size.height} pixels` : ''));
    const count = shape?.length === 4 ? shape[0] : 1;
    element('index-row').hidden = count < 2;
    element('index', HTMLInputElement).max = String(count);
    element('index', HTMLInputElement).value = '1';
    setText('index-count', `of ${count}`);
  }

  /** @param {import('./protocol.js').Plans} plans */
  #showPlans(plans) {
    this.#plans = plans;
    setText('decode', plans.length > 1 ? 'Encode and decode' : 'Decode');
    element('plan').hidden = plans.length === 0;
    if (plans.length > 0) this.#showPlanOf(plans[0].operation);
  }

  /** @param {import('./protocol.js').Operation} operation */
  #showPlanOf(operation) {
    this.#current = Math.max(0, this.#plans.findIndex((planned) => planned.operation === operation));
    const plan = this.#plan;
    if (!plan) return;
    const peaks = this.#plans.map(({ operation, plan }) => `${formatBytes(plan.predicted_peak_bytes)} to ${operation}`);
    setText('plan-of', peaks.length > 1 ? `${peaks.join(', ')}; the chart shows how to ${operation}` : '');
    setText('plan-peak', formatBytes(Math.max(...this.#plans.map(({ plan }) => plan.predicted_peak_bytes))));
    setText('plan-binding', formatBytes(plan.largest_binding_bytes));
    setText('plan-submissions', `about ${plan.submissions}`);
    this.#chart.show(plan);
    this.#fillTable();
  }

  /** The one that is shown. */
  get #plan() {
    return this.#plans[this.#current]?.plan;
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
    if (phase !== 'load') this.#chart.mark(done);
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
 * What was done one after the other, each value in that order.
 * @param {import('./protocol.js').Report[]} reports
 * @returns {[string, string][]}
 */
function partsOf(reports) {
  const each = (/** @type {(report: import('./protocol.js').Report) => string} */ show) => reports.map(show).join(', then ');
  const isEqual = reports.every((report) => report.measured_peak_bytes === report.predicted_peak_bytes);
  const longest = Math.max(0, ...reports.flatMap(({ submissions }) => submissions.map((one) => one.seconds)));
  return [
    ['Time', each((report) => formatSeconds(report.seconds))],
    ['Predicted peak', each((report) => formatBytes(report.predicted_peak_bytes))],
    ['Measured peak', `${each((report) => formatBytes(report.measured_peak_bytes))}${isEqual ? ', equal to the byte' : ''}`],
    ['Submissions', `${each((report) => String(report.submissions.length))}, the longest ${formatSeconds(longest)}`],
    ['Shaders compiled', each((report) => `${report.compiled} in ${formatSeconds(report.compile_seconds)}`)],
  ];
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
