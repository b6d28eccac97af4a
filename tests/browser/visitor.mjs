// @ts-check
// Actions and observations of a visitor of the page, for tests.

import assert from 'node:assert/strict';

import { WORKER } from './session.mjs';

/** @typedef {import('puppeteer-core').Page} Page */
/** @typedef {import('./session.mjs').Session} Session */

/** A small model, and the name of its file. */
export const MODEL = 'toy_direct';
export const FILE = 'diffusion_pytorch_model.safetensors';

/**
 * Opens the page with the small model, by a link.
 * @param {Session} session
 * @param {Record<string, string>} [more] parameters
 * @param {boolean} [wait] true to wait until it is open
 */
export async function openSmall(session, more = {}, wait = true) {
  const folder = session.model(`${MODEL}/`);
  const query = new URLSearchParams({ model: folder + FILE, config: `${folder}config.json`, latents: `${folder}latents.safetensors`, ...more });
  const page = await session.open(`/?${query}`);
  if (wait) await reach(page, 'ready', 'failed');
  return page;
}

/** Returns a function that puts `prefix` before a program. @param {string} prefix */
export function before(prefix) {
  return (/** @type {string} */ source) => `${prefix}\n${source}`;
}

/**
 * Serves a changed worker, or another changed program of the page, for one test.
 * @param {import('node:test').TestContext} t
 * @param {Session} session
 * @param {(source: string) => string} change of the program
 * @param {string} [path]
 */
export async function patchWorker(t, session, change, path = WORKER) {
  await session.serveProgram(path, change);
  t.after(() => session.serveProgram(path));
}

/**
 * @param {Page} page
 * @param {'model' | 'input'} kind
 * @param {string} address
 */
export async function openAddress(page, kind, address) {
  await page.$eval(`#${kind}-url`, (input, address) => { /** @type {HTMLInputElement} */ (input).value = address; }, address);
  await page.$eval(`#${kind}-form`, (form) => /** @type {HTMLFormElement} */ (form).requestSubmit());
}

/**
 * Waits until the page is in one of these states, and returns it.
 * @param {Page} page
 * @param {string[]} states
 */
export async function reach(page, ...states) {
  const handle = await page.waitForFunction((states) => states.includes(document.body.dataset.state ?? '') && document.body.dataset.state, {}, states);
  return handle.jsonValue();
}

/**
 * Returns the visible text of an element.
 * @param {Page} page
 * @param {string} id
 */
export function text(page, id) {
  return page.$eval(`#${id}`, (element) => (element instanceof HTMLElement && element.checkVisibility() ? element.innerText : ''));
}

/** True if the preview is shown. */
export const hasPreview = () => document.querySelector('#preview')?.checkVisibility();

/**
 * Collects the bar's values from now on, in `globalThis.bar`. A new work begins without a value.
 * @param {Page} page
 */
export function watchBar(page) {
  return page.evaluate(() => {
    /** @type {(number | undefined)[]} */
    const bar = [];
    Object.assign(globalThis, { bar });
    const progress = /** @type {HTMLProgressElement} */ (document.querySelector('#progress'));
    new MutationObserver(() => bar.push(progress.hasAttribute('value') ? progress.value : undefined)).observe(progress, { attributeFilter: ['value'] });
  });
}

/**
 * Checks that the bar has moved, and to the right only.
 * @param {Page} page
 */
export async function checkBar(page) {
  const values = (await page.evaluate(() => /** @type {any} */ (globalThis).bar)).filter((/** @type {any} */ value) => typeof value === 'number');
  assert.ok(values.length > 10, `${values.length} values`);
  assert.deepEqual(values, [...values].sort((one, other) => one - other));
  assert.ok(values[0] < 0.4 && values.at(-1) > 0.99, `from ${values[0]} to ${values.at(-1)}`);
}

/**
 * True if an element is visible without scrolling, or its first 100 pixels of height.
 * @param {Page} page
 * @param {string} selector
 */
export function isInSight(page, selector) {
  return page.$eval(selector, (element) => {
    const { top, bottom, height } = element.getBoundingClientRect();
    return height > 0 && top >= 0 && Math.min(bottom, top + 100) <= innerHeight;
  });
}

/**
 * @param {Page} page
 * @param {string} id
 * @param {string[]} paths
 */
export async function choose(page, id, ...paths) {
  const input = /** @type {import('puppeteer-core').ElementHandle<HTMLInputElement>} */ (await page.$(`#${id}`));
  await input.uploadFile(...paths);
}

/**
 * Collects the files that the page saves in `globalThis.saved`.
 * @param {Page} page
 */
export async function keepDownloads(page) {
  await page.evaluate(() => {
    /** @type {Blob[]} */
    const saved = [];
    Object.assign(globalThis, { saved });
    const original = URL.createObjectURL;
    URL.createObjectURL = (blob) => {
      if (blob instanceof Blob) saved.push(blob);
      return original.call(URL, blob);
    };
    HTMLAnchorElement.prototype.click = () => {};
  });
}

/**
 * Returns the file that `Download` saves, after `keepDownloads`.
 * @param {Page} page
 */
export async function save(page) {
  const before = await page.evaluate(() => /** @type {any} */ (globalThis).saved.length);
  await page.click('#download');
  await page.waitForFunction((before) => /** @type {any} */ (globalThis).saved.length > before, {}, before);
  return page.evaluate(async () => {
    const file = /** @type {any} */ (globalThis).saved.at(-1);
    const bytes = new Uint8Array(await file.arrayBuffer());
    return { name: file.name, type: file.type, data: `data:image/png;base64,${btoa(String.fromCharCode(...bytes))}` };
  });
}

/** Returns the pixels of the page's canvas on the screen, as base64 of a PNG. @param {Page} page */
export async function screenshot(page) {
  // The picture fades in unless motion is reduced.
  await page.waitForFunction(() => getComputedStyle(/** @type {Element} */ (document.querySelector('#compare'))).opacity === '1');
  // Firefox cuts between pixels if the page is scrolled by a part of a pixel.
  const clip = await page.$eval('#picture', (canvas) => {
    scrollTo({ top: 0, behavior: 'instant' });
    const { left, top, width, height } = canvas.getBoundingClientRect();
    return { x: Math.round(left), y: Math.round(top), width: Math.round(width), height: Math.round(height) };
  });
  return String(await page.screenshot({ encoding: 'base64', clip }));
}

/**
 * Returns the mean difference of two pictures, in levels; Infinity if their sizes differ.
 * @param {Page} page
 * @param {string} a a data URL or one of the same site
 * @param {string} b
 * @param {number} [power] of each difference
 */
export function apart(page, a, b, power = 1) {
  return page.evaluate(async (a, b, power) => {
    const pixels = async (/** @type {string} */ url) => {
      const image = new Image();
      image.src = url;
      await image.decode();
      const canvas = Object.assign(document.createElement('canvas'), { width: image.naturalWidth, height: image.naturalHeight });
      const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
      context.drawImage(image, 0, 0);
      return context.getImageData(0, 0, canvas.width, canvas.height);
    };
    const [first, second] = await Promise.all([pixels(a), pixels(b)]);
    if (first.width !== second.width || first.height !== second.height) return Infinity;
    return first.data.reduce((sum, value, index) => sum + Math.abs(value - second.data[index]) ** power, 0) / first.data.length;
  }, a, b, power);
}

/**
 * Drops something on the page. Scripts cannot create folders nor unreadable files, so the page
 * makes them up: files, or a folder by the function that reads it.
 * @param {Page} page
 * @param {(names: string[]) => { files?: Iterable<File>, folder?: Function } | Promise<{ files?:
 * Iterable<File>, folder?: Function }>} made runs in the page
 * @param {string[]} [names] arguments of `made`
 */
export async function drop(page, made, names = []) {
  const dropped = await page.evaluateHandle(/** @type {any} */ (made), names);
  await page.evaluate((/** @type {{ files?: Iterable<File>, folder?: Function }} */ { files = [], folder }) => {
    const entry = { isDirectory: true, isFile: false, name: 'folder', createReader: () => ({ readEntries: folder }) };
    const items = folder ? [{ webkitGetAsEntry: () => entry }] : [...files].map(() => ({ webkitGetAsEntry: () => null }));
    for (const type of ['dragenter', 'dragover', 'drop']) {
      const event = new Event(type, { bubbles: true, cancelable: true });
      Object.defineProperty(event, 'dataTransfer', { value: { types: ['Files'], files, items } });
      document.body.dispatchEvent(event);
    }
  }, /** @type {any} */ (dropped));
}
