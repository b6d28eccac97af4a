// @ts-check
// A browser, a server and models for the tests of one file, and a page that runs functions of the
// tests.

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { KINDS, shared } from './browsers.mjs';
import { clipModelFile } from './clip-models.mjs';
import { clipFixture, fixture, frameOf, latentsFile, modelFile } from './fixtures.mjs';
import { writeSafetensors } from './safetensors.mjs';
import { startServer } from './server.mjs';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The build of `cargo xtask web`. */
export const DIST = join(ROOT, 'dist');

/** The page's service worker. */
export const KEEPER = '/sw.js';

/** The page's worker for models. */
export const WORKER = '/web/page/worker.js';

/** Code that takes WebGPU away from a worker, so that models open on the CPU. */
const WITHOUT_WEBGPU = "Object.defineProperty(Object.getPrototypeOf(navigator), 'gpu', { value: undefined });\n";

const EXAMPLES = join(ROOT, 'examples');

const IN_PAGE = fileURLToPath(new URL('in-page/', import.meta.url));

/**
 * Time after which a wait counts as hanging, milliseconds. Machines differ by more than ten times,
 * so it measures no speed.
 */
const PATIENCE = 300_000;

/** Time in which a page that failed has to tell its text, milliseconds. */
const ANSWER = 10_000;

/** Messages of browsers that are no failures. */
const HARMLESS = new RegExp(
  [
    'Failed to load resource',
    'powerPreference option is currently ignored',
    // Firefox: failed requests, and work for a lost device. Other tests check both.
    'Cross-Origin Request Blocked',
    'Parent device is lost',
    'Encountered one or more errors while creating',
  ].join('|'),
);

/** @typedef {import('./browsers.mjs').Kind} Kind */

/**
 * Defines the same tests for each browser. One browser runs at a time.
 * @param {{ kinds?: Kind[], device?: 'webgpu' | 'cpu', isolate?: boolean, models?: string[] |
 * Record<Kind, string[]>, clips?: string[] }} options `device`: of the page's models, for which the
 * CPU compiles no shaders; `isolate`: cross-origin isolation, for threads; `models`, `clips`: names
 * of fixtures that the tests decode, for all browsers or for each
 * @param {(session: Session) => void} define
 */
export function inBrowsers({ kinds = KINDS, device = 'webgpu', isolate = false, models = [], clips = [] }, define) {
  for (const kind of kinds.filter((kind) => KINDS.includes(kind))) {
    describe(`${kind}, ${device}`, { timeout: 3 * PATIENCE }, () => {
      const session = new Session(kind, device, isolate);
      before(() => session.start(Array.isArray(models) ? models : models[kind], clips), { timeout: PATIENCE });
      afterEach(() => session.checkComplaints());
      after(() => session.stop());
      define(session);
    });
  }
}

export class Session {
  /** @type {import('./browsers.mjs').Running | undefined} */
  #browser;
  /** @type {import('puppeteer-core').Page | undefined} */
  #page;
  /** @type {import('./server.mjs').Server | undefined} */
  #server;
  #folder = '';
  /** Console messages and errors of the page. @type {string[]} */
  #said = [];

  /**
   * @param {Kind} kind
   * @param {'webgpu' | 'cpu'} device
   * @param {boolean} isolate
   */
  constructor(kind, device, isolate) {
    this.kind = kind;
    this.device = device;
    this.isolate = isolate;
  }

  /**
   * @param {string[]} models
   * @param {string[]} clips
   */
  async start(models, clips) {
    this.#folder = await mkdtemp(join(tmpdir(), 'wgvae-models-'));
    for (const name of models) await writeModel(join(this.#folder, name), await fixture(name));
    for (const name of clips) await writeClip(join(this.#folder, name), await clipFixture(name));
    this.#server = await startServer({ root: DIST, isolate: this.isolate, mounts: { '/tests/': IN_PAGE, '/models/': this.#folder, '/examples/': EXAMPLES } });
    // An empty service worker caches nothing: pages are always as the tests serve them. Tests of
    // the cache remove this route.
    this.#server.route(KEEPER, { bytes: '', type: 'text/javascript' });
    if (this.device === 'cpu') await this.serveProgram(WORKER);
    this.#browser = await shared(this.kind);
  }

  async stop() {
    try {
      await this.closePage();
    } finally {
      // Even if the browser is gone: an open server would keep the process alive.
      await this.#server?.close();
      await rm(this.#folder, { recursive: true, force: true });
    }
  }

  get server() {
    if (!this.#server) throw new Error('the session was not started');
    return this.#server;
  }

  get browser() {
    if (!this.#browser) throw new Error('the session was not started');
    return this.#browser.browser;
  }

  /**
   * Serves a program of the page, changed or as it is. The page's worker has no WebGPU if the
   * session's device is the CPU.
   * @param {string} path
   * @param {(source: string) => string} [change] of the program
   */
  async serveProgram(path, change = (source) => source) {
    const source = await readFile(join(DIST, path), 'utf8');
    const onDevice = path === WORKER && this.device === 'cpu' ? WITHOUT_WEBGPU + source : source;
    this.server.route(path, { bytes: change(onDevice), type: 'text/javascript' });
  }

  /** Folder of the tests' models. */
  get folder() {
    return this.#folder;
  }

  /** The open page. */
  get page() {
    if (!this.#page) throw new Error('no page is open');
    return this.#page;
  }

  /**
   * Returns the address of a model's file or folder.
   * @param {string} path
   */
  model(path) {
    return this.server.url(`/models/${path}`);
  }

  /**
   * Opens a page on our server, and watches it for uncaught errors.
   * @param {string} path
   */
  async open(path) {
    await this.closePage();
    const page = await this.browser.newPage();
    page.setDefaultTimeout(PATIENCE);
    this.#waitBetter(page);
    page.on('console', (message) => this.#said.push(`${message.type()}: ${message.text()}`));
    page.on('pageerror', (error) => this.#said.push(`uncaught: ${error instanceof Error ? error.message : error}`));
    await page.goto(path === 'about:blank' ? path : this.server.url(path));
    this.#page = page;
    return page;
  }

  /** Returns the unexpected messages of the page. */
  complaints() {
    return this.#said.filter((line) => /^(error|uncaught)/.test(line) && !HARMLESS.test(line));
  }

  /**
   * Removes a complaint that a test expects, and fails if there was none.
   * @param {RegExp} pattern
   */
  expectComplaint(pattern) {
    const others = this.#said.filter((line) => !pattern.test(line));
    if (others.length === this.#said.length) throw new Error(`expected a complaint like ${pattern}, the page said:\n${this.#said.join('\n')}`);
    this.#said = others;
  }

  /** Fails if the page has logged anything unexpected, above all uncaught errors. */
  checkComplaints() {
    const complaints = this.complaints();
    this.#said = [];
    if (complaints.length > 0) throw new Error(`the page complained:\n${complaints.join('\n')}`);
  }

  /**
   * Lets `waitForFunction` look by a timer, because a browser may stop drawing frames, and makes
   * its errors tell what the page shows.
   * @param {import('puppeteer-core').Page} page
   */
  #waitBetter(page) {
    const wait = page.waitForFunction.bind(page);
    page.waitForFunction = async (task, options, ...parameters) => {
      try {
        return await wait(task, { polling: 10, ...options }, ...parameters);
      } catch (cause) {
        const text = page.evaluate(() => `${document.body.dataset.state}: ${document.body.innerText}`).catch(String);
        const shown = await Promise.race([text, sleep(ANSWER, 'nothing: it does not answer', { ref: false })]);
        throw new Error(`${this.kind}: ${task} of ${JSON.stringify(parameters)}: ${cause}\nThe page shows ${shown}\nIt said ${this.#said.join('\n')}`, { cause });
      }
    };
  }

  async closePage() {
    await this.#page?.close();
    this.#page = undefined;
    this.#said = [];
  }

  /**
   * Runs a function in a page that has the package, as `lab` (in-page/lab.js). Arguments and result
   * pass as JSON, which drops undefined values.
   * @template {unknown[]} A
   * @template R
   * @param {(...args: A) => R} task
   * @param {A} args
   * @returns {Promise<Awaited<R>>}
   */
  async run(task, ...args) {
    const page = this.#page ?? (await this.#openLab());
    try {
      const result = await page.evaluate(/** @type {any} */ (task), ...args);
      return result === undefined ? result : JSON.parse(JSON.stringify(result));
    } catch (error) {
      throw new Error(`${this.kind}: ${error instanceof Error ? error.message : error}\n${this.#said.join('\n')}`);
    }
  }

  async #openLab() {
    const page = await this.open(`/tests/blank.html?device=${this.device}`);
    await page.waitForFunction(() => 'lab' in globalThis);
    return page;
  }
}

/**
 * Writes a model folder in diffusers' layout: the decoder alone, its latents, and the expected
 * picture. With a golden encode, also the model with its encoder, and the image.
 * @param {string} folder
 * @param {import('./fixtures.mjs').Fixture} fixture
 */
export async function writeModel(folder, { config, latents, image, encode }) {
  await mkdir(folder);
  await writeFile(join(folder, 'golden.json'), JSON.stringify(picture(image)));
  await writeFile(join(folder, 'config.json'), config);
  await writeFile(join(folder, 'diffusion_pytorch_model.safetensors'), modelFile(config));
  await writeFile(join(folder, 'latents.safetensors'), latentsFile(latents));
  await writeFile(join(folder, 'reference.safetensors'), writeSafetensors([['latents', latents], ['image', image]]));
  if (!encode) return;
  await writeFile(join(folder, 'both.safetensors'), modelFile(config, { encoder: true }));
  await writeFile(join(folder, 'image.safetensors'), writeSafetensors([['image', encode.image]]));
}

/**
 * @param {string} folder
 * @param {Awaited<ReturnType<typeof clipFixture>>} fixture
 */
async function writeClip(folder, { config, latents, encode: { pixels } }) {
  await mkdir(folder);
  // Networks without a class in diffusers have none.
  if (JSON.parse(config)._class_name.startsWith('Autoencoder')) await writeFile(join(folder, 'config.json'), config);
  await writeFile(join(folder, 'diffusion_pytorch_model.safetensors'), clipModelFile(config));
  await writeFile(join(folder, 'both.safetensors'), clipModelFile(config, { encoder: true }));
  for (let index = 0; index < pixels.shape[2]; index += 1) {
    await writeFile(join(folder, `frame_${index}.safetensors`), writeSafetensors([['image', frameOf(pixels, index)]]));
  }
  await writeFile(join(folder, 'latents.safetensors'), latentsFile(latents));
  // The VAE's own latents, as ComfyUI saves them.
  await writeFile(join(folder, 'own.latent'), writeSafetensors([['latent_tensor', latents], ['latent_format_version_0', { shape: [0], data: new Float32Array() }]]));
}

/**
 * Returns the pixels that a picture file of an image [1, 3, h, w] would have.
 * @param {import('./safetensors.mjs').Tensor} image
 */
function picture({ shape: [, , height, width], data }) {
  const plane = width * height;
  const rgba = Array.from({ length: 4 * plane }, (_, at) => {
    const value = at % 4 === 3 ? 1 : data[(at % 4) * plane + (at >> 2)];
    return Math.round(255 * Math.min(1, Math.max(0, value * 0.5 + 0.5)));
  });
  return { width, height, rgba };
}

/** Waits for a condition outside of the page. @param {() => boolean} condition */
export async function waitFor(condition) {
  for (const begin = performance.now(); !condition(); await sleep(20)) {
    if (performance.now() - begin > PATIENCE) throw new Error(`expected what never happened: ${condition}`);
  }
}

/** Returns floats that left a page as base64. @param {string} text */
export function floats(text) {
  const bytes = Uint8Array.from(Buffer.from(text, 'base64'));
  return new Float32Array(bytes.buffer);
}
