// @ts-check
// Measures the page with Lighthouse, on an emulated phone and on a desktop. It is not part of the
// tests, because its scores depend on the machine. Lighthouse is not in package.json either:
//
//     npm --prefix tests/browser install --no-save lighthouse@13.5.0
//     cargo xtask serve --port 8000
//     node tests/browser/lighthouse.mjs http://127.0.0.1:8000/ [RUNS]
//
// Prints the median of each score and time over RUNS, 3 by default.

import { launch } from './browsers.mjs';

const CATEGORIES = ['performance', 'accessibility', 'best-practices', 'seo'];

/** Times to print, and the name of each audit. */
const TIMES = { 'first paint': 'first-contentful-paint', 'largest paint': 'largest-contentful-paint', blocked: 'total-blocking-time', 'layout shift': 'cumulative-layout-shift' };

const [url, runs = '3'] = process.argv.slice(2);
if (!url || !(Number(runs) > 0)) {
  console.error('usage: node tests/browser/lighthouse.mjs ADDRESS [RUNS]');
  process.exit(2);
}

/** @type {any} Types of lighthouse are not installed. */
const lighthouse = await import(/** @type {any} */ ('lighthouse')).catch(() => {
  console.error('lighthouse: expected the package, found none: npm --prefix tests/browser install --no-save lighthouse@13.5.0');
  process.exit(2);
});

for (const [kind, config] of [['phone', undefined], ['desktop', lighthouse.desktopConfig]]) {
  /** @type {Record<string, number>[]} */
  const rows = [];
  for (let run = 0; run < Number(runs); run += 1) rows.push(await measure(url, config));
  const medians = Object.keys(rows[0]).map((name) => `${name} ${median(rows.map((row) => row[name]))}`);
  console.log(`${kind}: ${medians.join(', ')}`);
}

/**
 * Loads a page in a new Chromium, and returns its scores (0 to 100), times in milliseconds, layout
 * shift, and the KiB that it fetched.
 * @param {string} url
 * @param {unknown} config of Lighthouse; undefined: a phone on a slow network
 * @returns {Promise<Record<string, number>>}
 */
async function measure(url, config) {
  const { browser, close } = await launch('chromium');
  try {
    const port = Number(new URL(browser.wsEndpoint()).port);
    const result = await lighthouse.default(url, { port, onlyCategories: CATEGORIES, logLevel: 'error' }, config);
    const { categories, audits, runtimeError } = result.lhr;
    if (runtimeError) throw new Error(`lighthouse: ${runtimeError.message}`);
    const scores = CATEGORIES.map((name) => [name, Math.round(100 * categories[name].score)]);
    const times = Object.entries(TIMES).map(([name, audit]) => [name, Number(audits[audit].numericValue.toPrecision(3))]);
    return Object.fromEntries([...scores, ...times, ['KiB', Math.round(audits['total-byte-weight'].numericValue / 1024)]]);
  } finally {
    await close();
  }
}

/** @param {number[]} values */
function median(values) {
  return [...values].sort((one, other) => one - other)[values.length >> 1];
}
