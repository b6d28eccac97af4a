// @ts-check
// Runs test files in both browsers, several at once: the files named on the command line, or all.
// Each process of `run.mjs` takes one browser and some of the files, and starts that browser once.
// Prints what a process printed when that process has ended, and what a failed one printed once
// more at the end, where it is found first. Files in IN_ONE run in both browsers only if they are
// named or WGVAE_FULL is set.
// `node tests/browser/all.mjs numbers page`

import { spawn } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

import { KINDS } from './browsers.mjs';

const ENDING = '.test.mjs';

/** Parts of the files. More parts share the work better, but start more browsers. */
const PARTS = 8;

/** Files that take longest: first in the list, so that each part gets one of them. */
const LONGEST = ['shaders', 'clips', 'readme', 'numbers', 'page', 'package', 'device', 'worker'];

/**
 * Files that a short run leaves to Firefox, because Chromium takes twice as long: what the package
 * does around decodes and clips on WebGPU. Other files test decodes, clips (`clip-families`,
 * `worker`, `player`) and the page in both.
 */
const IN_ONE = ['broken', 'clips', 'opacity', 'sources'];

/** One process more than cores, because browsers wait for servers and for timers. */
const AT_ONCE = 1 + availableParallelism();

const named = process.argv.slice(2);
const found = named.length > 0 ? named : (await readdir(new URL('.', import.meta.url))).filter((name) => name.endsWith(ENDING)).map((name) => name.slice(0, -ENDING.length)).sort();
const names = [...LONGEST.filter((name) => found.includes(name)), ...found.filter((name) => !LONGEST.includes(name))];

const isShort = named.length === 0 && KINDS.length > 1 && !process.env.WGVAE_FULL;

/** Parts of both browsers alternate, so that both browsers run at once. */
const jobs = Array.from({ length: PARTS }, (_, part) => names.filter((_, index) => index % PARTS === part))
  .flatMap((files) => KINDS.map((kind) => ({ kind, files: files.filter((name) => kind === 'firefox' || !isShort || !IN_ONE.includes(name)) })))
  .filter(({ files }) => files.length > 0);

/** @type {{ kind: string, files: string[], seconds: number, passed: boolean, printed: Buffer }[]} */
const ended = [];
const waiting = [...jobs];
await Promise.all(Array.from({ length: AT_ONCE }, async () => {
  for (let job = waiting.shift(); job; job = waiting.shift()) ended.push(await run(job));
}));
for (const { kind, files, seconds, passed } of ended) console.log(`${seconds.toFixed(0).padStart(6)} s  ${kind}: ${files.join(' ')}${passed ? '' : ': failed'}`);
for (const { passed, printed } of ended) if (!passed) process.stdout.write(printed);
process.exitCode = ended.every(({ passed }) => passed) ? 0 : 1;

/**
 * @param {typeof jobs[number]} job
 * @returns {Promise<typeof ended[number]>}
 */
function run({ kind, files }) {
  const begin = performance.now();
  const program = fileURLToPath(new URL('run.mjs', import.meta.url));
  const child = spawn(process.execPath, ['--test-reporter=spec', program, ...files], { env: { ...process.env, WGVAE_BROWSER: kind }, stdio: ['ignore', 'pipe', 'pipe'] });
  /** @type {Buffer[]} */
  const printed = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => printed.push(bytes));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      const seconds = (performance.now() - begin) / 1000;
      const all = Buffer.concat([Buffer.from(`${kind}: ${files.join(' ')}\n`), ...printed]);
      process.stdout.write(all);
      resolve({ kind, files, seconds, passed: code === 0, printed: all });
    });
  });
}
