// Puts each program of the page into one file, in place: over a hundred small modules take a browser many round trips, and preloading them one by one takes as many requests.
// `node bundle.mjs FOLDER`: the folder is the site's, whose files lie as the repository's do. What another thread shares, or what is loaded only when it is needed, stays by itself.

import { join } from 'node:path';

import { build } from 'esbuild';

const [folder] = process.argv.slice(2);

/** Programs that a page or a worker begins with. */
const PROGRAMS = ['web/page/main.js', 'web/page/reports-page.js', 'web/page/worker.js', 'web/src/worker-host.js'];

/** Addresses in a program count from where it lies, so a bundle lies where its program did. */
for (const path of PROGRAMS) {
  const file = join(folder, path);
  await build({
    entryPoints: [file],
    outfile: file,
    allowOverwrite: true,
    bundle: true,
    format: 'esm',
    target: 'esnext',
    external: ['*/start-worker.js', '*/mediabunny.mjs'],
    logLevel: 'warning',
  });
}
