// @ts-check
// The page's elements, and functions that create small ones.

/**
 * Returns the page's element with this id.
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

/**
 * Sets a text only if it differs, so that screen readers read it once.
 * @param {string} id
 * @param {string} text
 */
export function setText(id, text) {
  const target = element(id);
  if (target.textContent !== text) target.textContent = text;
}

/**
 * Fills a list with names and values.
 * @param {string} id
 * @param {[string, string][]} parts
 */
export function fillParts(id, parts) {
  const pairs = parts.map(([name, value]) => {
    const pair = document.createElement('div');
    pair.append(Object.assign(document.createElement('dt'), { textContent: name }), Object.assign(document.createElement('dd'), { textContent: value }));
    return pair;
  });
  element(id).replaceChildren(...pairs);
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

/** @param {string} text */
export function listItem(text) {
  return Object.assign(document.createElement('li'), { textContent: text });
}

/**
 * Returns a text that opens below its summary.
 * @param {string} summary
 * @param {string} text
 */
export function foldedText(summary, text) {
  const details = document.createElement('details');
  details.append(Object.assign(document.createElement('summary'), { textContent: summary }), text);
  return details;
}
