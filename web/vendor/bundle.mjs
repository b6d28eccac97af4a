// Bundles each program of the page into one file, in place. Over a hundred small modules take a
// browser many round trips, and preloading them one by one takes as many requests. Usage: `node
// bundle.mjs FOLDER`, where the site's folder is laid out like the repository. Modules shared with
// another thread, or loaded on demand, stay separate.

import { join } from 'node:path';

import { build } from 'esbuild';

const [folder] = process.argv.slice(2);

/** Entry points of pages and workers. */
const PROGRAMS = ['web/page/main.js', 'web/page/reports-page.js', 'web/page/worker.js', 'web/src/worker-host.js'];

/** Addresses in a program are relative to its file, so a bundle replaces its program in place. */
for (const path of PROGRAMS) {
  const file = join(folder, path);
  await build({
    entryPoints: [file],
    outfile: file,
    allowOverwrite: true,
    bundle: true,
    format: 'esm',
    target: 'esnext',
    // Less to fetch. Names stay, for the messages of errors.
    minifyWhitespace: true,
    external: ['*/start-worker.js', '*/mediabunny.mjs', '*/wgvae_cpu.js'],
    logLevel: 'warning',
  });
}
