// @ts-check
// Progress, cancelling, the queue, hidden tabs, and destroying. Memory returns to the same figure
// after each.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';

import { inBrowsers, ROOT } from './session.mjs';

/** @typedef {import('../../web/src/index.js').Progress} Progress */

/** A model that takes several submissions. */
const MODEL = 'toy_direct_long';

inBrowsers({ models: [MODEL] }, (session) => {
  const folder = () => session.model(`${MODEL}/`);

  it('tells how far loading, compiling and decoding are', async () => {
    const { told, compiled } = await session.run(async (folder) => {
      const { device } = await lab.shared(folder);
      /** @type {Progress[]} */
      const told = [];
      const decoder = await lab.open(folder, { device, onProgress: (/** @type {Progress} */ progress) => told.push(progress) });
      await decoder.decode(`${folder}latents.safetensors`);
      const compiled = decoder.report?.compiled;
      // Nothing is left to compile.
      await decoder.decode(`${folder}latents.safetensors`);
      await decoder.destroy();
      return { told, compiled };
    }, folder());
    const phases = told.map(({ phase }) => phase).filter((phase, index, all) => phase !== all[index - 1]);
    assert.deepEqual(phases, ['load', 'compile', 'decode']);
    const compiling = told.filter(({ phase }) => phase === 'compile');
    assert.deepEqual(compiling.map(({ done }) => done), Array.from({ length: (compiled ?? NaN) + 1 }, (_, done) => done), 'each kernel is told');
    assert.equal(compiling.at(-1)?.step, '', 'no kernel comes after the last');
    for (const phase of ['load', 'compile', 'decode']) {
      // `total` is 0 until it is known.
      const all = told.filter((progress) => progress.phase === phase && progress.total > 0);
      // Steps of the first decode.
      const steps = all.slice(0, all.findIndex(({ done, total }) => done === total) + 1);
      const last = steps.at(-1);
      assert.ok(last && steps.length >= 3, `${phase}: ${steps.length} messages`);
      assert.ok(steps.every(({ done }, index) => index === 0 || done >= steps[index - 1].done), `${phase} went backwards`);
      assert.ok(steps.every(({ step, total }) => (step.length > 0 || phase === 'compile') && total === last.total), `${phase}: ${JSON.stringify(steps)}`);
    }
  });

  it('refuses by name what is no number, instead of leaving it out', async () => {
    const found = await session.run(async (folder) => {
      const decoder = await lab.shared(folder);
      const latents = { data: new Float32Array(4 * 4), shape: [1, 4, 2, 2] };
      const said = async (/** @type {() => unknown} */ task) => (await lab.outcome(async () => void (await task()))).error?.message;
      const tiles = /** @type {const} */ ({ tiling: 'blend', output: 'image-data' });
      return [
        await said(() => lab.open(folder, { memoryBudget: NaN })),
        await said(() => lab.open(folder, { cache: { limit: NaN } })),
        await said(() => decoder.plan({ width: 64, height: 64, memoryBudget: Infinity })),
        await said(() => decoder.plan({ width: 64, height: 64, tiling: 'blend', tileOverlap: NaN })),
        await said(() => decoder.decode(latents, { memoryBudget: NaN })),
        await said(() => decoder.decode(latents, { memoryBudget: -1 })),
        await said(() => decoder.decode(latents, { memoryBudget: /** @type {any} */ ('512 MiB') })),
        await said(() => decoder.decode(latents, { index: NaN })),
        await said(() => decoder.decode(latents, { ...tiles, tileSize: NaN })),
      ];
    }, folder());
    assert.deepEqual(found, [
      'memoryBudget: expected a whole number, found NaN',
      'limit of the cache: expected a number of bytes, found NaN',
      'memoryBudget: expected a whole number, found Infinity',
      'tileOverlap: expected a whole number below 2 ** 32, found NaN',
      'memoryBudget: expected a whole number, found NaN',
      'memoryBudget: expected a whole number, found -1',
      'memoryBudget: expected a whole number, found "512 MiB"',
      'index: expected a whole number below 2 ** 32, found NaN',
      'tileSize: expected a whole number below 2 ** 32, found NaN',
    ]);
  });

  it('rejects with the reason of a signal that was aborted before', async () => {
    const found = await session.run(async (folder) => {
      const decoder = await lab.shared(folder);
      const before = lab.gpu.liveBytes();
      const reason = { why: 'before' };
      const signal = AbortSignal.abort(reason);
      const created = await lab.open(folder, { signal }).catch((/** @type {unknown} */ error) => error === reason);
      const decoded = await decoder.decode(`${folder}latents.safetensors`, { signal }).catch((/** @type {unknown} */ error) => error === reason);
      return { created, decoded, left: lab.gpu.liveBytes() - before };
    }, folder());
    assert.deepEqual(found, { created: true, decoded: true, left: 0 });
  });

  it('stops loading when it is aborted', async () => {
    const found = await session.run(async (folder) => {
      const before = lab.gpu.liveDevices();
      const controller = new AbortController();
      const reason = new Error('enough');
      const onProgress = (/** @type {{ done: number, step: string }} */ { done, step }) => {
        if (step === 'weights' && done > 0) controller.abort(reason);
      };
      const isReason = await lab.open(folder, { signal: controller.signal, onProgress }).catch((/** @type {unknown} */ error) => error === reason);
      return { isReason, freed: await lab.until(() => lab.gpu.liveDevices() === before) };
    }, folder());
    assert.deepEqual(found, { isReason: true, freed: true });
  });

  it('stops a decode when it is aborted, and the next one is right', async (t) => {
    const found = await session.run(async (folder) => {
      const latents = `${folder}latents.safetensors`;
      const decoder = await lab.shared(folder);
      const before = decoder.ledger().current;
      const controller = new AbortController();
      const reason = new Error('enough');
      let aborted = NaN;
      const onProgress = (/** @type {{ done: number }} */ { done }) => {
        if (done === 0 || controller.signal.aborted) return;
        aborted = performance.now();
        controller.abort(reason);
      };
      const isReason = await decoder.decode(latents, { signal: controller.signal, onProgress }).catch((/** @type {unknown} */ error) => error === reason);
      const waited = performance.now() - aborted;
      // The task behind the aborted one runs after that one has freed its memory.
      const again = await decoder.decode(latents, { output: 'image-data' });
      return { isReason, waited, left: decoder.ledger().current - before, right: await lab.isRight(folder, again) };
    }, folder());
    t.diagnostic(`rejected ${found.waited.toFixed(1)} ms after the abort`);
    assert.ok(found.waited < 100, `rejected ${found.waited} ms after the abort`);
    assert.deepEqual({ ...found, waited: 0 }, { isReason: true, waited: 0, left: 0, right: true });
  });

  it('frees what it reads for a shape that nobody waits for any more', async () => {
    const found = await session.run(async (folder) => {
      const decoder = await lab.shared(folder);
      const { Latents } = await lab.startWasm();
      const { fromFile } = Latents;
      const { free } = Latents.prototype;
      let [opened, freed] = [0, 0];
      const controller = new AbortController();
      Latents.fromFile = async (source) => {
        const latents = await fromFile(source);
        opened += 1;
        controller.abort(new Error('enough'));
        return latents;
      };
      Latents.prototype.free = function () {
        freed += 1;
        free.call(this);
      };
      const { error } = await lab.outcome(decoder.shapeOf(await lab.blob(`${folder}latents.safetensors`), { signal: controller.signal }));
      const isFreed = await lab.until(() => freed === 1);
      Latents.fromFile = fromFile;
      Latents.prototype.free = free;
      return { message: error?.message, opened, isFreed };
    }, folder());
    assert.deepEqual(found, { message: 'enough', opened: 1, isFreed: true });
  });

  it('goes on when the tab is hidden', async () => {
    // Begins a decode when the tab is hidden, and reports when it has ended.
    await session.run(async (folder) => {
      const decoder = await lab.shared(folder);
      const before = decoder.ledger().current;
      const hidden = new Promise((resolve) => {
        document.addEventListener('visibilitychange', () => document.visibilityState === 'hidden' && resolve(true));
      });
      Object.assign(globalThis, {
        unseen: hidden.then(async () => {
          const image = await decoder.decode(`${folder}latents.safetensors`, { output: 'image-data' });
          const { visibilityState } = document;
          return { visibilityState, right: await lab.isRight(folder, image), left: decoder.ledger().current - before };
        }),
      });
    }, folder());
    const other = await session.browser.newPage();
    await other.bringToFront();
    const found = await session.run(() => /** @type {any} */ (globalThis).unseen);
    await other.close();
    assert.deepEqual(found, { visibilityState: 'hidden', right: true, left: 0 });
  });

  it('keeps the same memory from decode to decode, all of it on the ledger', async () => {
    const figures = await session.run(async (folder) => {
      const { device } = await lab.shared(folder);
      const before = lab.gpu.liveBytes();
      const decoder = await lab.open(folder, { device });
      const figures = [];
      for (const output of /** @type {const} */ (['image-data', 'bitmap', 'raw', 'image-data', 'bitmap', 'raw'])) {
        await decoder.decode(`${folder}latents.safetensors`, { output });
        figures.push({ output, ledger: decoder.ledger().current, counted: lab.gpu.liveBytes() - before });
      }
      await decoder.destroy();
      return figures;
    }, folder());
    assert.deepEqual(figures.slice(0, 3), figures.slice(3));
    for (const { output, ledger, counted } of figures) assert.equal(ledger, counted, `${output}: the ledger and what the browser was asked for`);
  });

  it('has in its info and its report what the types list, and in its ledger the most that ever was', async () => {
    const { report, info, adapter, limits, kernels, peaks } = await session.run(async (folder) => {
      const { device } = await lab.shared(folder);
      const decoder = await lab.open(folder, { device });
      await decoder.decode(`${folder}latents.safetensors`, { output: 'image-data' });
      const large = decoder.ledger();
      const measured = decoder.report?.measured_peak_bytes;
      await decoder.decode({ data: new Float32Array(16), shape: [1, 4, 2, 2] }, { output: 'image-data' });
      const small = decoder.ledger();
      const { info } = decoder;
      const peaks = { large: large.peak === measured, isLess: (decoder.report?.measured_peak_bytes ?? 0) < large.peak, after: small.peak === large.peak };
      const keys = (/** @type {object} */ of) => Object.keys(of).sort();
      const found = { report: keys(decoder.report ?? {}), info: keys(info), adapter: keys(info.adapter), limits: keys(info.adapter.limits), kernels: keys(info.adapter.kernels), peaks };
      await decoder.destroy();
      return found;
    }, folder());
    assert.deepEqual(peaks, { large: true, isLess: true, after: true });
    const types = await readFile(join(ROOT, 'web', 'src', 'index.d.ts'), 'utf8');
    /**
     * Returns the names of an interface's fields.
     * @param {string[]} names names of the interface and of its bases
     */
    const fields = (...names) => names.flatMap((name) => {
      const [, body = ''] = new RegExp(`^export interface ${name}\\b[^{]*\\{\\n([^]*?)^\\}`, 'm').exec(types) ?? [];
      return [...body.matchAll(/^  (\w+)\??:/gm)].map(([, field]) => field);
    }).sort();
    assert.deepEqual(report, fields('Report'));
    assert.deepEqual(info, fields('ModelFacts', 'ModelInfo'));
    assert.deepEqual(adapter, fields('AdapterInfo'));
    assert.deepEqual(limits, fields('DeviceLimits'));
    assert.deepEqual(kernels, fields('Kernels'));
  });

  it('gives up compiling between two kernels, and goes on from there', async () => {
    const found = await session.run(async (folder) => {
      const [{ createComputePipelineAsync }, threads] = [GPUDevice.prototype, 2];
      Object.defineProperty(navigator, 'hardwareConcurrency', { value: threads, configurable: true });
      let asked = 0;
      GPUDevice.prototype.createComputePipelineAsync = function (descriptor) {
        asked += 1;
        return createComputePipelineAsync.call(this, descriptor);
      };
      const decoder = await lab.open(folder);
      const controller = new AbortController();
      let [total, left] = [0, 0];
      const onProgress = (/** @type {Progress} */ progress) => {
        if (progress.phase !== 'compile' || progress.done < 1) return;
        total = progress.total;
        controller.abort(new Error('enough'));
      };
      const latents = `${folder}latents.safetensors`;
      const { error } = await lab.outcome(decoder.decode(latents, { signal: controller.signal, onProgress }));
      // Kernels requested so far finish compiling; that turn ends before the next one begins.
      const image = await decoder.decode(latents, { output: 'image-data', onProgress: ({ phase, total: rest }) => { if (phase === 'compile') left ||= rest; } });
      const right = await lab.isRight(folder, image);
      const all = asked;
      await decoder.destroy();
      GPUDevice.prototype.createComputePipelineAsync = createComputePipelineAsync;
      delete (/** @type {any} */ (navigator).hardwareConcurrency);
      return { message: error?.message, total, left, all, right, threads };
    }, folder());
    const { total, left, all, threads, ...others } = found;
    assert.deepEqual(others, { message: 'enough', right: true });
    // At most the kernels in flight at the stop are requested again, one for each thread.
    assert.ok(left < total && left >= total - threads - 1, `${left} of ${total} were left`);
    assert.ok(all <= total + threads, `${all} were asked for, of ${total}`);
  });

  it('stops everything when it is destroyed, and can be destroyed twice', async () => {
    const found = await session.run(async (folder) => {
      const latents = `${folder}latents.safetensors`;
      const decoder = await lab.shared(folder);
      const { device } = decoder;
      const held = lab.gpu.liveBytes();
      let started = () => {};
      const running = new Promise((resolve) => { started = () => resolve(undefined); });
      const [first, second] = [decoder.decode(latents, { onProgress: started }), decoder.decode(latents)].map((decode) => lab.outcome(decode));
      await running;
      await Promise.all([decoder.destroy(), decoder.destroy()]);
      const third = await lab.outcome(() => decoder.decode(latents));
      const plan = await lab.outcome(() => decoder.plan({ width: 64, height: 64 }));
      const codes = [await first, await second, third, plan].map(({ error }) => error?.code);
      const { reason } = await device.lost;
      return { codes, reason, held: held > 0, ledger: decoder.ledger().current, left: lab.gpu.liveBytes(), devices: lab.gpu.liveDevices() };
    }, folder());
    assert.deepEqual(found, { codes: Array(4).fill('destroyed'), reason: 'destroyed', held: true, ledger: 0, left: 0, devices: 0 });
  });
});

inBrowsers({ models: [MODEL], device: 'cpu' }, (session) => {
  const folder = () => session.model(`${MODEL}/`);

  it('does not mind an abort after the end', async () => {
    const found = await session.run(async (folder) => {
      const controller = new AbortController();
      const { signal } = controller;
      const latents = `${folder}latents.safetensors`;
      const decoder = await lab.open(folder, { signal });
      await decoder.decode(latents, { signal });
      controller.abort();
      const image = await decoder.decode(latents, { output: 'image-data' });
      await decoder.destroy();
      return { right: await lab.isRight(folder, image), left: decoder.ledger().current };
    }, folder());
    assert.deepEqual(found, { right: true, left: 0 });
  });

  it('queues decodes that are asked for at once', async () => {
    const found = await session.run(async (folder) => {
      const decoder = await lab.shared(folder);
      const before = decoder.ledger().current;
      /** @type {string[]} */
      const order = [];
      const ask = (/** @type {string} */ name, /** @type {AbortSignal} */ signal = new AbortController().signal) => {
        const onProgress = () => order.at(-1) === name || order.push(name);
        return decoder.decode(`${folder}latents.safetensors`, { output: 'image-data', signal, onProgress });
      };
      const controller = new AbortController();
      const [first, second, third] = [ask('a'), ask('b', controller.signal), ask('c')];
      controller.abort(new Error('not b'));
      const isReason = await second.catch((/** @type {unknown} */ error) => String(error) === 'Error: not b');
      const isEarly = order.includes('c');
      const right = [await lab.isRight(folder, await first), await lab.isRight(folder, await third)];
      return { isReason, isEarly, right, order, left: decoder.ledger().current - before };
    }, folder());
    assert.deepEqual(found, { isReason: true, isEarly: false, right: [true, true], order: ['a', 'c'], left: 0 });
  });

  it('goes on when a listener throws, which is an uncaught error', async () => {
    const found = await session.run(async (folder) => {
      const { device } = await lab.shared(folder);
      /** @type {string[]} */
      const heard = [];
      const { reportError } = globalThis;
      Object.assign(globalThis, { reportError: (/** @type {unknown} */ error) => heard.push(String(error)) });
      const thrower = (/** @type {string} */ name) => () => { throw new Error(name); };
      const decoder = await lab.open(folder, { device, onProgress: thrower('progress of loading') });
      const image = await decoder.decode(`${folder}latents.safetensors`, { output: 'image-data', onProgress: thrower('progress of decoding') });
      await decoder.destroy();
      Object.assign(globalThis, { reportError });
      return { right: await lab.isRight(folder, image), heard: [...new Set(heard)] };
    }, folder());
    assert.deepEqual(found, { right: true, heard: ['Error: progress of loading', 'Error: progress of decoding'] });
  });

  it('reads latents at an address once for their shape and their decode', async () => {
    const name = '/once.safetensors';
    const url = session.server.route(name, { file: join(session.folder, MODEL, 'latents.safetensors') });
    const found = await session.run(async (folder, url) => {
      const decoder = await lab.shared(folder);
      const shape = await decoder.shapeOf(url);
      return { shape, right: await lab.isRight(folder, await decoder.decode(url, { output: 'image-data' })) };
    }, folder(), url);
    assert.deepEqual(found, { shape: [1, 4, 40, 24], right: true });
    assert.equal(session.server.seen(name).length, 1);
  });
});
