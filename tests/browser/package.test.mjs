// @ts-check
// The npm package: its files, its types, and bundlers that take the wasm along.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { fixture } from './fixtures.mjs';
import { startServer } from './server.mjs';
import { DIST, inBrowsers, ROOT } from './session.mjs';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const PACKAGE = join(DIST, 'package');
const MODEL = 'toy_direct';

/**
 * Where a bundled application decodes, by its address. On WebGPU, Chromium compiles all kernels for
 * each page, so a short run decodes there in a worker only.
 * @type {{ device: 'webgpu' | 'cpu', module: string, worker: string, onlyInFull?: boolean }[]}
 */
const WAYS = [
  { device: 'webgpu', module: 'wgvae_bg.wasm', worker: '', onlyInFull: true },
  { device: 'webgpu', module: 'wgvae_bg.wasm', worker: '&worker' },
  { device: 'cpu', module: 'wgvae_cpu_bg.wasm', worker: '' },
  { device: 'cpu', module: 'wgvae_cpu_threads_bg.wasm', worker: '&worker&threads=2' },
];
const ways = WAYS.filter(({ onlyInFull }) => process.env.WGVAE_FULL || !onlyInFull);

/** The ways of a page without isolation, or of a bundle without the script of a thread. */
const withoutThreads = () => ways.map((way) => ({ ...way, module: way.module.replace('_threads', ''), worker: way.worker.replace('&threads=2', '') }));

/**
 * Lists the files below a folder, relative to it, sorted.
 * @param {string} folder
 * @returns {Promise<string[]>}
 */
async function filesIn(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => relative(folder, join(entry.parentPath, entry.name))).sort();
}

/**
 * Runs a program of node_modules/.bin, or npm. Its output is the error.
 * @param {string} program
 * @param {string[]} parameters
 * @param {string} cwd
 */
async function run(program, parameters, cwd) {
  const path = program === 'npm' ? program : join(HERE, 'node_modules', '.bin', program);
  try {
    return (await promisify(execFile)(path, parameters, { cwd })).stdout;
  } catch (error) {
    const { stdout, stderr } = /** @type {any} */ (error);
    throw new Error(`${program} ${parameters.join(' ')}:\n${stdout}${stderr}`);
  }
}

describe('the package', () => {
  it('holds the sources, their bundles, the modules and the licences, and nothing else', async () => {
    const [{ files }] = JSON.parse(await run('npm', ['pack', '--dry-run', '--json', '--offline'], PACKAGE));
    const packed = files.map((/** @type {{ path: string }} */ { path }) => path).sort();
    // The glue's declarations are for type-checking the sources: users have index.d.ts.
    const wanted = (await filesIn(PACKAGE)).filter((path) => !/^pkg\/.*\.d\.ts$/.test(path));
    assert.deepEqual(packed, wanted, 'all of dist/package that is used and no more');
    for (const needed of ['package.json', 'README.md', 'LICENSE-MIT', 'LICENSE-APACHE', 'src/index.js', 'src/index.d.ts', 'src/react.js', 'src/react.d.ts', 'dist/index.js', 'dist/worker.js', 'dist/worker-host.js', 'pkg/wgvae.js', 'pkg/wgvae_bg.wasm', 'pkg/wgvae_cpu.js', 'pkg/wgvae_cpu_bg.wasm', 'src/thread.js', 'pkg/wgvae_cpu_threads.js', 'pkg/wgvae_cpu_threads_bg.wasm']) {
      assert.ok(packed.includes(needed), `${needed} is missing`);
    }
    assert.ok(packed.every((/** @type {string} */ path) => /^(src|dist|pkg)\/|^(package\.json|README\.md|LICENSE-\w+)$/.test(path)), packed.join('\n'));
  });

  it('has the version of the crate', async () => {
    const { version } = JSON.parse(await readFile(join(PACKAGE, 'package.json'), 'utf8'));
    const cargo = await readFile(join(ROOT, 'Cargo.toml'), 'utf8');
    assert.equal(version, /^version = "(.*)"$/m.exec(cargo)?.[1]);
  });

  it('is typed without errors, the page and these tests, too', async () => {
    // Except the comparison and the example: they import packages that are installed elsewhere.
    await run('tsc', ['--project', 'tsconfig.json'], HERE);
  });

  it('names no registry in any lock file', async () => {
    for (const folder of ['tests/browser', 'examples/onnx', 'benches/browser', 'web/vendor']) {
      const lock = await readFile(join(ROOT, folder, 'package-lock.json'), 'utf8').catch(() => '{}');
      assert.doesNotMatch(lock, /"resolved"/, `${folder}/package-lock.json`);
    }
  });
});

// Isolated, so that workers have threads on the CPU.
inBrowsers({ kinds: ['chromium'], models: [MODEL], isolate: true }, (session) => {
  let app = '';
  before(async () => {
    await mkdir(join(ROOT, 'target'), { recursive: true });
    app = await mkdtemp(join(ROOT, 'target', 'bundle-'));
    await cp(join(HERE, 'app'), app, { recursive: true });
    await mkdir(join(app, 'node_modules'));
    await symlink(PACKAGE, join(app, 'node_modules', 'wgvae'), 'dir');
  });
  after(() => rm(app, { recursive: true, force: true }));

  it('has types that an application can use', async () => {
    await run('tsc', ['--project', 'tsconfig.json'], app);
  });

  it('is bundled by Vite', async () => {
    const { build } = await import('vite');
    await build({ root: app, base: './', logLevel: 'warn', configFile: false, build: { outDir: 'vite', target: 'esnext' }, worker: { format: 'es' } });
    await decodes(session, join(app, 'vite'), ways);
  });

  // Only React for development mounts twice in StrictMode.
  for (const mode of ['production', 'development']) {
    it(`decodes in the example for React under StrictMode, built by Vite for ${mode}`, async () => {
      const files = await builtExample(join(app, `react-${mode}`), mode);
      for (const file of files) session.server.route(`/react/${relative(app, file)}`, { file });
      const model = session.model(`${MODEL}/`);
      const query = new URLSearchParams({ model: `${model}diffusion_pytorch_model.safetensors`, config: `${model}config.json`, latents: `${model}latents.safetensors` });
      const page = await session.open('about:blank');
      await page.goto(session.server.url(`/react/react-${mode}/dist/index.html?${query}`));
      // A canvas without a picture has 300x150 pixels.
      await page.waitForFunction(() => document.querySelector('canvas')?.width !== 300 || /expected|failed|cannot/.test(document.querySelector('[role=status]')?.textContent ?? ''));
      const { size, levels } = await page.$eval('canvas', (canvas) => {
        const context = /** @type {OffscreenCanvasRenderingContext2D} */ (new OffscreenCanvas(canvas.width, canvas.height).getContext('2d'));
        context.drawImage(canvas, 0, 0);
        return { size: `${canvas.width}x${canvas.height}`, levels: [...context.getImageData(0, 0, canvas.width, canvas.height).data] };
      });
      assert.equal(size, '88x40', await page.$eval('[role=status]', (status) => status.textContent ?? ''));
      const { image } = await fixture(MODEL);
      const wrong = levels.filter((level, at) => at % 4 < 3 && Math.abs(level - levelOf(image, at)) > 1);
      assert.equal(wrong.length, 0, 'levels that are not those of diffusers');
      assert.deepEqual(session.complaints(), []);
      await session.closePage();
    });
  }

  it('is served by Vite while a page is developed', async () => {
    const { createServer } = await import('vite');
    const server = await createServer({
      root: app,
      logLevel: 'warn',
      configFile: false,
      // As in docs/guide/browser-bundlers.md.
      optimizeDeps: { exclude: ['wgvae'] },
      server: { host: '127.0.0.1', port: 0, strictPort: false, fs: { allow: [ROOT] }, proxy: { '/models': session.server.origin } },
    });
    try {
      await server.listen();
      const { port } = /** @type {import('node:net').AddressInfo} */ (server.httpServer?.address());
      // The first leaves the device to the package.
      for (const more of ['', ...withoutThreads().map(({ device, worker }) => `&device=${device}${worker}`)]) await decodesAt(session, `http://127.0.0.1:${port}/index.html?model=/models/${MODEL}/${more}`);
      await session.closePage();
    } finally {
      await server.close();
    }
  });

  it('is bundled by esbuild, with its module beside', async () => {
    const { build } = await import('esbuild');
    const entryPoints = { main: join(app, 'beside.js'), 'worker-host': join(app, 'node_modules/wgvae/src/worker-host.js') };
    await build({ entryPoints, bundle: true, format: 'esm', outdir: join(app, 'esbuild'), logLevel: 'error', preserveSymlinks: true });
    await decodesBeside(session, join(app, 'esbuild'));
  });

  it('is bundled by rollup, with its module beside', async () => {
    const { rollup } = await import('rollup');
    /** Stands in for the plugin node-resolve. @type {import('rollup').Plugin} */
    const resolve = { name: 'resolve', resolveId: (name) => ({ wgvae: join(PACKAGE, 'src/index.js'), 'wgvae/worker': join(PACKAGE, 'src/worker.js') })[name] };
    const input = { main: join(app, 'beside.js'), 'worker-host': join(PACKAGE, 'src/worker-host.js') };
    const bundle = await rollup({ input, plugins: [resolve], onwarn: (warning) => assert.fail(warning.message) });
    await bundle.write({ dir: join(app, 'rollup'), format: 'es', entryFileNames: '[name].js' });
    await bundle.close();
    await decodesBeside(session, join(app, 'rollup'));
  });

  it('is loaded by a page without a build, in few requests', async () => {
    const [webgpu, cpu] = [['pkg/wgvae_bg.wasm'], ['pkg/wgvae_cpu.js', 'pkg/wgvae_cpu_bg.wasm']];
    const threads = ['pkg/wgvae_cpu_threads.js', 'pkg/wgvae_cpu_threads_bg.wasm', 'src/thread.js'];
    const cases = [
      { script: 'index', device: 'webgpu', files: ['dist/index.js', ...webgpu] },
      { script: 'index', device: 'cpu', files: ['dist/index.js', ...cpu] },
      { script: 'worker', device: 'webgpu', files: ['dist/worker.js', 'dist/worker-host.js', ...webgpu] },
      { script: 'worker', device: 'cpu', files: ['dist/worker.js', 'dist/worker-host.js', ...threads] },
    ];
    const program = (await readFile(join(HERE, 'app', 'main.js'), 'utf8')).replace(/^import .*'wgvae.*$/gm, '').replace("query.has('worker') ? there : here", 'wgvae');
    for (const { script, device, files } of cases) {
      const page = `<!doctype html><link rel="icon" href="data:,"><script type="module">import * as wgvae from '/package/dist/${script}.js';\n${program}</script>`;
      session.server.route('/page/index.html', { bytes: page, type: 'text/html' });
      const before = session.server.seen().length;
      await decodesAt(session, session.server.url(`/page/index.html?device=${device}&model=${encodeURIComponent(session.model(`${MODEL}/`))}`));
      const asked = session.server.seen().slice(before).map(({ path }) => path).filter((path) => !path.startsWith('/models/') && path !== '/page/index.html');
      // Each thread asks for its scripts.
      const others = asked.filter((path, index) => asked.indexOf(path) === index || !threads.some((file) => path.endsWith(file)));
      assert.deepEqual(others.sort(), files.map((file) => `/package/${file}`).sort(), `${script} on ${device}`);
    }
    await session.closePage();
  });

  it('is imported from another origin, as from a CDN', async () => {
    const cdn = await startServer({ root: DIST, cors: true, isolate: true });
    try {
      const found = await session.run(async (entry, client, host, folder) => {
        const here = /** @type {typeof import('../../web/src/index.js')} */ (await import(entry));
        const there = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
        const script = `import '${host}';`;
        const worker = new Worker(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })), { type: 'module' });
        const model = { device: /** @type {const} */ ('webgpu'), model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json` };
        const sizes = [];
        for (const decoder of [await here.createDecoder(model), await there.createDecoder({ ...model, worker })]) {
          const { width, height } = await decoder.decode(`${folder}latents.safetensors`, { output: 'image-data' });
          await decoder.destroy();
          sizes.push(`${width}x${height}`);
        }
        const onCpu = await there.createDecoder({ ...model, device: 'cpu', threads: 2, worker });
        sizes.push(onCpu.info.adapter.name);
        await onCpu.destroy();
        worker.terminate();
        return sizes;
      }, cdn.url('/package/dist/index.js'), cdn.url('/package/dist/worker.js'), cdn.url('/package/dist/worker-host.js'), `../models/${MODEL}/`);
      assert.deepEqual(found, ['88x40', '88x40', 'CPU (2 threads, SIMD128)']);
    } finally {
      await session.closePage();
      await cdn.close();
    }
  });

  it('is imported where there is no browser, by its names', async () => {
    const program = `const all = await Promise.all(['wgvae', 'wgvae/worker'].map((name) => import(name))); console.log(all.map(({ createDecoder }) => typeof createDecoder).join())`;
    await writeFile(join(app, 'ssr.mjs'), program);
    assert.equal((await promisify(execFile)(process.execPath, [join(app, 'ssr.mjs')])).stdout.trim(), 'function,function');
  });

  it('is bundled by webpack', async () => {
    const { default: webpack } = await import('webpack');
    const compiler = webpack({
      mode: 'production',
      context: app,
      entry: './main.js',
      output: { path: join(app, 'webpack'), filename: 'main.js', publicPath: 'auto', module: true },
      experiments: { outputModule: true },
      performance: false,
    });
    await new Promise((resolve, reject) => {
      compiler?.run((error, stats) => (error || stats?.hasErrors() ? reject(error ?? new Error(stats?.toString())) : resolve(undefined)));
    });
    await cp(join(app, 'index.html'), join(app, 'webpack', 'index.html'));
    await decodes(session, join(app, 'webpack'), ways);
  });
});

/**
 * Builds examples/react in `folder`, and returns the built files.
 * @param {string} folder
 * @param {string} mode of Vite
 */
async function builtExample(folder, mode) {
  const { build } = await import('vite');
  await cp(join(ROOT, 'examples', 'react'), folder, { recursive: true, filter: (path) => !/node_modules|dist$/.test(path) });
  // As npm installs it: a copy beside React, which the hook imports.
  await cp(PACKAGE, join(folder, 'node_modules', 'wgvae'), { recursive: true });
  for (const name of ['react', 'react-dom']) await symlink(join(HERE, 'node_modules', name), join(folder, 'node_modules', name), 'dir');
  const define = { 'process.env.NODE_ENV': JSON.stringify(mode) };
  await build({ root: folder, base: './', mode, define, logLevel: 'warn', build: { outDir: 'dist', minify: mode === 'production' } });
  const files = (await filesIn(join(folder, 'dist'))).map((file) => join(folder, 'dist', file));
  const texts = await Promise.all(files.filter((file) => file.endsWith('.js')).map((file) => readFile(file, 'utf8')));
  // A function of React for development alone.
  assert.equal(texts.some((text) => text.includes('doubleInvokeEffects')), mode === 'development');
  return files;
}

/**
 * Returns the level 0 to 255 of an image [1, 3, h, w] of -1 to 1 at an index of RGBA bytes.
 * @param {import('./safetensors.mjs').Tensor} image
 * @param {number} at
 */
function levelOf({ shape: [, , height, width], data }, at) {
  return Math.round(255 * Math.min(1, Math.max(0, data[(at % 4) * height * width + (at >> 2)] / 2 + 0.5)));
}

/**
 * Serves a bundle, opens it, and waits for its decodes with all of its modules.
 * @param {import('./session.mjs').Session} session
 * @param {string} folder
 * @param {typeof WAYS} ways
 */
async function decodes(session, folder, ways) {
  const files = await filesIn(folder);
  const wasm = files.filter((file) => file.endsWith('.wasm'));
  const modules = new Set(ways.map(({ module }) => module)).size;
  assert.equal(wasm.length, modules, `the modules in the bundle: ${files}`);
  for (const file of files) session.server.route(`/bundle/${file}`, { file: join(folder, file) });
  const contents = await Promise.all(wasm.map((file) => readFile(join(folder, file))));
  for (const { device, module: name, worker } of ways) {
    // Bundlers rename it.
    const own = await readFile(join(PACKAGE, 'pkg', name));
    const module = wasm[contents.findIndex((content) => content.equals(own))];
    assert.ok(module, `a module for ${device}: ${wasm}`);
    const fetched = () => session.server.seen(`/bundle/${module}`);
    const before = fetched().length;
    const page = await decodesAt(session, session.server.url(`/bundle/index.html?device=${device}&model=${encodeURIComponent(session.model(`${MODEL}/`))}${worker}`));
    if (name.includes('threads')) assert.match(await page.$eval('html', (html) => html.dataset.adapter ?? ''), /^CPU \(2 threads/);
    assert.ok(fetched().length > before && fetched().at(-1)?.status === 200, 'the bundle fetched its own module');
  }
  await session.closePage();
  for (const file of files) session.server.forget(`/bundle/${file}`);
}

/**
 * Does the same for a bundle that needs the page and the modules beside it.
 * @param {import('./session.mjs').Session} session
 * @param {string} folder
 */
async function decodesBeside(session, folder) {
  for (const module of ['wgvae_bg.wasm', 'wgvae_cpu_bg.wasm']) await cp(join(PACKAGE, 'pkg', module), join(folder, module));
  await cp(join(HERE, 'app', 'index.html'), join(folder, 'index.html'));
  // The bundle passes no module with threads, so one thread computes.
  await decodes(session, folder, withoutThreads());
}

/**
 * @param {import('./session.mjs').Session} session
 * @param {string} url
 */
async function decodesAt(session, url) {
  const page = await session.open('about:blank');
  await page.goto(url);
  await page.waitForFunction(() => /^\d+x\d+$/.test(document.title));
  assert.equal(await page.title(), '88x40');
  return page;
}
