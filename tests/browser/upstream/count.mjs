// @ts-check
// Counts how often Firefox crashes on the page of this folder, in each of its variants: `node
// tests/browser/upstream/count.mjs [RUNS] [SECONDS]`.

import { fileURLToPath } from 'node:url';

import { launch } from '../browsers.mjs';
import { startServer } from '../server.mjs';

const VARIANTS = ['', '?flush=yes', '?by=repaint', '?by=repaint&flush=yes', '?by=repaint&repaint=no'];

const [runs = 5, seconds = 40] = process.argv.slice(2).map(Number);
const server = await startServer({ root: fileURLToPath(new URL('.', import.meta.url)), mounts: {} });
for (const variant of VARIANTS) {
  const ends = [];
  for (let run = 0; run < runs; run += 1) ends.push(await visit(server.url(`/index.html${variant}`)));
  const crashes = ends.filter(({ crashed }) => crashed).length;
  console.log(`index.html${variant}: ${crashes} of ${runs} crashed; ${ends.map(({ after, title }) => `${after} s, ${title}`).join('; ')}`);
}
await server.close();

/**
 * Keeps the page open until Firefox crashes, or for the given time.
 * @param {string} url
 */
async function visit(url) {
  const { browser, close } = await launch('firefox');
  const begin = performance.now();
  let [crashed, title] = [false, 'starting'];
  const gone = new Promise((resolve) => browser.process()?.once('exit', resolve)).then(() => { crashed = true; });
  const page = await browser.newPage();
  await page.goto(url).catch(() => {});
  while (!crashed && performance.now() - begin < seconds * 1000) {
    await Promise.race([gone, new Promise((resolve) => setTimeout(resolve, 500))]);
    title = await Promise.race([page.title(), gone.then(() => title)]).catch(() => title);
  }
  const end = { crashed, title, after: ((performance.now() - begin) / 1000).toFixed(1) };
  await close().catch(() => {});
  return end;
}
