// @ts-check
// The results as a table for people.

const HEAD = ['system', 'picture', 'load', 'first', 'second', 'median', 'GFLOP/s', 'to torch', 'to the first', ''];

/**
 * Returns a Markdown table with aligned columns.
 * @param {import('./bench.mjs').Row[]} rows
 * @param {string} first the system that the others are compared with
 */
export function table(rows, first) {
  const lines = [HEAD, ...rows.map((row) => cells(row, first))];
  const widths = HEAD.map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  const [head, ...body] = lines.map((line) => `| ${line.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`);
  return [head, `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...body].join('\n');
}

/**
 * @param {import('./bench.mjs').Row} row
 * @param {string} first
 */
function cells(row, first) {
  return [
    row.system,
    `${row.size}x${row.size}`,
    seconds(row.openSeconds),
    seconds(row.firstSeconds),
    seconds(row.secondSeconds),
    seconds(row.medianSeconds),
    row.gflops?.toPrecision(3) ?? '-',
    apart(row.distances?.torch),
    apart(row.distances?.[first]),
    row.outcome === 'ok' ? 'ok' : `${row.outcome}: ${row.reason}`,
  ];
}

/** @param {number | undefined} value */
const seconds = (value) => (value === undefined ? '-' : `${value.toPrecision(3)} s`);

/** @param {import('./compare.mjs').Distance | undefined} found */
const apart = (found) => (found ? `${found.levels} levels, ${found.relative.toExponential(1)}` : '-');

/**
 * Returns the adapters that decoded: with more than one the comparison is invalid.
 * @param {import('./bench.mjs').Row[]} rows
 * @returns {string[]}
 */
export function adapters(rows) {
  return [...new Set(rows.flatMap((row) => row.about?.adapter ?? []))];
}

/**
 * Returns how many times faster the first system is than each other, for every size that both
 * decoded.
 * @param {import('./bench.mjs').Row[]} rows
 * @param {string} first
 */
export function ratios(rows, first) {
  const speed = (/** @type {string} */ system, /** @type {number} */ size) =>
    rows.find((row) => row.system === system && row.size === size)?.gflops;
  return rows.flatMap(({ system, size, gflops }) => {
    const ours = speed(first, size);
    return system === first || !gflops || !ours ? [] : [{ size, system, speedup: ours / gflops }];
  });
}
