// @ts-check
// Everything that the page shows beside the picture: texts, and the state of the buttons.

import { explain, isWithoutGpu } from './advice.js';
import { Bar } from './bar.js';
import { element, fillParts, foldedText, listItem, setText } from './elements.js';
import { formatBytes, formatCount, formatLeft, formatSeconds } from './format.js';
import { PlanView } from './plan-view.js';

/** @typedef {import('./news.js').News} News */
/** @typedef {import('./news.js').State} State */

/** @type {Record<State, string>} */
const STATUS = {
  starting: 'Starting',
  idle: 'Nothing to do yet',
  loading: 'Loading the model',
  asking: 'Waiting for your answer',
  planning: 'Planning',
  ready: 'Ready to decode',
  encoding: 'Encoding',
  decoding: 'Decoding',
  done: 'Done',
  failed: 'Failed',
};

const BUSY = ['starting', 'loading', 'planning', 'encoding', 'decoding'];

/** States that can be stopped. */
const STOPPABLE = ['loading', 'encoding', 'decoding'];

export class View {
  #plan = new PlanView();
  #bar = new Bar();
  /** Kinds of files that are open. */
  #has = { model: false, input: false };
  /** @type {import('./news.js').Plans} */
  #plans = [];
  /** Time of the last operation for the status, seconds. @type {number | undefined} */
  #seconds;
  /** Memory of the last operation, in words. */
  #peak = '';

  /**
   * @param {Exclude<News, { type: 'module' | 'latents' | 'outcomes' | 'original' | 'picture' |
   * 'preview' | 'clip' | 'frame' | 'comparison' }>} message
   */
  receive(message) {
    switch (message.type) {
      case 'state': return this.#state(message);
      case 'work': return message.continues ? this.#bar.expect(message.stages) : this.#bar.begin(message.stages);
      case 'chosen': return this.#chosen(message);
      case 'stopping': return setText('status', 'Stopping');
      case 'model': return this.#model(message);
      case 'input': return this.#input(message);
      case 'ask': return this.#ask(message);
      case 'plans': return this.#showPlans(message.plans);
      case 'progress': return this.#progress(message.progress);
      case 'notice': return this.#notice(message.notice);
      case 'problem': return this.problem(message.problem);
      case 'clip-outcomes': return this.#clipOutcomes(message);
      case 'cache': return this.#cache(message);
    }
  }

  /**
   * @param {Extract<News, { type: 'module' }>} module
   * @param {string | undefined} family the chosen one
   */
  module({ version, families }, family) {
    element('about').textContent = `wgvae ${version}`;
    const select = element('family', HTMLSelectElement);
    select.append(...families.map((name) => new Option(name, name, false, name === family)));
  }

  /** @param {import('./news.js').Settings} settings */
  settings({ precision, budget, family }) {
    const facts = [precision === 'auto' ? undefined : precision, budget === undefined ? undefined : `budget ${formatBytes(budget)}`, family];
    element('settings-facts').textContent = facts.filter(Boolean).join(', ');
  }

  /** @param {import('./news.js').Problem} problem */
  problem(problem) {
    const { title, message, code, advice } = explain(problem);
    element('problem-title').textContent = title;
    element('problem-message').textContent = code ? `${message}:` : ended(message);
    element('problem-lines').textContent = code;
    element('problem-code').hidden = code === '';
    element('problem-also').textContent = problem.also ? `And: ${ended(problem.also)}` : '';
    element('problem-advice').replaceChildren(...advice.map(listItem));
    element('problem-unscaled').hidden = problem.offer !== 'unscaled';
    const box = element('problem');
    box.hidden = false;
    if (document.body.dataset.state === 'failed') setText('status', title);
    document.body.dataset.problem = problem.code;
    if (isWithoutGpu(problem.code)) showWithoutGpu();
    // The advice names them.
    if (problem.code === 'input' && problem.ofDemo) element('known-models', HTMLDetailsElement).open = true;
    box.scrollIntoView({ block: 'nearest' });
  }

  clearProblem() {
    element('problem').hidden = true;
    delete document.body.dataset.problem;
  }

  /**
   * Removes notices that do not concern the next operation.
   * @param {'model' | 'decode'} next
   */
  clearNotices(next) {
    const lasting = next === 'decode' ? ['no-ranges', 'cache-full'] : [];
    for (const item of [...element('notices').children]) {
      if (item instanceof HTMLElement && !lasting.includes(item.dataset.code ?? '')) item.remove();
    }
  }

  /** @param {import('./news.js').Outcome[]} outcomes results in order */
  outcomes(outcomes) {
    this.#seconds = outcomes.reduce((sum, { report }) => sum + report.seconds, 0);
    const [last] = outcomes.slice(-1);
    this.#report(outcomes.map(({ report }) => figuresOf(report)), last.info);
    element('export-row').hidden = false;
  }

  /** Notes that a comparison was made, which shows its own figures. */
  compared() {
    this.#seconds = undefined;
    this.#peak = '';
  }

  /** @param {Extract<News, { type: 'clip-outcomes' }>} message */
  #clipOutcomes({ outcomes, info }) {
    this.#seconds = outcomes.reduce((sum, { seconds }) => sum + seconds, 0);
    this.#report(outcomes, info);
  }

  /**
   * Shows the results of operations in order.
   * @param {Figures[]} figures
   * @param {import('./news.js').ModelInfo} info
   */
  #report(figures, info) {
    const measured = Math.max(...figures.map((one) => one.measured));
    const predicted = Math.max(...figures.map((one) => one.predicted));
    this.#peak = `${formatBytes(measured)} of memory at the peak${measured === predicted ? ', as predicted' : ''}`;
    const { main, more } = partsOf(figures);
    fillParts('report-more-parts', more);
    element('report-more').hidden = false;
    fillParts('report-parts', [
      ...main,
      ['Model loaded in', formatSeconds(info.load_seconds)],
      ['Stored as', info.storage],
      [isOnCpu(info) ? 'Device' : 'GPU', [info.adapter.name, info.adapter.driver].filter(Boolean).join(', ') || 'the browser does not say'],
    ]);
    element('report').hidden = false;
  }

  /** @param {Extract<News, { type: 'state' }>} message */
  #state({ state, canDecode }) {
    const isBusy = BUSY.includes(state);
    const focused = document.activeElement?.id;
    const [decode, cancel] = [element('decode', HTMLButtonElement), element('cancel', HTMLButtonElement)];
    decode.disabled = isBusy || !canDecode;
    element('tiles-compare', HTMLButtonElement).disabled = decode.disabled || this.#plans.length !== 1 || this.#plans[0].frames !== undefined;
    cancel.disabled = !STOPPABLE.includes(state);
    // A disabled button loses the focus: keyboard users continue with the other button.
    if (focused === 'decode' && decode.disabled && !cancel.disabled) cancel.focus();
    if (focused === 'cancel' && cancel.disabled && !decode.disabled) decode.focus();
    if (state !== 'asking') element('ask', HTMLDialogElement).close();
    this.#bar.show(isBusy);
    element('step-more').hidden = !isBusy;
    setText('step', '');
    setText('phase', state === 'done' ? this.#peak : '');
    if (STOPPABLE.includes(state)) this.clearProblem();
    if (state === 'encoding' || state === 'decoding') this.#plan.showOf(state === 'encoding' ? 'encode' : 'decode');
    else this.#plan.mark(0);
    setText('status', this.#status(state));
    document.body.dataset.state = state;
  }

  /**
   * Announces a choice, which is taken up when the work in progress has stopped.
   * @param {Extract<News, { type: 'chosen' }>} message
   */
  #chosen({ name, stops }) {
    this.clearProblem();
    const [next, now] = name === undefined ? ['apply the settings', 'Applying the settings'] : [`open ${name}`, `Opening ${name}`];
    setText('status', stops ? `Stopping ${stops} to ${next}` : now);
    for (const id of ['phase', 'step']) setText(id, '');
  }

  /** @param {State} state */
  #status(state) {
    const planned = this.#plans.at(-1);
    const missing = [this.#has.model ? '' : 'a model', this.#has.input ? '' : 'latents, a picture or a video'].filter(Boolean);
    if (state === 'idle' && missing.length > 0) return `Choose ${missing.join(', and ')}`;
    if (!planned) return STATUS[state];
    const isRoundTrip = this.#plans.length > 1;
    const { width, height } = planned.frames === undefined ? planned.plan.result.size : planned.plan;
    const pixels = `${planned.frames === undefined ? '' : `${formatCount(planned.frames, 'frame')} of `}${width} × ${height} pixels`;
    if (state === 'ready') return `Ready to ${isRoundTrip ? 'encode and decode' : 'decode'} ${pixels}`;
    if (state === 'encoding' || state === 'decoding') return `${STATUS[state]} ${pixels}`;
    if (state === 'done' && this.#seconds !== undefined) return `${isRoundTrip ? 'Encoded and decoded' : 'Decoded'} ${pixels} in ${formatSeconds(this.#seconds)}`;
    return STATUS[state];
  }

  /** @param {Extract<News, { type: 'model' }>} message */
  #model({ name, info }) {
    setText('model-name', name);
    this.#has.model = name !== 'None';
    const millions = (/** @type {number} */ count) => (count / 1e6).toFixed(1);
    const encoder = info?.parameters.encoder ? `${millions(info.parameters.encoder)} M in its encoder` : 'no encoder';
    const facts = info && [
      `${millions(info.parameters.decoder)} M weights in the decoder, ${encoder}`,
      `${info.latent_channels} channels`,
      info.storage,
    ];
    setText('model-facts', facts?.join(', ') ?? '');
    document.body.dataset.device = info && isOnCpu(info) ? 'cpu' : 'gpu';
    document.body.toggleAttribute('data-opacity', info?.out_channels === 4);
    // A model that is open decodes, on a GPU or on the CPU.
    if (info) delete document.body.dataset.gpu;
  }

  /** @param {Extract<News, { type: 'input' }>} message */
  #input({ name, shape, size, frames, index, isDemo }) {
    setText('input-name', name);
    this.#has.input = name !== 'None';
    document.body.toggleAttribute('data-demo', Boolean(isDemo));
    const count = frames === undefined ? '' : `${formatCount(frames, 'frame')} of `;
    setText('input-facts', shape?.join(' × ') ?? (size ? `${count}${size.width} × ${size.height} pixels` : ''));
    const pictures = shape?.length === 4 ? shape[0] : 1;
    element('index-row').hidden = pictures < 2;
    element('index', HTMLInputElement).max = String(pictures);
    if (index !== undefined) element('index', HTMLInputElement).value = String(index + 1);
    setText('index-count', `of ${pictures}`);
  }

  /** @param {Extract<News, { type: 'ask' }>} message */
  #ask({ name, bytes }) {
    const dialog = element('ask', HTMLDialogElement);
    setText('ask-text', `${name}: ${formatBytes(bytes)} will be downloaded once, and then cached.`);
    dialog.returnValue = '';
    dialog.showModal();
  }

  /** @param {import('./news.js').Plans} plans */
  #showPlans(plans) {
    this.#plans = plans;
    setText('decode', plans.length > 1 ? 'Encode and decode' : 'Decode');
    this.#plan.show(plans);
  }

  /** @param {import('./news.js').Progress} progress */
  #progress({ phase, done, total, step, parts = { done: 0, total: 1 } }) {
    const left = total > 0 && phase !== 'selftest' ? this.#bar.move(phase, (parts.done + done / total) / parts.total) : undefined;
    const words = [
      phase === 'compile' && 'preparing the GPU',
      phase === 'load' && total > 0 && `${formatBytes(done)} of ${formatBytes(total)}`,
      parts.total > 1 && `part ${parts.done + 1} of ${parts.total}`,
      left !== undefined && formatLeft(left),
    ];
    const line = words.filter(Boolean).join(', ');
    setText('phase', line.charAt(0).toUpperCase() + line.slice(1));
    if (phase === 'compile') setText('step', `Compiling shaders, ${done} of ${total}`);
    else setText('step', phase === 'load' || total === 0 ? step : `${step}, step ${done} of ${total}`);
    if (phase === 'decode' || phase === 'encode') this.#plan.mark(done);
  }

  /** @param {import('./news.js').Notice} notice */
  #notice({ code, message }) {
    const sentence = message.charAt(0).toUpperCase() + message.slice(1);
    const item = listItem(code === 'cpu' ? '' : sentence);
    // Nothing is wrong: one quiet line, and the reason for those who ask.
    if (code === 'cpu') item.append(foldedText('WebGPU is not available here, so the CPU computes', `${sentence}.`));
    item.dataset.code = code;
    element('notices').append(item);
    if (code === 'cache-failed') setText('cache-size', 'unknown');
  }

  /** @param {Extract<News, { type: 'cache' }>} usage */
  #cache({ bytes, entries }) {
    setText('cache-size', entries === 0 ? 'nothing' : formatBytes(bytes));
    element('cache-clear', HTMLButtonElement).disabled = entries === 0;
  }
}

/** True if the model computes on the CPU. @param {import('./news.js').ModelInfo} info */
function isOnCpu({ adapter }) {
  return adapter.limits.kind === 'host';
}

/** Shows what the page offers without a GPU: the demo's picture, and plans. */
function showWithoutGpu() {
  document.body.dataset.gpu = 'none';
  const still = element('still-picture', HTMLImageElement);
  if (!still.src) still.src = still.dataset.src ?? '';
}

/** Ends a sentence with a full stop unless it has an end. @param {string} message */
function ended(message) {
  return `${message}.`.replace(/[.?!]\.$/, (end) => end[0]);
}

/** @typedef {Omit<import('./news.js').ClipOutcome, 'operation' | 'frames'>} Figures */

/**
 * @param {import('./news.js').Report} report
 * @returns {Figures}
 */
function figuresOf({ predicted_peak_bytes: predicted, measured_peak_bytes: measured, seconds, submissions, compiled, compile_seconds: compileSeconds }) {
  return { predicted, measured, seconds, submissions: submissions.length, longest: Math.max(0, ...submissions.map((one) => one.seconds)), compiled, compileSeconds };
}

/**
 * Returns the values of operations in order, joined for each name: what most want to know, and
 * more.
 * @param {Figures[]} figures
 * @returns {{ main: [string, string][], more: [string, string][] }}
 */
function partsOf(figures) {
  const each = (/** @type {(one: Figures) => string} */ show) => figures.map(show).join(', then ');
  const isEqual = figures.every(({ measured, predicted }) => measured === predicted);
  const longest = Math.max(...figures.map((one) => one.longest));
  return {
    main: [
      ['Time', each(({ seconds }) => formatSeconds(seconds))],
      ['Predicted peak', each(({ predicted }) => formatBytes(predicted))],
      ['Measured peak', `${each(({ measured }) => formatBytes(measured))}${isEqual ? ', equal to the byte' : ''}`],
    ],
    more: [
      ['Submissions', `${each(({ submissions }) => String(submissions))}, the longest ${formatSeconds(longest)}`],
      ['Shaders compiled', each(({ compiled, compileSeconds }) => `${compiled} in ${formatSeconds(compileSeconds)}`)],
    ],
  };
}
