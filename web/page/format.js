// @ts-check
// Formatting of numbers for people.

export { formatBytes } from '../../crates/memory-report/src/view/bytes.js';

/**
 * Formats a memory budget that must not be rounded down, in the unit of the page's field.
 * @param {number} bytes
 * @returns {string} such as "1295 MiB"
 */
export function formatBudget(bytes) {
  return `${Math.ceil(bytes / 2 ** 20)} MiB`;
}

/**
 * @param {number} seconds
 * @returns {string} such as "3.2 s" or "2 min 5 s"
 */
export function formatSeconds(seconds) {
  const whole = Math.round(seconds);
  if (seconds >= 100) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (seconds >= 0.1) return `${Number(seconds.toPrecision(seconds >= 10 ? 3 : 2))} s`;
  return `${Number((seconds * 1000).toPrecision(2))} ms`;
}

/**
 * @param {number} seconds a guess
 * @returns {string} such as "about 20 s left"
 */
export function formatLeft(seconds) {
  if (seconds >= 90) return `about ${Math.round(seconds / 60)} min left`;
  const step = seconds > 10 ? 5 : 1;
  return `about ${Math.max(1, Math.ceil(seconds / step) * step)} s left`;
}

/**
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function formatCount(count, one, many = `${one}s`) {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
}
