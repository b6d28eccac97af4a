// @ts-check
// The page's advice after errors, without a browser: it can be followed as it stands.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { explain } from '../../web/page/advice.js';

/**
 * Explains a problem.
 * @param {string} code
 * @param {Partial<import('../../web/page/news.js').Problem>} facts
 */
const explained = (code, facts) => explain({ code, message: '', ...facts });

describe('advice', () => {
  it('names budgets that suffice, in the unit of the field', () => {
    const MIB = 2 ** 20;
    for (const [smallest, words] of /** @type {[number, string][]} */ ([[1294 * MIB, '1294 MiB'], [1293 * MIB + 1, '1294 MiB'], [1, '1 MiB']])) {
      assert.deepEqual(explained('budget', { smallest }).advice, [`The smallest budget found is ${words}.`]);
    }
  });

  it('gives a line for each statement of a program, whatever the names of files are', () => {
    const open = String.raw`d = load("a; b \"c; d\".ckpt")`;
    const { message, code } = explained('format', { message: `a.ckpt: a pickle, in Python with torch and safetensors: import torch; ${open}; save(d, "; ")` });
    assert.equal(message, 'a.ckpt: a pickle, in Python with torch and safetensors');
    assert.deepEqual(code.split('\n'), ['import torch', open, 'save(d, "; ")']);
  });

  it('speaks of the demo only if the latents of a visitor are the problem', () => {
    assert.match(explained('input', { ofDemo: true }).advice.join(), /fits only the demo's latents/);
    assert.doesNotMatch(explained('input', { ofDemo: false }).advice.join(), /demo/);
  });

  it('lets nobody lose a file of latents among several', async () => {
    const { sortFiles } = await import('../../web/page/sort-files.js');
    const [one, two, picture] = ['one.npy', 'two.npy', 'three.jpg'].map((name) => new File(['x'], name, { type: name.endsWith('jpg') ? 'image/jpeg' : '' }));
    for (const files of [[one, two], [one, picture]]) {
      const error = await sortFiles(files).catch((caught) => caught);
      assert.match(error.message, /^several files to decode or encode: one\.npy, (two\.npy|three\.jpg): choose one/);
      assert.equal(explain(error).title, 'This cannot be read');
    }
    assert.deepEqual((await sortFiles([one])).input, { files: [one] });
  });

  it('says of an address that it is none, and nothing to programs', () => {
    for (const name of ['URL', 'model of the hub', 'memoryBudget']) {
      const { title, advice } = explained('input', { message: `${name}: expected an address, found ""`, ofDemo: true });
      assert.deepEqual([title, advice], ['This cannot be read', []]);
    }
    const message = 'https://host/a: no answer (none), or pass a `fetch` that asks a proxy';
    assert.equal(explained('network', { message }).message, 'https://host/a: no answer (none)');
  });
});
