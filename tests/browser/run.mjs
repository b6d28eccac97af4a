// @ts-check
// Runs the files of tests named on the command line, or all, in one process: each browser is started once. `node tests/browser/run.mjs numbers page`

import { readdir } from 'node:fs/promises';
import { after, describe } from 'node:test';

import { closeShared } from './browsers.mjs';

const ENDING = '.test.mjs';

const named = process.argv.slice(2);
const files = named.length > 0 ? named.map((name) => name + ENDING) : (await readdir(new URL('.', import.meta.url))).filter((name) => name.endsWith(ENDING)).sort();

describe('wgvae', () => {
  after(closeShared);
  for (const file of files) {
    // What a file defines becomes part of a group of its name.
    describe(file.slice(0, -ENDING.length), async () => {
      await import(new URL(file, import.meta.url).href);
    });
  }
});
