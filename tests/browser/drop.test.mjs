// @ts-check
// Files that the page takes from a dropped folder, without a browser, with made-up entries.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { acceptDrops } from '../../web/page/drop.js';

/** @param {string} name */
const file = (name) => ({ isFile: true, isDirectory: false, name, file: (/** @type {(file: File) => void} */ give) => give(new File([], name)) });

/** @param {string} name @param {any[]} inside */
function folder(name, inside) {
  // All entries in the first call, and none in the second.
  const createReader = () => {
    const parts = [inside, []];
    return { readEntries: (/** @type {(entries: any[]) => void} */ give) => give(parts.shift() ?? []) };
  };
  return { isFile: false, isDirectory: true, name, createReader };
}

it('takes models, latents of every format and configurations out of a folder', async (t) => {
  /** @type {Record<string, (event: any) => void>} */
  const listeners = {};
  const { addEventListener } = globalThis;
  Object.assign(globalThis, { addEventListener: (/** @type {string} */ type, /** @type {any} */ listener) => { listeners[type] = listener; } });
  t.after(() => Object.assign(globalThis, { addEventListener }));
  const names = ['a.safetensors', 'b.npy', 'ComfyUI_00001_.latent', 'config.json', 'README.md', 'image.png'];
  const items = [{ webkitGetAsEntry: () => folder('things', names.map(file)) }];
  const taken = await new Promise((resolve, reject) => {
    acceptDrops(/** @type {any} */ ({ hidden: true }), resolve, reject);
    listeners.drop({ dataTransfer: { types: ['Files'], items, files: [] }, preventDefault: () => {} });
  });
  assert.deepEqual(taken.map((/** @type {File} */ { name }) => name), ['a.safetensors', 'b.npy', 'ComfyUI_00001_.latent', 'config.json']);
});
