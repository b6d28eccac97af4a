// Bundles each program of the site into one file. Over a hundred small modules take a browser many
// round trips, and preloading them one by one takes as many requests. Usage: `node bundle.mjs
// FOLDER`, where the site's folder is laid out like the repository and has the npm package in
// `package`. Modules shared with another thread, or loaded on demand, stay separate.

import { join } from 'node:path';

import { build } from 'esbuild';

const [folder] = process.argv.slice(2);

/** Entry points of the page and its workers. */
const PROGRAMS = ['web/page/main.js', 'web/page/reports-page.js', 'web/page/worker.js', 'web/src/worker-host.js'];

/** Entry points of the package that pages without a build can load. */
const MODULES = ['index.js', 'worker.js', 'worker-host.js'];

/** Addresses in a program are relative to its file, so a bundle replaces its program in place. */
for (const path of PROGRAMS) await bundle(join(folder, path), join(folder, path));

// Beside the sources, where the same relative addresses lead to the wasm modules.
for (const name of MODULES) await bundle(join(folder, 'package/src', name), join(folder, 'package/dist', name), { minify: true });

/**
 * @param {string} source
 * @param {string} outfile
 * @param {import('esbuild').BuildOptions} [options]
 */
async function bundle(source, outfile, options) {
  await build({
    entryPoints: [source],
    outfile,
    allowOverwrite: true,
    bundle: true,
    format: 'esm',
    target: 'esnext',
    // Less to fetch. The page's programs keep their names, for those who debug it.
    minifyWhitespace: true,
    external: ['*/start-worker.js', '*/mediabunny.mjs', '*/wgvae_cpu.js', '*/wgvae_cpu_threads.js'],
    logLevel: 'warning',
    ...options,
  });
}
