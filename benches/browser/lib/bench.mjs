// @ts-check
// Runs the systems one after the other in one browser, each size in a page of its own.
import { distance, median } from './compare.mjs';
import { floats, readGolden } from './model.mjs';
import { SYSTEMS } from './systems.mjs';

/**
 * @typedef {object} Options
 * @property {string[]} systems names in SYSTEMS
 * @property {import('./model.mjs').Case[]} cases in ascending order
 * @property {string} folder path of the model
 * @property {number} runs
 * @property {number} patience seconds
 * @property {number} [threads]
 */

/**
 * @typedef {object} Row one system at one size
 * @property {string} system
 * @property {number} size
 * @property {'ok' | 'wrong' | 'failed' | 'skipped'} outcome
 * @property {string} [reason] reason of any other outcome than ok, in one line
 * @property {string[]} [stack] stack of a failure
 * @property {number} [openSeconds]
 * @property {number} [firstSeconds]
 * @property {number} [secondSeconds]
 * @property {number} [medianSeconds] median of all runs but the first, or the only run
 * @property {number[]} [seconds]
 * @property {number} [gflops] at the median, with convolutions counted as direct ones
 * @property {Record<string, import('./compare.mjs').Distance>} [distances] to torch, and to the
 * first system
 * @property {{ adapter?: string }} [about] facts that the system reports about itself
 */

/**
 * @param {import('puppeteer-core').Browser} browser
 * @param {string} origin
 * @param {Options} options
 * @param {(line: string) => void} say
 * @returns {Promise<Row[]>}
 */
export async function runAll(browser, origin, options, say) {
  /** @type {Row[]} */
  const rows = [];
  for (const each of options.cases) {
    /** @type {Map<string, Float32Array>} */
    const references = new Map();
    const golden = await readGolden(options.folder, each);
    if (golden) references.set('torch', golden);
    for (const system of options.systems) {
      const row = refuse(rows, system, each, options) ?? (await runOne(browser, origin, options, system, each, references));
      rows.push(row);
      say(sentence(row));
    }
  }
  return rows;
}

/**
 * Returns a row for a run that would take too long at the system's speed for the size before;
 * otherwise null.
 * @param {Row[]} rows
 * @param {string} system
 * @param {import('./model.mjs').Case} each
 * @param {Options} options
 * @returns {Row | null}
 */
export function refuse(rows, system, each, options) {
  const before = rows.filter((row) => row.system === system && row.gflops).pop();
  if (!before) return null;
  const seconds = each.flop / 1e9 / /** @type {number} */ (before.gflops);
  if (seconds <= options.patience) return null;
  return { system, size: each.size, outcome: 'skipped', reason: `would take about ${seconds.toFixed(0)} s; --patience allows it` };
}

/**
 * @param {import('puppeteer-core').Browser} browser
 * @param {string} origin
 * @param {Options} options
 * @param {string} name
 * @param {import('./model.mjs').Case} each
 * @param {Map<string, Float32Array>} references pictures to compare with; the first system's
 * picture is added
 * @returns {Promise<Row>}
 */
async function runOne(browser, origin, options, name, each, references) {
  const system = SYSTEMS[name];
  const job = {
    module: `${origin}/benches/browser/page/${system.module}`,
    model: `${origin}/bench-model/`,
    case: { size: each.size, latents: each.latents },
    runs: options.runs,
    patience: options.patience,
    precision: system.precision,
    device: system.device,
    threads: options.threads,
  };
  /** @type {import('puppeteer-core').Page | undefined} */
  let page;
  try {
    page = await openPage(browser, origin);
    const measured = await page.evaluate(async (job) => {
      // @ts-ignore: resolved in the page
      const { measure } = await import('./measure.js');
      return measure(job);
    }, job);
    const picture = floats(Buffer.from(measured.picture, 'base64'));
    const row = judge(name, each, measured, picture, references);
    if (references.size === (each.golden ? 1 : 0)) references.set(name, picture);
    return row;
  } catch (error) {
    // An error from the page has its stack in the message.
    const [reason, ...stack] = String(error instanceof Error ? error.message : error).split('\n');
    return { system: name, size: each.size, outcome: 'failed', reason, stack };
  } finally {
    // After a crash there is no page to close; the rows so far are still worth printing.
    await page?.close().catch(() => {});
  }
}

/**
 * Opens the page. Its console and uncaught errors go to stderr.
 * @param {import('puppeteer-core').Browser} browser
 * @param {string} origin
 */
export async function openPage(browser, origin) {
  const page = await browser.newPage();
  page.on('console', (message) => console.error(`  page: ${message.text()}`));
  page.on('pageerror', (error) => console.error(`  page: ${error}`));
  await page.goto(`${origin}/benches/browser/page/index.html`);
  return page;
}

/**
 * @param {string} name
 * @param {import('./model.mjs').Case} each
 * @param {{ openSeconds: number, seconds: number[], about: { adapter?: string } }} measured
 * @param {Float32Array} picture
 * @param {Map<string, Float32Array>} references
 * @returns {Row}
 */
export function judge(name, each, { openSeconds, seconds, about }, picture, references) {
  const { levels, relative } = SYSTEMS[name];
  const distances = Object.fromEntries([...references].map(([other, reference]) => [other, distance(picture, reference)]));
  const off = Object.entries(distances).find(([, found]) => !(found.levels <= levels && found.relative <= relative));
  const medianSeconds = median(seconds.length > 1 ? seconds.slice(1) : seconds);
  return {
    system: name,
    size: each.size,
    outcome: off ? 'wrong' : 'ok',
    reason: off && `${off[1].levels} levels, ${off[1].relative.toExponential(1)} from ${off[0]}: at most ${levels} and ${relative} expected`,
    openSeconds,
    firstSeconds: seconds[0],
    secondSeconds: seconds[1],
    medianSeconds,
    seconds,
    gflops: each.flop / 1e9 / medianSeconds,
    distances,
    about,
  };
}

/** @param {Row} row */
function sentence({ system, size, outcome, reason, medianSeconds, gflops }) {
  const speed = medianSeconds === undefined ? '' : ` ${medianSeconds.toFixed(2)} s, ${gflops?.toFixed(2)} GFLOP/s`;
  return `${system} ${size}x${size}: ${outcome}${speed}${reason ? ` (${reason})` : ''}`;
}
