// @ts-check
// A plot of marks and lines over two axes, which are linear or logarithmic of base 2.

import { drawing, svg, ticks } from './svg.js';

/** Shape of a mark. @typedef {'circle' | 'triangle' | 'square' | 'cross' | 'ring'} Shape */
/** Colour of a mark or line: its number in report.css. @typedef {number | 'grey'} Color */
/** @typedef {{ x: number, y: number, text: string }} Point `text`: its meaning */
/** @typedef {{ color: Color, shape: Shape, points: Point[], joined?: boolean }} Series */
/**
 * A dashed line to compare with.
 * @typedef {{ name: string, source: string, points: { x: number, y: number }[] }} Guide
 */
/**
 * An entry of the legend: a mark, or without a shape a line.
 * @typedef {{ name: string, color: Color, shape?: Shape }} Entry
 */
/**
 * An axis. If it is logarithmic, its labels and ends are powers of 2 to the power `every`; a linear
 * axis begins at 0.
 * @typedef {{ name: string, label: (value: number) => string, every?: number, isLinear?: boolean }}
 * Axis
 */

const SIZE = { width: 640, height: 360, left: 84, right: 26, top: 28, bottom: 46 };

/** Shapes of series. Rings are for measurements by others. @type {Shape[]} */
export const SHAPES = ['circle', 'triangle', 'square', 'cross'];

/**
 * @param {{ id: string, title: string, description: string, x: Axis, y: Axis, series: Series[],
 * legend: Entry[], guides?: Guide[], diagonal?: boolean }} plot
 * @returns {HTMLElement} a figure
 */
export function plot({ id, title, description, x, y, series, legend, guides = [], diagonal }) {
  const points = [...series, ...guides].flatMap((one) => /** @type {{ x: number, y: number }[]} */ (one.points));
  const across = scale(x, points.map((point) => point.x), SIZE.left, SIZE.width - SIZE.right);
  const up = scale(y, points.map((point) => point.y), SIZE.height - SIZE.bottom, SIZE.top);
  const children = [...axes(x, y, across, up)];
  if (diagonal) children.push(equality(across, up));
  children.push(...guides.map(({ name, source, points }, dash) => guide(dash, placed(points, across, up), `${name}: ${source}`)));
  for (const one of series) {
    if (one.joined) children.push(line(one.color, placed([...one.points].sort((a, b) => a.x - b.x), across, up)));
    children.push(...one.points.map((point) => mark(one, across.place(point.x), up.place(point.y), point.text)));
  }
  const figure = document.createElement('figure');
  figure.className = 'plot';
  // Plots are wider than a phone: the focus allows scrolling with keys.
  figure.tabIndex = 0;
  const caption = Object.assign(document.createElement('figcaption'), { textContent: title });
  figure.append(caption, drawing({ ...SIZE, id, title, description }, children), entries(legend, guides));
  return figure;
}

/**
 * @typedef {{ low: number, high: number, ticks: number[], place: (value: number) => number }} Scale
 * `low`, `high`: values at the ends; `ticks`: values with a label
 */

/**
 * @param {Axis} axis
 * @param {number[]} values
 * @param {number} from pixels
 * @param {number} to
 * @returns {Scale}
 */
function scale({ isLinear, every = 1 }, values, from, to) {
  const ends = range(values);
  if (isLinear) {
    const high = Math.max(ends.high, 1e-9) * 1.08;
    return { low: 0, high, ticks: ticks(high, 7), place: (value) => from + (value / high) * (to - from) };
  }
  const power = (/** @type {number} */ value) => Math.log2(Math.max(value, 1));
  const low = every * Math.floor((power(ends.low) - 0.2) / every);
  const high = every * Math.ceil((power(ends.high) + 0.2) / every);
  const place = (/** @type {number} */ value) => from + ((power(value) - low) / (high - low)) * (to - from);
  return { low: 2 ** low, high: 2 ** high, ticks: powers(low, high, every), place };
}

/**
 * Returns the smallest and the largest value. It works for any number of values, while a call takes
 * only so many arguments.
 * @param {number[]} values
 */
export function range(values) {
  return { low: values.reduce((low, value) => Math.min(low, value), Infinity), high: values.reduce((high, value) => Math.max(high, value), -Infinity) };
}

/**
 * @param {Axis} x
 * @param {Axis} y
 * @param {Scale} across
 * @param {Scale} up
 */
function axes(x, y, across, up) {
  const [bottom, right] = [SIZE.height - SIZE.bottom, SIZE.width - SIZE.right];
  const columns = across.ticks.flatMap((value) => [
    svg('line', { class: 'grid', x1: across.place(value), x2: across.place(value), y1: SIZE.top, y2: bottom }),
    svg('text', { x: across.place(value), y: bottom + 18, 'text-anchor': 'middle' }, [x.label(value)]),
  ]);
  const rows = up.ticks.flatMap((value) => [
    svg('line', { class: 'grid', x1: SIZE.left, x2: right, y1: up.place(value), y2: up.place(value) }),
    svg('text', { x: SIZE.left - 8, y: up.place(value) + 4, 'text-anchor': 'end' }, [y.label(value)]),
  ]);
  const names = [
    svg('text', { class: 'axis', x: right, y: SIZE.height - 6, 'text-anchor': 'end' }, [x.name]),
    svg('text', { class: 'axis', x: 4, y: 14 }, [y.name]),
  ];
  return [...columns, ...rows, ...names];
}

/**
 * Returns at most seven powers of two from 2^low to 2^high.
 * @param {number} low
 * @param {number} high
 * @param {number} least step between their exponents
 */
function powers(low, high, least) {
  const every = least * Math.ceil(((high - low) / least + 1) / 7);
  return Array.from({ length: Math.floor((high - low) / every) + 1 }, (_, index) => 2 ** (low + index * every));
}

/**
 * Draws the line on which both values are equal.
 * @param {Scale} across
 * @param {Scale} up
 */
function equality(across, up) {
  const [low, high] = [Math.max(across.low, up.low), Math.min(across.high, up.high)];
  return svg('line', { class: 'equal', x1: across.place(low), y1: up.place(low), x2: across.place(high), y2: up.place(high) });
}

/**
 * @param {Color} color
 * @param {string} points
 */
function line(color, points) {
  return svg('polyline', { class: `joined color-${color}`, points });
}

/**
 * @param {{ x: number, y: number }[]} points
 * @param {Scale} across
 * @param {Scale} up
 */
function placed(points, across, up) {
  return points.map(({ x, y }) => `${across.place(x)},${up.place(y)}`).join(' ');
}

/**
 * Draws a guide. Its name stands in the legend only, because the lines of two estimates may almost
 * coincide.
 * @param {number} dash its number in report.css
 * @param {string} points
 * @param {string} text
 */
function guide(dash, points, text) {
  return svg('polyline', { class: `guide dash-${dash}`, points }, [svg('title', {}, [text])]);
}

/**
 * @param {Pick<Series, 'color' | 'shape'>} series
 * @param {number} x
 * @param {number} y
 * @param {string} text
 */
function mark({ color, shape }, x, y, text) {
  const paths = {
    circle: 'M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z',
    triangle: 'M0 -6L6 5L-6 5Z',
    square: 'M-5 -5H5V5H-5Z',
    cross: 'M-5 -5L5 5M-5 5L5 -5',
    ring: 'M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z',
  };
  return svg('path', { class: `mark ${shape} color-${color}`, d: paths[shape], transform: `translate(${x} ${y})` }, [svg('title', {}, [text])]);
}

/**
 * @param {Entry[]} legend
 * @param {Guide[]} guides
 */
function entries(legend, guides) {
  const list = document.createElement('ul');
  list.className = 'legend';
  const signs = legend.map(({ name, color, shape }) => (shape ? entry(name, 14, mark({ color, shape }, 0, 0, '')) : entry(name, 14, line(color, '-7,0 7,0'))));
  const lines = guides.map(({ name }, dash) => entry(name, 28, guide(dash, '-14,0 14,0', '')));
  list.append(...signs, ...lines);
  return list;
}

/**
 * @param {string} name
 * @param {number} width
 * @param {SVGElement} sign drawing around 0, 0
 */
function entry(name, width, sign) {
  const item = document.createElement('li');
  item.append(svg('svg', { viewBox: `${-width * 4 / 7} -8 ${width * 8 / 7} 16`, width, height: 14, 'aria-hidden': 'true' }, [sign]), name);
  return item;
}
