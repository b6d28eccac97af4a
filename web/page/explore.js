// @ts-check
// A plan that follows sliders, for any published model, without loading one. The inputs are sizes,
// precision and budget; it shows memory over time, peak, work and transfers.

import { MemoryChart } from './chart.js';
import { element, fillParts, setText } from './elements.js';
import { formatBytes } from './format.js';
import { Planner } from './planner.js';

/** @typedef {import('./planner.js').Wish} Wish */

/** Positions of the budget's slider for each doubling. */
const FINENESS = 16;

/** Peak of the whole plan divided by the smallest budget of the slider. */
const SMALLEST = 64;

const IDS = ['explore-family', 'explore-direction', 'explore-width', 'explore-height', 'explore-precision'];

export class Explore {
  #chart = new MemoryChart(element('explore-chart'), 'explore-drawing');
  /** @type {Planner | undefined} */
  #planner;
  /** True while a plan is being made. */
  #isBusy = false;
  /** True if an input has changed since. */
  #isStale = false;
  /** Budget on the slider, bytes, even if the plan needs less. @type {number | undefined} */
  #budget;
  #onChange;

  /**
   * @param {string | undefined} text plan from a link
   * @param {(text: string) => void} onChange listener for the text of the plan in a link
   */
  constructor(text, onChange) {
    this.#onChange = onChange;
    this.#read(text);
    for (const id of IDS) element(id).addEventListener('input', () => this.#change());
    const budget = element('explore-budget', HTMLInputElement);
    budget.addEventListener('input', () => {
      this.#budget = budget.value === budget.max ? undefined : Math.round(2 ** (Number(budget.value) / FINENESS));
      this.#change();
    });
    this.#say();
  }

  /** Lists the published models. @param {string[]} families */
  offer(families) {
    const select = element('explore-family', HTMLSelectElement);
    const known = [...select.options].map(({ value }) => value);
    const others = families.filter((name) => !known.includes(name));
    select.append(...others.map((name) => new Option(name)));
    // In the order of the other list.
    for (const name of families) select.append(...[...select.options].filter((option) => option.value === name));
  }

  /**
   * Plans once this part of the page is visible, because the planner compiles a wasm module of its
   * own.
   */
  begin() {
    const observer = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      this.#planner = new Planner();
      this.#ask();
    });
    observer.observe(element('explore'));
  }

  /** @returns {Wish} */
  get #wish() {
    const [family, direction, width, height, precision] = IDS.map((id) => /** @type {HTMLInputElement} */ (element(id)).value);
    return {
      family,
      direction: direction === 'encode' ? 'encode' : 'decode',
      width: Number(width),
      height: Number(height),
      precision: precision === 'f32' || precision === 'fast' ? precision : 'f16',
      budget: this.#budget,
    };
  }

  /**
   * @param {string | undefined} text such as flux1,1024x768,f16,512,encode, where the budget in MiB
   * and `encode` are optional
   */
  #read(text = '') {
    const [, family, width, height, precision, budget, direction = 'decode'] = /^(\w+),(\d+)x(\d+),(f16|f32|fast)(?:,([\d.]+))?(?:,(encode))?$/.exec(text) ?? [];
    if (!family) return;
    element('explore-family', HTMLSelectElement).append(new Option(family, family, false, true));
    const values = { direction, width, height, precision };
    for (const [name, value] of Object.entries(values)) Object.assign(element(`explore-${name}`), { value });
    this.#budget = Number(budget) > 0 ? Math.round(Number(budget) * 2 ** 20) : undefined;
  }

  #change() {
    this.#say();
    const { family, direction, width, height, precision, budget } = this.#wish;
    const parts = [family, `${width}x${height}`, precision, budget && Number((budget / 2 ** 20).toPrecision(6)), direction === 'encode' && direction];
    this.#onChange(parts.filter(Boolean).join());
    this.#ask();
  }

  /** Shows the values of the sliders. */
  #say() {
    const { width, height, budget } = this.#wish;
    setText('explore-width-value', `${width} pixels`);
    setText('explore-height-value', `${height} pixels`);
    const words = budget === undefined ? 'none' : formatBytes(budget);
    setText('explore-budget-value', words);
    element('explore-budget').setAttribute('aria-valuetext', words);
  }

  /** Requests one plan at a time, always for the newest values: dragging passes over many. */
  async #ask() {
    if (!this.#planner) return;
    this.#isStale = this.#isBusy;
    if (this.#isStale) return;
    this.#isBusy = true;
    element('explore').setAttribute('aria-busy', 'true');
    try {
      this.#show(await this.#planner.answer(this.#wish));
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      setText('explore-said', `${why.charAt(0).toUpperCase()}${why.slice(1)}.`);
    }
    this.#isBusy = false;
    if (this.#isStale) this.#ask();
    else element('explore').setAttribute('aria-busy', 'false');
  }

  /** @param {import('./planner.js').Answer} answer */
  #show({ wish, plan, whole, smallest }) {
    this.#chart.show(plan, whole);
    const more = plan.macs / whole.macs;
    fillParts('explore-figures', [
      ['Peak memory', formatBytes(plan.predicted_peak_bytes)],
      ['Multiply-adds', `${(plan.macs / 1e12).toPrecision(3)} T${more > 1.005 ? `, ${more.toFixed(2)} times` : ''}`],
      ['Transfers', formatBytes(plan.transferred_bytes)],
    ]);
    const [asked, found] = [wish.budget, smallest].map((bytes) => bytes && formatBytes(bytes));
    setText('explore-said', smallest === undefined ? '' : `No plan found for ${asked}. This one takes the least: ${found}.`);
    this.#fitBudget(whole.predicted_peak_bytes);
  }

  /**
   * Sets the slider's range up to the whole plan's peak, where no budget is needed.
   * @param {number} peak
   */
  #fitBudget(peak) {
    const range = element('explore-budget', HTMLInputElement);
    const position = (/** @type {number} */ bytes) => FINENESS * Math.log2(bytes);
    range.min = String(Math.floor(position(peak / SMALLEST)));
    range.max = String(Math.ceil(position(peak)));
    range.value = this.#budget === undefined ? range.max : String(Math.round(position(this.#budget)));
    range.disabled = false;
  }
}
