// @ts-check
// SVG elements.

/**
 * @param {string} name
 * @param {Record<string, string | number>} [attributes]
 * @param {(SVGElement | string)[]} [children]
 * @returns {SVGElement}
 */
export function svg(name, attributes = {}, children = []) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/**
 * Returns a drawing with a title and a description for screen readers.
 * @param {{ width: number, height: number, id: string, title: string, description: string }} about
 * @param {SVGElement[]} children
 */
export function drawing({ width, height, id, title, description }, children) {
  const attributes = { viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-labelledby': `${id}-title ${id}-description` };
  const words = [svg('title', { id: `${id}-title` }, [title]), svg('desc', { id: `${id}-description` }, [description])];
  return svg('svg', attributes, [...words, ...children]);
}

/**
 * Returns round numbers from 0 to `most`, at most about `count` of them.
 * @param {number} most
 * @param {number} count
 */
export function ticks(most, count) {
  const magnitude = 10 ** Math.floor(Math.log10(Math.max(most, 1e-9) / count));
  const step = [1, 2, 5, 10].map((factor) => factor * magnitude).find((step) => most / step <= count) ?? most;
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step);
}
