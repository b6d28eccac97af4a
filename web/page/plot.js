// @ts-check
// A plot of marks and lines over two logarithmic axes of base 2.

import { drawing, svg } from './svg.js';

/** Shape of a mark. @typedef {'circle' | 'triangle' | 'square' | 'cross'} Shape */
/** @typedef {{ x: number, y: number, text: string }} Point `text`: its meaning */
/**
 * @typedef {{ name: string, color: number, shape: Shape, points: Point[], joined?: boolean }}
 * Series `color`: its number in style.css
 */
/**
 * A dashed line to compare with.
 * @typedef {{ name: string, source: string, points: { x: number, y: number }[] }} Guide
 */
/**
 * An axis. Its labels and ends are powers of 2 to the power `every`.
 * @typedef {{ name: string, label: (value: number) => string, every?: number }} Axis
 */

const SIZE = { width: 640, height: 360, left: 84, right: 26, top: 28, bottom: 46 };

/** @type {Shape[]} */
export const SHAPES = ['circle', 'triangle', 'square', 'cross'];

/**
 * @param {{ id: string, title: string, description: string, x: Axis, y: Axis, series: Series[],
 * guides?: Guide[], diagonal?: boolean }} plot
 * @returns {HTMLElement} a figure
 */
export function plot({ id, title, description, x, y, series, guides = [], diagonal }) {
  const points = [...series, ...guides].flatMap((one) => /** @type {{ x: number, y: number }[]} */ (one.points));
  const across = scale(points.map((point) => point.x), SIZE.left, SIZE.width - SIZE.right, x.every);
  const up = scale(points.map((point) => point.y), SIZE.height - SIZE.bottom, SIZE.top, y.every);
  const children = [...axes(x, y, across, up)];
  if (diagonal) children.push(equality(across, up));
  children.push(...guides.map(({ name, source, points }, dash) => guide(dash, placed(points, across, up), `${name}: ${source}`)));
  for (const one of series) {
    if (one.joined) children.push(line(one, across, up));
    children.push(...one.points.map((point) => mark(one, across.place(point.x), up.place(point.y), point.text)));
  }
  const figure = document.createElement('figure');
  figure.className = 'plot';
  // Plots are wider than a phone: the focus allows scrolling with keys.
  figure.tabIndex = 0;
  const caption = Object.assign(document.createElement('figcaption'), { textContent: title });
  figure.append(caption, drawing({ ...SIZE, id, title, description }, children), legend(series, guides));
  return figure;
}

/**
 * @typedef {{ low: number, high: number, every: number, place: (value: number) => number }} Scale
 * ends are powers of two
 */

/**
 * @param {number[]} values
 * @param {number} from pixels
 * @param {number} to
 * @param {number} [every]
 * @returns {Scale}
 */
function scale(values, from, to, every = 1) {
  const powers = values.map((value) => Math.log2(Math.max(value, 1)));
  const ends = range(powers);
  const low = every * Math.floor((ends.low - 0.2) / every);
  const high = every * Math.ceil((ends.high + 0.2) / every);
  return { low, high, every, place: (value) => from + ((Math.log2(Math.max(value, 1)) - low) / (high - low)) * (to - from) };
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
  const columns = powers(across, 7).flatMap((value) => [
    svg('line', { class: 'grid', x1: across.place(value), x2: across.place(value), y1: SIZE.top, y2: bottom }),
    svg('text', { x: across.place(value), y: bottom + 18, 'text-anchor': 'middle' }, [x.label(value)]),
  ]);
  const rows = powers(up, 7).flatMap((value) => [
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
 * @param {Scale} scale
 * @param {number} most
 */
function powers({ low, high, every: least }, most) {
  const every = least * Math.ceil(((high - low) / least + 1) / most);
  return Array.from({ length: Math.floor((high - low) / every) + 1 }, (_, index) => 2 ** (low + index * every));
}

/**
 * Draws the line on which both values are equal.
 * @param {Scale} across
 * @param {Scale} up
 */
function equality(across, up) {
  const [low, high] = [2 ** Math.max(across.low, up.low), 2 ** Math.min(across.high, up.high)];
  return svg('line', { class: 'equal', x1: across.place(low), y1: up.place(low), x2: across.place(high), y2: up.place(high) });
}

/**
 * @param {Series} series
 * @param {Scale} across
 * @param {Scale} up
 */
function line({ points, color }, across, up) {
  const sorted = [...points].sort((a, b) => a.x - b.x);
  return svg('polyline', { class: `joined color-${color}`, points: placed(sorted, across, up) });
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
 * @param {number} dash its number in style.css
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
  };
  return svg('path', { class: `mark ${shape} color-${color}`, d: paths[shape], transform: `translate(${x} ${y})` }, [svg('title', {}, [text])]);
}

/**
 * @param {Series[]} series
 * @param {Guide[]} guides
 */
function legend(series, guides) {
  const list = document.createElement('ul');
  list.className = 'legend';
  const marks = series.map((one) => entry(one.name, 14, mark(one, 0, 0, '')));
  const lines = guides.map(({ name }, dash) => entry(name, 28, guide(dash, '-14,0 14,0', '')));
  list.append(...marks, ...lines);
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
