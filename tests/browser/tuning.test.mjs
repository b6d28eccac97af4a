// @ts-check
// The fastest kernels of a device: measured, stored, and used by models opened later, with the same
// results bit by bit.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { inBrowsers } from './session.mjs';

const MODEL = 'toy_odd';

/** The client in a worker, as the page uses it. */
const CLIENT = '/web/src/worker.js';

/** The package's module that stores them. */
const KEPT = '/web/src/tuned.js';

inBrowsers({ models: [MODEL] }, (session) => {
  const folder = () => session.model(`${MODEL}/`);
  /** Trials of the first test. @type {import('../../web/src/index.js').Trial[]} */
  let measured = [];

  it('measures the kernels of a device, and keeps what is fastest', async (t) => {
    const found = await session.run(async (client) => {
      const { tune } = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
      /** @type {string[]} */
      const heard = [];
      const start = performance.now();
      const tuning = await tune({ onProgress: ({ phase }) => heard.push(phase) });
      return { tuning, seconds: (performance.now() - start) / 1000, phases: [...new Set(heard)], kept: await lab.kept('tuned') };
    }, CLIENT);
    const { kernels, trials, remembered } = found.tuning;
    t.diagnostic(`${found.seconds.toFixed(2)} s: ${trials.map(({ seconds }) => `${(1000 * seconds).toFixed(2)} ms`).join(', ')}`);
    assert.deepEqual([remembered, found.phases, found.kept.length], [true, ['compile'], 1]);
    const { key, ...kept } = JSON.parse(found.kept[0]);
    assert.match(key, /kernels [0-9a-f]{16}$/);
    assert.deepEqual(kept, { kernels });
    assert.ok(trials.length > 2, `${trials.length} candidates`);
    for (const trial of trials) assert.ok(trial.same_bits && trial.seconds > 0, JSON.stringify(trial));
    const [chosen, best] = [trials.find((trial) => JSON.stringify(trial.kernels) === JSON.stringify(kernels)), Math.min(...trials.map(({ seconds }) => seconds))];
    assert.ok(chosen === trials[0] ? best >= 0.95 * trials[0].seconds : chosen?.seconds === best && best < 0.95 * trials[0].seconds, JSON.stringify(found.tuning));
    ({ trials: measured } = found.tuning);
  });

  // Chromium compiles for seconds.
  if (session.kind === 'firefox') {
    it('keeps nothing where nothing is to be kept, and leaves a caller\'s device as it was', async () => {
      const found = await session.run(async (folder) => {
        const { device } = await lab.shared(folder);
        const before = lab.gpu.liveBytes();
        const kept = await lab.kept('tuned');
        const { remembered } = await lab.wgvae.tune({ device, remember: false });
        const stopped = await lab.outcome(lab.wgvae.tune({ device, signal: AbortSignal.abort('enough') }));
        return { remembered, same: `${kept}` === `${await lab.kept('tuned')}`, left: lab.gpu.liveBytes() - before, stopped: stopped.error?.message };
      }, folder());
      assert.deepEqual(found, { remembered: false, same: true, left: 0, stopped: 'enough' });
    });
  }

  it('takes them for models that are opened later, and not where others are asked for', async () => {
    const found = await session.run(async (folder, kept, trials) => {
      const { rememberKernels } = /** @type {typeof import('../../web/src/tuned.js')} */ (await import(kept));
      const { device, info } = await lab.shared(folder);
      const rules = JSON.stringify(info.adapter.kernels);
      const { key } = JSON.parse((await lab.kept('tuned'))[0]);
      // Another choice than the measured one.
      const other = trials[1].kernels;
      const use = async (/** @type {import('../../web/src/index.js').ModelOptions['kernels']} */ kernels) => {
        const decoder = await lab.open(folder, { device, precision: 'f32', kernels });
        const { choice } = decoder.plan({ width: 88, height: 40 });
        return { decoder, choice: JSON.stringify(choice) };
      };
      const decode = async (/** @type {{ decoder: import('../../web/src/index.js').Decoder }} */ { decoder }) => {
        const { data } = await decoder.decode(`${folder}latents.safetensors`, { output: 'raw' });
        return { data, isExact: decoder.report?.predicted_peak_bytes === decoder.report?.measured_peak_bytes };
      };
      await rememberKernels(key, other);
      const [byTuning, byRules, byCaller] = [await use(undefined), await use('rules'), await use(other)];
      // Kernels of a device that has changed, and an invalid value.
      await rememberKernels(key, { ...other, winograd_scratch_bytes: 1 });
      const ofOther = await use('tuned');
      await rememberKernels(key, /** @type {any} */ ('kernels'));
      const ofNobody = await use('tuned');
      const errors = [];
      for (const kernels of [{}, { ...other, winograd_scratch_bytes: 1 }, 'fast', null]) {
        const { error } = await lab.outcome(lab.open(folder, { device, kernels: /** @type {any} */ (kernels) }));
        errors.push(`${error?.code}: ${error?.message.split(':')[0]}`);
      }
      await rememberKernels(key, info.adapter.kernels);
      const results = [byTuning, byRules, byCaller, ofOther, ofNobody];
      const [tunedDecode, rulesDecode] = [await decode(byTuning), await decode(byRules)];
      for (const { decoder } of results) await decoder.destroy();
      return {
        areFirst: JSON.stringify(trials[0].kernels) === rules,
        choices: results.map(({ choice }) => (choice === rules ? 'rules' : choice === JSON.stringify(other) ? 'other' : choice)),
        same: lab.isSame(tunedDecode.data, rulesDecode.data),
        areExact: tunedDecode.isExact && rulesDecode.isExact,
        errors,
      };
    }, folder(), KEPT, measured);
    assert.deepEqual(found, {
      areFirst: true,
      choices: ['other', 'rules', 'other', 'rules', 'rules'],
      same: true,
      areExact: true,
      errors: Array(4).fill('input: kernels'),
    });
  });
});
