// @ts-check
// Runs the files of tests named on the command line, or all. Those that use browsers share this
// process, in which each browser is started once; others, which may put stand-ins in the place of
// anything, have a process each. `node tests/browser/run.mjs numbers page`

import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

import { closeShared, KINDS } from './browsers.mjs';

const ENDING = '.test.mjs';

const named = process.argv.slice(2);
const files = named.length > 0 ? named.map((name) => name + ENDING) : (await readdir(new URL('.', import.meta.url))).filter((name) => name.endsWith(ENDING)).sort();
const texts = await Promise.all(files.map((file) => readFile(new URL(file, import.meta.url), 'utf8')));

describe('wgvae', () => {
  after(closeShared);
  for (const [index, file] of files.entries()) {
    const [url, name] = [new URL(file, import.meta.url), file.slice(0, -ENDING.length)];
    if (texts[index].includes('inBrowsers(')) {
      // What a file defines becomes part of a group of its name.
      describe(name, async () => {
        await import(url.href);
      });
    } else if (KINDS.includes('chromium')) {
      // Once, where both browsers have a run of their own.
      it(name, () => runAlone(fileURLToPath(url)));
    }
  }
});

/**
 * The tests of a file in a process of their own. What they print is the error.
 * @param {string} file
 * @returns {Promise<void>}
 */
function runAlone(file) {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, ['--test', '--test-reporter=spec', file], { maxBuffer: 1 << 26 }, (error, printed) => (error ? reject(new Error(printed)) : resolve()));
  });
}
