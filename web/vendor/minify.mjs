// Minifies JavaScript files in place: `node minify.mjs FILE...`. The glue of the wasm modules has a
// quarter of its download in words that only people need.

import { readFile, writeFile } from 'node:fs/promises';

import { transform } from 'esbuild';

for (const file of process.argv.slice(2)) {
  const { code } = await transform(await readFile(file, 'utf8'), { minify: true, format: 'esm', target: 'esnext' });
  await writeFile(file, code);
}
