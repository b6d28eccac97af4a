// @ts-check
// Repeats the tests of one file, or of all, in one browser or in both, and counts failures: `node
// tests/browser/repeat.mjs firefox page 40`, `node tests/browser/repeat.mjs both all 10`. It tests
// the build of `cargo xtask web`.

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const [browser, name, runs = '10'] = process.argv.slice(2);
if (!browser || !name) throw new Error('expected BROWSER FILE [RUNS], such as: firefox page 40');

const counts = { passed: 0, failed: 0, crashed: 0 };
for (let run = 1; run <= Number(runs); run += 1) {
  const { code, said, seconds } = await test();
  const crashed = / ended by itself/.test(said);
  counts[crashed ? 'crashed' : code === 0 ? 'passed' : 'failed'] += 1;
  const wrong = code === 0 ? [] : said.split('\n').filter((line) => /^\s*not ok /.test(line));
  console.log([`${run}: ${crashed ? 'the browser crashed' : code === 0 ? 'passed' : 'failed'}, ${seconds.toFixed(0)} s`, ...wrong].join('\n'));
}
console.log(`${name} in ${browser}, ${runs} runs: ${counts.passed} passed, ${counts.failed} failed, ${counts.crashed} crashed`);
process.exitCode = counts.passed === Number(runs) ? 0 : 1;

/** @returns {Promise<{ code: number | null, said: string, seconds: number }>} */
function test() {
  const begin = performance.now();
  const program = fileURLToPath(new URL('run.mjs', import.meta.url));
  const env = { ...process.env, ...(browser === 'both' ? {} : { WGVAE_BROWSER: browser }) };
  const child = spawn(process.execPath, ['--test-reporter=tap', program, ...(name === 'all' ? [] : [name])], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.on('data', (bytes) => { said += bytes; });
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, said, seconds: (performance.now() - begin) / 1000 })));
}
