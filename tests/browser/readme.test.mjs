// @ts-check
// Runs the JavaScript blocks of README.md, web/README.md and the guide unchanged, each in a page
// with the variables that the block expects.

import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';

import { KINDS } from './browsers.mjs';
import { latentsFile } from './fixtures.mjs';
import { publish } from './hub-server.mjs';
import { inBrowsers, ROOT } from './session.mjs';

/** The shapes of a published network, which `family: 'sdxl'` needs, and a small model. */
const [PUBLISHED, TOY] = ['sd15_128', 'toy_direct'];

/** A small model with a time axis. */
const CLIPS = 'clip_wan';

/** The hub model that a block names; here the small model replaces it. */
const ON_THE_HUB = 'stabilityai/sd-vae-ft-mse';

/** Addresses of the blocks' imports. */
const IMPORTS = {
  './wgvae/dist/index.js': '/package/dist/index.js',
  wgvae: '/web/src/index.js',
  'wgvae/worker': '/web/src/worker.js',
  'onnxruntime-web/webgpu': '/examples/onnx/node_modules/onnxruntime-web/dist/ort.webgpu.bundle.min.mjs',
};

/**
 * Code around a block: `before` defines what it expects, `after` throws unless it worked. `kind`:
 * the only browser in which it runs. README.md's block runs in both, and others do with `--full`,
 * else in Firefox, where Mesa has most kernels from other tests.
 * @typedef {{ before?: string, after: string, kind?: import('./browsers.mjs').Kind }} Around
 */

const CANVAS = "const canvas = document.createElement('canvas');";

/** By document, in order. @type {Record<string, Around[]>} */
const BLOCKS = {
  'README.md': [
    { before: `${CANVAS} const latents = 'latents.safetensors';`, after: `if (canvas.width !== 32) throw new Error(canvas.width + ' pixels wide');` },
  ],
  'web/README.md': [
    {
      before: 'const latents = new Float32Array(4 * 64 * 64).map((_, index) => Math.sin(index));',
      after: `if (picture.width !== 512 || picture.height !== 512) throw new Error(picture.width + 'x' + picture.height);`,
    },
    { before: '', after: `const canvas = document.getElementById('picture'); if (canvas.width !== 32) throw new Error(canvas.width + ' pixels wide');` },
    {
      before: `${CANVAS} const file = await lab.blob('/models/${TOY}/both.safetensors'); const config = '/models/${TOY}/config.json'; const latents = '/models/${TOY}/latents.safetensors';
        const said = []; console.log = (...words) => said.push(words.join(' '));`,
      after: `if (canvas.width !== 88 || !(peak > 0) || !said.some((line) => /^decode [1-9]/.test(line))) throw new Error(canvas.width + ' pixels wide, ' + peak + ' bytes, it said: ' + said);`,
    },
    {
      before: `${CANVAS} const picture = lab.noise(64, 48); const file = await lab.blob('/models/${TOY}/both.safetensors');`,
      after: `if (canvas.width !== 64 || String(latents.shape) !== '1,4,6,8') throw new Error(canvas.width + ' pixels wide, of latents ' + latents.shape);`,
    },
    {
      before: `let said = ''; console.log = (text) => { said = text; };`,
      after: `await decoder.destroy(); if (!/^4 channels, [1-9][0-9]+ bytes to download$/.test(said)) throw new Error('it said: ' + said);`,
    },
    {
      before: `let said = ''; console.log = (text) => { said = text; };`,
      after: `if (!/^[1-9][0-9]+ bytes at most, [1-9][0-9]+ multiply-adds, [1-9][0-9]+ bytes to and from the GPU$/.test(said) || parseInt(said) > 512 << 20) throw new Error('it said: ' + said);`,
    },
    {
      before: `${CANVAS} const latents = 'small.safetensors'; let said = '';
        const decoder = await lab.open('/models/${TOY}/', { memoryBudget: 1 });
        console.log = (text) => { said = text; };`,
      after: `if (!/^needs at least [0-9]+ bytes$/.test(said)) throw new Error('it said: ' + said);`,
    },
  ],
  'docs/guide/first-minutes.md': [
    { after: `if (canvas.width !== 32) throw new Error(canvas.width + ' pixels wide');` },
  ],
  'docs/guide/browser-addresses.md': [
    {
      before: `await lab.wgvae.clearCache(); await lab.attempt('/models/${TOY}/', '/models/${TOY}/diffusion_pytorch_model.safetensors', { cache: true });`,
      after: `if (!oldest || (await cachedFiles()).length !== 0) throw new Error('it is still kept');`,
      // `persistCache` makes Firefox ask the user, and nobody answers.
      kind: 'chromium',
    },
  ],
  'docs/guide/browser-apps.md': [
    {
      before: `${CANVAS} const latents = '/models/${TOY}/latents.safetensors'; const decoder = await lab.open('/models/${TOY}/', { device: 'cpu' });
        const older = decoder.preview(latents).then(() => 'done', ({ code }) => code);`,
      after: `if (canvas.width !== 88 || await older !== 'replaced') throw new Error(canvas.width + ' pixels wide, the older: ' + await older);`,
    },
    {
      before: `const latents = '/models/${TOY}/latents.safetensors'; const decoder = await lab.open('/models/${TOY}/', { device: 'cpu' }); const saved = [];`,
      after: `if (saved.length !== 1 || saved[0].type !== 'image/png') throw new Error(saved.length + ' pictures');`,
    },
  ],
  'docs/guide/browser-bundlers.md': [
    // A configuration file of Vite, and a worker from a CDN, tested in package.test.mjs.
    { after: '' },
    { after: '' },
  ],
  'docs/guide/browser-gpu.md': [
    {
      before: `${CANVAS}
        const file = await lab.blob('/readme/vae.safetensors');
        const tensor = (size, shape) => new ort.Tensor('float32', new Float32Array(size).map((_, index) => Math.sin(index)), shape);
        const feeds = { sample: tensor(32, [1, 4, 2, 4]), target: tensor(32, [1, 4, 2, 4]), strength: new ort.Tensor('float32', [0.5], []) };
        // The example's graph, whose output has another name.
        const create = ort.InferenceSession.create;
        ort.InferenceSession.create = async (...parameters) => {
          const session = await create.apply(ort.InferenceSession, parameters);
          return { run: async (feeds) => ({ latents: (await session.run(feeds)).next }) };
        };`,
      after: `if (new Set(lab.pixels(canvas).data).size < 3) throw new Error('the canvas is of one colour');`,
    },
    {
      before: `const said = []; console.log = (kernels, seconds) => said.push(typeof kernels.winograd_scratch_bytes, seconds > 0);`,
      after: `if (said.length < 4 || !said.every((each) => each === 'number' || each === true) || !remembered) throw new Error('it said: ' + said);`,
    },
    {
      before: `const [model, config, reference] = ['diffusion_pytorch_model.safetensors', 'config.json', 'reference.safetensors'].map((name) => '/models/${TOY}/' + name);
        const said = []; console.log = (elements, error) => said.push(elements, error > 0);`,
      after: `if (said.length < 16 || said.includes(false) || !rows.every(({ right }) => right)) throw new Error('it said: ' + said);`,
      // Chromium takes a minute and a half to compile everything.
      kind: 'firefox',
    },
  ],
  'docs/guide/browser-node.md': [
    // Programs for Node and for Deno, tested in runtimes-node.test.mjs.
    { after: '' },
    { after: '' },
  ],
  'docs/guide/browser-video.md': [
    {
      before: `const file = await lab.blob('/models/${CLIPS}/both.safetensors'); const pictures = [1, 2, 3, 4, 5].map((seed) => lab.noise(16, 16, 255, seed));
        const shown = []; const show = (frame) => shown.push(frame.constructor.name + frame.width);`,
      after: `if (String(shown) !== String(Array(5).fill('ImageBitmap16'))) throw new Error('shown: ' + shown);`,
    },
    {
      before: `const vae = await lab.openVae('/models/${CLIPS}/', { device: 'cpu', clips: true }); const latents = '/models/${CLIPS}/latents.safetensors'; const times = [];
        const encoder = { encode: ({ timestamp, format }) => times.push(timestamp, format) };`,
      after: `if (times.length !== 34 || times[2] !== 62500 || !times.includes('RGBX')) throw new Error('times: ' + times);`,
    },
  ],
};

/** Returns the blocks of JavaScript and HTML in a document. @param {string} text */
function blocksOf(text) {
  return [...text.matchAll(/^```(js|html)\n([\s\S]*?)^```$/gm)].map(([, language, code]) => ({ language, code }));
}

/**
 * Returns a page with the block and the code around it, in one module. `outcome` holds its result.
 * @param {{ language: string, code: string }} block
 * @param {Around} around
 */
function pageOf({ language, code }, { before = '', after }) {
  const [, body, script] = language === 'js' ? ['', '', code] : (/^([\s\S]*)<script type="module">([\s\S]*)<\/script>/.exec(code) ?? []);
  assert.ok(script, `a module script in ${code}`);
  return `<!doctype html><title>README</title>
    <script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script>
    <script>for (const event of ['error', 'unhandledrejection']) addEventListener(event, ({ message, reason }) => { outcome ||= 'failed: ' + (message ?? reason); }); var outcome = '';</script>
    <script type="module" src="/tests/lab.js"></script>${body}
    <script type="module">${before}\n${script}\n{${after}}\noutcome ||= 'done';</script>`;
}

/**
 * Replaces the documents' remote addresses by local ones.
 * @param {string} code
 */
function atHome(code) {
  const local = code.replaceAll('https://example.org/vae/', `/models/${TOY}/`).replaceAll('https://example.org/video-vae/', `/models/${CLIPS}/`);
  return local.replace(`hub('${ON_THE_HUB}')`, `hub('${ON_THE_HUB}', { endpoint: location.origin })`);
}

inBrowsers({ models: [PUBLISHED, TOY], clips: [CLIPS] }, (session) => {
  if (session.kind === 'chromium') {
    it('knows every page of the guide that has blocks', async () => {
      const guide = 'docs/guide';
      const pages = (await readdir(join(ROOT, guide))).map((name) => `${guide}/${name}`);
      const texts = await Promise.all(pages.map(async (page) => readFile(join(ROOT, page), 'utf8')));
      const found = pages.filter((_, index) => blocksOf(texts[index]).length > 0).sort();
      assert.deepEqual(found, Object.keys(BLOCKS).filter((document) => document.startsWith(guide)).sort());
    });
  }

  for (const [document, arounds] of Object.entries(BLOCKS)) {
    if (session.kind === 'chromium') {
      it(`${document} has the blocks that are run here`, async () => {
        assert.equal(blocksOf(await readFile(join(ROOT, document), 'utf8')).length, arounds.length);
      });
    }

    for (const [index, around] of arounds.entries()) {
      const kinds = around.kind ? [around.kind] : process.env.WGVAE_FULL || document === 'README.md' ? KINDS : ['firefox'];
      if (around.after === '' || !kinds.includes(session.kind)) continue;
      it(`runs block ${index + 1} of ${document}`, async () => {
        const block = blocksOf(await readFile(join(ROOT, document), 'utf8'))[index];
        session.server.route('/readme/vae.safetensors', { file: join(session.folder, PUBLISHED, 'diffusion_pytorch_model.safetensors') });
        session.server.route('/readme/latents.safetensors', { bytes: smallLatents() });
        session.server.route('/readme/small.safetensors', { bytes: smallLatents() });
        const [config, weights] = await Promise.all(['config.json', 'diffusion_pytorch_model.safetensors'].map((name) => readFile(join(session.folder, TOY, name))));
        session.server.route('/readme/model/config.json', { bytes: config });
        session.server.route('/readme/model/diffusion_pytorch_model.safetensors', { bytes: weights });
        publish({ server: session.server, store: session.server }, ON_THE_HUB, { 'config.json': config, 'diffusion_pytorch_model.safetensors': weights });
        session.server.route('/readme/unet.onnx', { file: join(ROOT, 'examples', 'onnx', 'step.onnx') });
        session.server.route('/readme/index.html', { bytes: pageOf({ ...block, code: atHome(block.code) }, around), type: 'text/html' });
        const page = await session.open('/readme/index.html');
        const outcome = await page.waitForFunction(() => /** @type {any} */ (globalThis).outcome);
        assert.equal(await outcome.jsonValue(), 'done');
      });
    }
  }
});

/** Returns latents [1, 4, 4, 4] of 32 pixels per side. */
function smallLatents() {
  return latentsFile({ shape: [1, 4, 4, 4], data: Float32Array.from({ length: 64 }, (_, index) => Math.sin(index)) });
}
