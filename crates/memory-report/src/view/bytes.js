// @ts-check
// Formatting of bytes for people.

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

/**
 * @param {number} bytes
 * @returns {string} such as "139 MiB"
 */
export function formatBytes(bytes) {
  const power = bytes < 1 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length - 1);
  const value = bytes / 1024 ** power;
  return `${power === 0 || value >= 1000 ? Math.round(value) : Number(value.toPrecision(3))} ${UNITS[power]}`;
}

/**
 * Formats bytes for a column of numbers in MiB.
 * @param {number} bytes
 * @returns {string} such as "139.0"
 */
export function formatMib(bytes) {
  return (bytes / 2 ** 20).toFixed(1);
}
