// @ts-check
// Chart of GPU memory over the steps of a plan: weights at the bottom, live activations on top of
// them, and the peak as a line. A second plan may be drawn behind it for comparison.

import { drawing, svg, ticks } from '../../crates/memory-report/src/view/svg.js';
import { formatBytes } from './format.js';

/** @typedef {import('../src/index.js').Plan} Plan */
/**
 * @typedef {{ width: number, height: number, left: number, right: number, top: number, bottom:
 * number }} Frame lengths in pixels; the four sides are margins
 */

const HEIGHT = 220;

/** A chart that is redrawn for another plan or width, and marks the progress of a decode. */
export class MemoryChart {
  #host;
  #id;
  /** @type {Plan | undefined} */
  #plan;
  /** @type {Plan | undefined} */
  #other;
  #done = 0;
  /** @type {SVGElement | undefined} */
  #cursor;
  #width = 0;

  /**
   * @param {HTMLElement} host
   * @param {string} [id] prefix of the ids of the drawing's elements
   */
  constructor(host, id = 'memory-chart') {
    this.#host = host;
    this.#id = id;
    new ResizeObserver(() => this.#draw()).observe(host);
  }

  /**
   * @param {Plan} plan
   * @param {Plan} [other] plan to draw behind it, which takes at least as much memory
   */
  show(plan, other) {
    this.#plan = plan;
    this.#other = other;
    this.#done = 0;
    this.#width = 0;
    this.#draw();
  }

  /** @param {number} done finished steps; 0 hides the mark */
  mark(done) {
    this.#done = done;
    this.#moveCursor();
  }

  #draw() {
    const width = Math.round(this.#host.clientWidth);
    if (!this.#plan || width < 50 || width === this.#width) return;
    this.#width = width;
    const { element, cursor } = draw(this.#plan, this.#other, this.#id, this.#frame());
    this.#cursor = cursor;
    this.#host.replaceChildren(element);
    this.#moveCursor();
  }

  #moveCursor() {
    if (!this.#cursor || !this.#plan) return;
    const frame = this.#frame();
    // A decode that fell back runs another plan, with more steps than the chart.
    const part = Math.min(this.#done / this.#plan.steps, 1);
    const x = frame.left + part * (frame.width - frame.left - frame.right);
    this.#cursor.setAttribute('transform', `translate(${x.toFixed(1)} 0)`);
    this.#cursor.setAttribute('visibility', this.#done > 0 ? 'visible' : 'hidden');
  }

  /** @returns {Frame} */
  #frame() {
    return { width: this.#width, height: HEIGHT, left: 54, right: 10, top: 22, bottom: 38 };
  }
}

/**
 * @param {Plan} plan
 * @param {Plan | undefined} other
 * @param {string} id
 * @param {Frame} frame
 */
function draw(plan, other, id, frame) {
  const most = (other ?? plan).predicted_peak_bytes * 1.06;
  const [plotWidth, plotHeight] = [frame.width - frame.left - frame.right, frame.height - frame.top - frame.bottom];
  /** @param {number} step */
  const x = (step) => frame.left + (step / plan.steps) * plotWidth;
  /** Scales a step of the other plan, which has another number of steps. @param {number} step */
  const otherX = (step) => x((step * plan.steps) / (other?.steps ?? 1));
  /** @param {number} bytes */
  const y = (bytes) => frame.top + plotHeight * (1 - bytes / most);
  const weights = plan.weight_bytes;
  const cursor = svg('line', { class: 'cursor', x1: 0, x2: 0, y1: frame.top, y2: y(0) });
  const element = drawing(
    {
      width: frame.width,
      height: frame.height,
      id,
      title: 'GPU memory over the steps of the plan',
      description: describe(plan),
    },
    [
      ...bytesAxis(most, frame, y),
      ...stepsAxis(plan.steps, frame, x, y(0)),
      ...(other && other !== plan ? [svg('path', { class: 'other', d: outline(other, otherX, y) })] : []),
      svg('path', { class: 'live', d: outline(plan, x, y) }),
      svg('rect', { class: 'weights', x: x(0), y: y(weights), width: plotWidth, height: Math.max(y(0) - y(weights), 0) }),
      cursor,
      svg('line', { class: 'peak', x1: x(0), x2: x(plan.steps), y1: y(plan.predicted_peak_bytes), y2: y(plan.predicted_peak_bytes) }),
      svg('text', { class: 'peak-label', x: x(plan.steps), y: y(plan.predicted_peak_bytes) - 6, 'text-anchor': 'end' }, [
        `peak ${formatBytes(plan.predicted_peak_bytes)}`,
      ]),
    ],
  );
  return { element, cursor };
}

/**
 * Returns the outline of live activations above the weights, one stair for each run of steps.
 * @param {Plan} plan
 * @param {(step: number) => number} x
 * @param {(bytes: number) => number} y
 */
function outline({ timeline, weight_bytes, steps }, x, y) {
  const path = [`M${x(0).toFixed(1)} ${y(weight_bytes).toFixed(1)}`];
  let step = 0;
  for (const run of timeline) {
    const top = y(weight_bytes + run.live_bytes).toFixed(1);
    path.push(`L${x(step).toFixed(1)} ${top}`);
    step += run.steps;
    path.push(`L${x(step).toFixed(1)} ${top}`);
  }
  path.push(`L${x(steps).toFixed(1)} ${y(weight_bytes).toFixed(1)}Z`);
  return path.join('');
}

/**
 * @param {number} most
 * @param {Frame} frame
 * @param {(bytes: number) => number} y
 */
function bytesAxis(most, frame, y) {
  const unit = 2 ** (10 * Math.floor(Math.log2(most / 2) / 10));
  const [name] = formatBytes(unit).split(' ').slice(1);
  const lines = ticks(most / unit, 5).flatMap((value) => {
    const row = y(value * unit);
    return [
      svg('line', { class: 'grid', x1: frame.left, x2: frame.width - frame.right, y1: row, y2: row }),
      svg('text', { x: frame.left - 8, y: row + 4, 'text-anchor': 'end' }, [String(Number(value.toPrecision(6)))]),
    ];
  });
  return [...lines, svg('text', { class: 'axis', x: 2, y: 12 }, [`memory, ${name}`])];
}

/**
 * @param {number} steps
 * @param {Frame} frame
 * @param {(step: number) => number} x
 * @param {number} row
 */
function stepsAxis(steps, frame, x, row) {
  const labels = ticks(steps, frame.width > 400 ? 8 : 5).map((step) => svg('text', { x: x(step), y: row + 16, 'text-anchor': 'middle' }, [String(step)]));
  return [...labels, svg('text', { class: 'axis', x: x(steps), y: row + 32, 'text-anchor': 'end' }, ['steps of the plan'])];
}

/** @param {Plan} plan */
function describe({ timeline, weight_bytes, predicted_peak_bytes, steps }) {
  const highest = timeline.reduce((most, run) => (run.live_bytes > most.live_bytes ? run : most), timeline[0]);
  const activations = highest ? `, activations at most ${formatBytes(highest.live_bytes)} in ${highest.stage}` : '';
  return `${steps} steps; weights ${formatBytes(weight_bytes)}${activations}; with all other buffers the peak is ${formatBytes(predicted_peak_bytes)}.`;
}
