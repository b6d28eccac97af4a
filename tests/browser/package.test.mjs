// @ts-check
// The npm package: what is in it, its types, and that bundlers take the wasm along.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { DIST, inBrowsers, ROOT } from './session.mjs';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const PACKAGE = join(DIST, 'package');
const MODEL = 'toy_two_levels';

/** Files below a folder, relative to it, sorted. @param {string} folder @returns {Promise<string[]>} */
async function filesIn(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => relative(folder, join(entry.parentPath, entry.name))).sort();
}

/**
 * Runs a program of node_modules/.bin, or npm. What it printed is the error.
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
  it('holds the sources, the module and the licences, and nothing else', async () => {
    const [{ files }] = JSON.parse(await run('npm', ['pack', '--dry-run', '--json', '--offline'], PACKAGE));
    const packed = files.map((/** @type {{ path: string }} */ { path }) => path).sort();
    // The glue's declarations are for whoever checks the sources: users have index.d.ts.
    const wanted = (await filesIn(PACKAGE)).filter((path) => !/^pkg\/.*\.d\.ts$/.test(path));
    assert.deepEqual(packed, wanted, 'all of dist/package that is used and no more');
    for (const needed of ['package.json', 'README.md', 'LICENSE-MIT', 'LICENSE-APACHE', 'src/index.js', 'src/index.d.ts', 'pkg/wgvae.js', 'pkg/wgvae_bg.wasm']) {
      assert.ok(packed.includes(needed), `${needed} is missing`);
    }
    assert.ok(packed.every((/** @type {string} */ path) => /^(src|pkg)\/|^(package\.json|README\.md|LICENSE-\w+)$/.test(path)), packed.join('\n'));
  });

  it('has the version of the crate', async () => {
    const { version } = JSON.parse(await readFile(join(PACKAGE, 'package.json'), 'utf8'));
    const cargo = await readFile(join(ROOT, 'Cargo.toml'), 'utf8');
    assert.equal(version, /^version = "(.*)"$/m.exec(cargo)?.[1]);
  });

  it('is typed without errors, the page and these tests, too', async () => {
    // But for those of the comparison and of the example: they import packages that are installed elsewhere.
    await run('tsc', ['--project', 'tsconfig.json'], HERE);
  });

  it('names no registry in any lock file', async () => {
    for (const folder of ['tests/browser', 'examples/onnx', 'benches/browser', 'web/vendor']) {
      const lock = await readFile(join(ROOT, folder, 'package-lock.json'), 'utf8').catch(() => '{}');
      assert.doesNotMatch(lock, /"resolved"/, `${folder}/package-lock.json`);
    }
  });
});

inBrowsers({ kinds: ['chromium'], models: [MODEL] }, (session) => {
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
    await build({ root: app, base: './', logLevel: 'warn', configFile: false, build: { outDir: 'vite', target: 'esnext' } });
    await decodes(session, join(app, 'vite'));
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
    await decodes(session, join(app, 'webpack'));
  });
});

/**
 * Serves a bundle, opens it, and waits for its decode.
 * @param {import('./session.mjs').Session} session
 * @param {string} folder
 */
async function decodes(session, folder) {
  const files = await filesIn(folder);
  const wasm = files.filter((file) => file.endsWith('.wasm'));
  assert.equal(wasm.length, 1, `one module in the bundle: ${files}`);
  for (const file of files) session.server.route(`/bundle/${file}`, { file: join(folder, file) });
  const page = await session.open(`/bundle/index.html?model=${encodeURIComponent(session.model(`${MODEL}/`))}`);
  await page.waitForFunction(() => /^\d+x\d+$/.test(document.title));
  assert.equal(await page.title(), '20x18');
  assert.equal(session.server.seen(`/bundle/${wasm[0]}`).at(-1)?.status, 200, 'the bundle fetched its own module');
}
