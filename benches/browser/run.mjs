// @ts-check
// Decodes the same latents with the same weights by wgvae and by onnxruntime-web, in one browser,
// and compares speed and pictures.
//
//     node benches/browser/run.mjs --help
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startServer } from '../../tests/browser/server.mjs';
import { openPage, runAll } from './lib/bench.mjs';
import { launch } from './lib/browser.mjs';
import { readCases } from './lib/model.mjs';
import { SYSTEMS } from './lib/systems.mjs';
import { adapters, ratios, table } from './lib/table.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

const HELP = `wgvae against onnxruntime-web: node benches/browser/run.mjs [options]
  --browser PATH      Chrome, Chromium or Edge; else the first one found, or $WGVAE_CHROMIUM
  --size LIST         pixels a side, default 64,256
  --model DIR         what make_model.py wrote, default target/bench-browser
  --systems LIST      of ${Object.keys(SYSTEMS).join(', ')}; default wgvae,ort-webgpu,ort-wasm. Others are compared with the first
  --runs N            decodes of each, default 3; the median is without the first
  --patience SECONDS  no second decode after one that took longer, and no size that would; default 120
  --threads N         of ort-wasm and wgvae-cpu, default as many as the browser says there are cores
  --swiftshader       on Chromium's own CPU implementation of WebGPU
  --headed            show the browser
  --json              print the results as JSON instead of a table
  --output FILE       where the JSON is written, default results.json in the model's folder`;

/** Returns the checked arguments. */
function readArguments() {
  const { values } = parseArgs({
    options: {
      browser: { type: 'string' },
      size: { type: 'string', default: '64,256' },
      model: { type: 'string', default: path.join(ROOT, 'target', 'bench-browser') },
      systems: { type: 'string', default: 'wgvae,ort-webgpu,ort-wasm' },
      runs: { type: 'string', default: '3' },
      patience: { type: 'string', default: '120' },
      threads: { type: 'string' },
      swiftshader: { type: 'boolean', default: false },
      headed: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      output: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const systems = values.systems.split(',');
  const unknown = systems.find((name) => !Object.hasOwn(SYSTEMS, name));
  if (unknown !== undefined) throw new Error(`--systems: expected ${Object.keys(SYSTEMS).join(', ')}, found ${unknown}`);
  return {
    ...values,
    systems,
    sizes: values.size.split(',').map((text) => count('--size', text)),
    runs: count('--runs', values.runs),
    patience: count('--patience', values.patience),
    threads: values.threads === undefined ? undefined : count('--threads', values.threads),
    output: values.output ?? path.join(values.model, 'results.json'),
  };
}

/**
 * @param {string} option
 * @param {string} text
 */
function count(option, text) {
  if (!/^[1-9]\d*$/.test(text)) throw new Error(`${option}: expected a whole number from 1, found "${text}"`);
  return Number(text);
}

/** @returns {Promise<boolean>} true if every system that ran gave the right picture */
async function main() {
  const options = readArguments();
  if (options.help) {
    console.log(HELP);
    return true;
  }
  const cases = await readCases(options.model, options.sizes);
  const server = await startServer({ root: ROOT, mounts: { '/bench-model/': options.model }, isolate: true });
  try {
    const browser = await launch(options);
    try {
      return await compare(browser, server.origin, { ...options, cases, folder: options.model });
    } finally {
      await browser.close();
    }
  } finally {
    await server.close();
  }
}

/**
 * @param {import('puppeteer-core').Browser} browser
 * @param {string} origin
 * @param {import('./lib/bench.mjs').Options & { json: boolean, output: string }} options
 */
async function compare(browser, origin, options) {
  const environment = { browser: await browser.version(), ...(await describe(browser, origin)) };
  console.error(`${environment.browser}, adapter ${JSON.stringify(environment.adapter)}`);
  const rows = await runAll(browser, origin, options, (line) => console.error(line));

  const first = options.systems[0];
  const speedups = ratios(rows, first);
  const results = { environment, first, rows, speedups };
  const text = JSON.stringify(results, null, 1);
  await writeFile(options.output, `${text}\n`);
  console.log(options.json ? text : `\n${table(rows, first)}\n`);
  if (!options.json) {
    for (const { size, system, speedup } of speedups) console.log(`${first} is ${speedup.toPrecision(2)} times as fast as ${system} at ${size}x${size}`);
    console.log(`JSON: ${options.output}`);
  }
  const used = adapters(rows);
  if (used.length > 1) console.error(`no fair comparison: the systems decoded on different adapters, ${used.join(' and ')}`);
  return used.length <= 1 && rows.every((row) => row.outcome === 'ok' || row.outcome === 'skipped');
}

/**
 * @param {import('puppeteer-core').Browser} browser
 * @param {string} origin
 */
async function describe(browser, origin) {
  const page = await openPage(browser, origin);
  const environment = await page.evaluate(async () => {
    // @ts-ignore: resolved in the page
    const { describeBrowser } = await import('./measure.js');
    return describeBrowser();
  });
  await page.close();
  return environment;
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  console.error(`bench-browser: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 2;
}
