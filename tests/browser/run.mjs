// @ts-check
// Runs the test files named on the command line, or all. Files that use browsers share this
// process, which starts each browser once. Other files may replace globals, so each has a process
// of its own. `node tests/browser/run.mjs numbers page`

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
      // The tests of a file become part of a group with its name.
      describe(name, async () => {
        await import(url.href);
      });
    } else if (KINDS.includes('chromium')) {
      // Only once, if both browsers have a run of their own.
      it(name, () => runAlone(fileURLToPath(url)));
    }
  }
});

/**
 * Runs the tests of a file in a process of their own. Their output is the error.
 * @param {string} file
 * @returns {Promise<void>}
 */
function runAlone(file) {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, ['--test', '--test-reporter=spec', file], { maxBuffer: 1 << 26 }, (error, printed) => (error ? reject(new Error(printed)) : resolve()));
  });
}
