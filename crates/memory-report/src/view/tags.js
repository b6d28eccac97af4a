// @ts-check
// Small HTML elements of memory reports. Texts from files only ever become text nodes.

/** @typedef {string | { name: string, isNumber?: boolean, wraps?: boolean }} Column */

/**
 * @param {'h2' | 'h3'} tag
 * @param {string} text
 */
export function heading(tag, text) {
  return Object.assign(document.createElement(tag), { textContent: text });
}

/** @param {(string | Node)[]} parts */
export function paragraph(...parts) {
  const made = document.createElement('p');
  made.append(...parts);
  return made;
}

/**
 * @param {string} address of this program, never one from a file
 * @param {string} text
 */
export function link(address, text) {
  return Object.assign(document.createElement('a'), { href: address, textContent: text });
}

/**
 * Returns a table that scrolls. A row with fewer cells than columns failed: its last cell fills the
 * rest.
 * @param {string} title for screen readers
 * @param {Column[]} columns
 * @param {(string | Node)[][]} rows
 */
export function table(title, columns, rows) {
  const scroll = Object.assign(document.createElement('div'), { className: 'scroll', tabIndex: 0 });
  scroll.setAttribute('role', 'region');
  scroll.setAttribute('aria-label', title);
  const [made, head, body] = [document.createElement('table'), document.createElement('thead'), document.createElement('tbody')];
  const header = document.createElement('tr');
  header.append(...columns.map((column) => cell('th', column, typeof column === 'string' ? column : column.name)));
  head.append(header);
  body.append(...rows.map((cells) => tableLine(columns, cells)));
  made.append(head, body);
  scroll.append(made);
  return scroll;
}

/**
 * @param {Column[]} columns
 * @param {(string | Node)[]} cells
 */
function tableLine(columns, cells) {
  const made = document.createElement('tr');
  made.append(...cells.map((content, index) => cell(index === 0 ? 'th' : 'td', columns[index], content)));
  made.firstElementChild?.setAttribute('scope', 'row');
  const missing = columns.length - cells.length;
  if (missing > 0) {
    made.className = 'failed';
    Object.assign(/** @type {HTMLTableCellElement} */ (made.lastElementChild), { colSpan: missing + 1, className: 'wrap' });
  }
  return made;
}

/**
 * @param {'th' | 'td'} tag
 * @param {Column} column
 * @param {string | Node} content
 */
function cell(tag, column, content) {
  const made = document.createElement(tag);
  made.append(content);
  if (typeof column !== 'string') made.className = column.isNumber ? 'num' : column.wraps ? 'wrap' : '';
  return made;
}
