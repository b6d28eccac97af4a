// @ts-check
// `wgvae/worker`: the same as the package, from another thread.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { inBrowsers } from './session.mjs';

const [MODEL, CLIPS] = ['toy_direct', 'clip_wan'];

/** The client, as the page imports it. */
const CLIENT = '/web/src/worker.js';

inBrowsers({ models: [MODEL], clips: [CLIPS] }, (session) => {
  const folder = () => session.model(`${MODEL}/`);

  it('decodes and encodes the same as on the page, with the same plan, report, listeners and errors', async () => {
    const found = await session.run(async (folder, client) => {
      const { createVae } = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
      const options = { model: `${folder}both.safetensors`, config: `${folder}config.json`, device: /** @type {const} */ ('webgpu'), precision: /** @type {const} */ ('f32') };
      const latents = `${folder}latents.safetensors`;
      /** @type {string[]} */
      const heard = [];
      const [here, there] = [await lab.wgvae.createVae(options), await createVae({ ...options, onProgress: ({ phase }) => heard.push(phase), onNotice: ({ code }) => heard.push(code) })];
      const loading = heard.splice(0);
      const raws = [await here.decode(latents, { output: 'raw' }), await there.decode(latents, { output: 'raw' })];
      const decoding = heard.splice(0);
      const [, height, width] = raws[0].shape;
      const plans = [here.plan({ width, height }), await there.plan({ width, height })];
      const report = there.report;
      const ledger = await there.ledger();
      const canvas = document.createElement('canvas');
      await there.decode(latents, { canvas });
      const image = await here.decode(latents, { output: 'image-data' });
      const again = document.createElement('canvas');
      await there.present(again);
      const picture = lab.noise(45, 40);
      const encoded = [await here.encode(picture), await there.encode(picture)];
      const cropped = heard.splice(0);
      const budget = await lab.outcome(async () => there.plan({ width, height, memoryBudget: 1 }));
      const budgetHere = await lab.outcome(async () => here.plan({ width, height, memoryBudget: 1 }));
      const blob = await there.decode(latents, { output: 'blob' });
      const file = await there.encode(picture, { output: 'npy' });
      // A tensor that says whose latents it holds.
      const { data, shape: dims } = encoded[0];
      const tensor = { data, dims, type: 'float32', location: 'cpu', unscaled: true };
      const own = [await here.decode({ data, shape: dims, unscaled: true }, { output: 'raw' }), await there.decode(tensor, { output: 'raw' })];
      await here.destroy();
      await Promise.all([there.destroy(), there.destroy()]);
      const after = await lab.outcome(async () => there.decode(latents));
      return {
        same: raws[0].data.every((value, index) => value === raws[1].data[index]) && String(raws[0].shape) === String(raws[1].shape),
        plans: JSON.stringify(plans[0]) === JSON.stringify(plans[1]),
        loads: loading.length > 1 && new Set(loading).size === 1 && loading[0] === 'load',
        decodes: [...new Set(decoding)],
        peaks: report?.predicted_peak_bytes === report?.measured_peak_bytes && ledger.created > 0,
        info: there.info.latent_channels === here.info.latent_channels,
        shown: [lab.levelsApart(image, lab.pixels(canvas)), lab.levelsApart(image, lab.pixels(again))],
        encoded: encoded[0].data.every((value, index) => value === encoded[1].data[index]),
        cropped: cropped.includes('cropped'),
        own: own[0].data.every((value, index) => value === own[1].data[index]),
        errors: [budget.error, budgetHere.error],
        type: blob.type,
        file: file.size > encoded[0].data.byteLength,
        after: after.error?.code,
      };
    }, folder(), CLIENT);
    const { errors: [there, here], ...others } = found;
    assert.deepEqual(others, {
      same: true, plans: true, loads: true, decodes: ['compile', 'decode'], peaks: true, info: true, shown: [0, 0], encoded: true, cropped: true, own: true, type: 'image/png', file: true, after: 'destroyed',
    });
    assert.equal(there.isTyped, true);
    assert.deepEqual([there.code, there.message, there.smallest], ['budget', here.message, here.smallest]);
  });

  it('keeps several models apart in one worker, and does there what needs none', async () => {
    const found = await session.run(async (folder, client) => {
      const there = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
      const worker = new Worker('/web/src/worker-host.js', { type: 'module' });
      const files = { model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json`, device: /** @type {const} */ ('webgpu'), cache: true, worker };
      const latents = `${folder}latents.safetensors`;
      await there.clearCache(undefined, { worker });
      /** @type {string[][]} */
      const heard = [[], []];
      // Both at once: messages for one must not reach the other.
      const [one, other] = await Promise.all(heard.map((all, index) => there.createDecoder({ ...files, unscaled: index === 1, onProgress: ({ phase }) => all.push(phase) })));
      const loads = heard.map((all) => all.splice(0).length > 0);
      const [first, second] = await Promise.all([one, other].map((decoder) => decoder.decode(latents, { output: 'raw' })));
      await one.destroy();
      // The other continues.
      const peak = (await other.plan({ width: 88, height: 40 })).predicted_peak_bytes;
      const { model, config } = files;
      const plan = { family: 'sd15', width: 512, height: 512, memoryBudget: 1 };
      const [budget, budgetHere] = [await lab.outcome(there.planFor({ ...plan, worker })), await lab.outcome(lab.wgvae.planFor(plan))];
      const nothing = await lab.outcome(there.inspect(/** @type {any} */ ({ model, fetch })));
      const answers = {
        families: String(await there.families({ worker })) === String(await lab.wgvae.families()),
        version: (await there.version()) === (await lab.wgvae.version()),
        inspection: JSON.stringify(await there.inspect({ model, config, worker })) === JSON.stringify(await lab.wgvae.inspect({ model, config })),
        plan: JSON.stringify(await there.planFor({ ...plan, memoryBudget: undefined })) === JSON.stringify(await lab.wgvae.planFor({ ...plan, memoryBudget: undefined })),
        budget: [budget.error?.isTyped, budget.error?.code, budget.error?.smallest === budgetHere.error?.smallest],
        refused: [nothing.error?.isTyped, nothing.error?.code],
      };
      const used = await there.cacheUsage({ worker });
      await there.clearCache(model, { worker });
      const left = await there.cacheUsage({ worker });
      await other.destroy();
      worker.terminate();
      const differs = first.data.some((value, index) => value !== second.data[index]);
      return { loads, differs, goesOn: peak > 0, answers, cache: [used.bytes > 0, left.bytes], side: (other.limits.maxTextureDimension2D ?? 0) >= 2048 };
    }, folder(), CLIENT);
    assert.deepEqual(found, {
      loads: [true, true], differs: true, goesOn: true, cache: [true, 0], side: true,
      answers: { families: true, version: true, inspection: true, plan: true, budget: [true, 'budget', true], refused: [true, 'input'] },
    });
  });

  it('takes relative addresses from the page, as without a worker', async () => {
    const found = await session.run(async (name, client) => {
      const there = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
      const folder = `../models/${name}/`;
      const sizes = [];
      for (const { createDecoder } of [lab.wgvae, there]) {
        const wasm = { cpu: '../web/pkg/wgvae_cpu_bg.wasm' };
        const decoder = await createDecoder({ device: 'cpu', model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json`, wasm });
        const { width, height } = await decoder.decode(`${folder}latents.safetensors`, { output: 'image-data' });
        sizes.push(`${width}x${height}`);
        await decoder.destroy();
      }
      return { sizes, page: location.pathname };
    }, MODEL, CLIENT);
    assert.deepEqual(found, { sizes: ['88x40', '88x40'], page: '/tests/blank.html' });
  });

  it('copies what it is given, and moves what it may', async () => {
    const found = await session.run(async (folder, client) => {
      const { createDecoder, transfer } = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
      const bytes = async () => new Uint8Array(await (await lab.blob(`${folder}diffusion_pytorch_model.safetensors`)).arrayBuffer());
      const [kept, moved] = [await bytes(), await bytes()];
      const size = kept.length;
      const config = await (await lab.blob(`${folder}config.json`)).text();
      const first = await createDecoder({ device: 'webgpu', model: kept, config });
      await first.destroy();
      const second = await createDecoder({ device: 'webgpu', model: transfer(moved, [moved.buffer]), config });
      const shape = [1, 4, 2, 2];
      const latents = new Float32Array(16).fill(0.5);
      const bitmap = await second.decode({ data: latents, shape });
      const left = latents.length;
      await second.decode(transfer({ data: latents, shape }, [latents.buffer]), { output: 'raw' });
      await second.destroy();
      return { kept: kept.length === size, moved: moved.length, bitmap: `${bitmap.width}x${bitmap.height}`, left, gone: latents.length };
    }, folder(), CLIENT);
    assert.deepEqual(found, { kept: true, moved: 0, bitmap: '16x16', left: 16, gone: 0 });
  });

  it('stops for a signal, with its reason, and goes on afterwards', async () => {
    const found = await session.run(async (folder, client) => {
      const { createDecoder } = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
      const options = { device: /** @type {const} */ ('webgpu'), model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json` };
      const latents = `${folder}latents.safetensors`;
      const reason = { why: 'enough' };
      const rejected = (/** @type {Promise<unknown>} */ promise) => promise.then(() => 'done', (error) => error === reason);
      const controllers = [1, 2, 3].map(() => new AbortController());
      let heard = 0;
      const listenOnce = () => {
        heard += 1;
        controllers[0].abort(reason);
      };
      const loading = rejected(createDecoder({ ...options, signal: controllers[0].signal, onProgress: listenOnce }));
      const decoder = await createDecoder(options);
      const running = rejected(decoder.decode(latents, { signal: controllers[1].signal, onProgress: () => controllers[1].abort(reason) }));
      const queued = rejected(decoder.decode(latents, { signal: controllers[2].signal }));
      controllers[2].abort(reason);
      const results = [await loading, await running, await queued, await rejected(decoder.decode(latents, { signal: AbortSignal.abort(reason) }))];
      const { width } = await decoder.decode(latents);
      await decoder.destroy();
      return { results, width, heard };
    }, folder(), CLIENT);
    assert.deepEqual(found, { results: [true, true, true, true], width: 88, heard: 1 });
  });

  it('ends its iterators and streams with the model, whose worker ends as well', async () => {
    const found = await session.run(async (folder, clips, client) => {
      const there = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
      const latents = `${folder}latents.safetensors`;
      const decoder = await there.createDecoder({ device: 'cpu', model: `${folder}diffusion_pytorch_model.safetensors`, config: `${folder}config.json` });
      const between = decoder.decodeEach(latents, { output: 'raw' });
      await between.next();
      for await (const _ of decoder.decodeEach(latents, { output: 'raw' })) {
        await decoder.destroy();
        break;
      }
      const code = async (/** @type {Promise<unknown>} */ call) => (await lab.outcome(call)).error?.code;
      const each = [await code(between.next()), await code(decoder.decodeEach(latents).next())];
      const vae = await there.createVae({ device: 'cpu', clips: true, model: `${clips}both.safetensors`, config: `${clips}config.json` });
      let [isStalled, isCancelled] = [false, false];
      const given = [lab.noise(16, 16)];
      const source = new ReadableStream({
        pull(controller) {
          const next = given.shift();
          if (next) return controller.enqueue(next);
          isStalled = true;
          return new Promise(() => {});
        },
        cancel: () => { isCancelled = true; },
      }, { highWaterMark: 0 });
      const reader = vae.clipStream(vae.encodeClip(source), { output: 'raw' }).getReader();
      await reader.read();
      const reading = code(reader.read());
      await lab.until(() => isStalled);
      await vae.destroy();
      const stream = await reading;
      await lab.until(() => isCancelled);
      return { each, stream };
    }, folder(), session.model(`${CLIPS}/`), CLIENT);
    assert.deepEqual(found, { each: ['destroyed', 'destroyed'], stream: 'destroyed' });
  });

  it('passes on what is wrong, as the package says it', async () => {
    const found = await session.run(async (folder, client) => {
      const { createDecoder } = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
      const config = `${folder}config.json`;
      const code = (/** @type {() => Promise<unknown>} */ task) => lab.outcome(task).then(({ error }) => [error?.isTyped, error?.code, error?.status]);
      const decoder = await createDecoder({ model: `${folder}diffusion_pytorch_model.safetensors`, config });
      const any = /** @type {any} */ (decoder);
      const codes = [
        await code(() => createDecoder({ model: `${folder}nowhere.safetensors`, config })),
        await code(() => createDecoder(/** @type {any} */ ({ model: new Blob(), config, fetch }))),
        await code(() => createDecoder({ model: new Blob(), config, worker: new Worker('/nowhere.js') })),
        await code(() => any.decode(document.body)),
        await code(() => any.encode(lab.noise(16, 16))),
        await code(() => any.decode(`${folder}latents.safetensors`, { output: 'texture' })),
        await code(() => any.decode(`${folder}latents.safetensors`, { canvas: lab.canvasOf(lab.noise(4, 4)) })),
        await code(() => any.decode(`${folder}latents.safetensors`, { canvas: document.createElement('canvas'), output: 'raw' })),
      ];
      await decoder.destroy();
      return codes;
    }, folder(), CLIENT);
    // Firefox logs that as well, even if the error was handled.
    if (session.kind === 'firefox') session.expectComplaint(/Loading Worker .*nowhere/);
    assert.deepEqual(found, [
      [true, 'http', 404], [true, 'input', null], [true, 'internal', null], [true, 'input', null], [true, 'input', null], [true, 'input', null], [true, 'canvas', null], [true, 'input', null],
    ].map((line) => line.map((value) => value ?? null)));
  });

  it('streams clips through it, both ways, and ends them', async () => {
    const found = await session.run(async (folder, client) => {
      const { createVae } = /** @type {typeof import('../../web/src/worker.js')} */ (await import(client));
      const options = { model: `${folder}both.safetensors`, config: `${folder}config.json`, device: /** @type {const} */ ('webgpu'), clips: true, precision: /** @type {const} */ ('f32') };
      const pictures = [1, 2, 3, 4, 5].map((seed) => lab.noise(16, 16, 255, seed));
      const [here, there] = [await lab.wgvae.createVae(options), await createVae(options)];
      const frames = async (/** @type {any} */ vae) => {
        const all = [];
        for await (const { data } of vae.clip(vae.encodeClip(pictures), { output: 'raw' })) all.push(...data);
        return all;
      };
      const [wanted, got] = [await frames(here), await frames(there)];
      // The report of its last part.
      const reports = [here, there].map(({ report }) => report?.predicted_peak_bytes);
      let ended = 0;
      async function* endless() {
        try {
          for (;;) yield pictures[0];
        } finally {
          ended += 1;
        }
      }
      let parts = 0;
      for await (const { frames } of there.encodeClip(endless())) {
        parts += frames;
        if (parts > 1) break;
      }
      const reason = new Error('enough');
      const controller = new AbortController();
      const aborted = await lab.outcome(async () => {
        for await (const _ of there.encodeClip(endless(), { signal: controller.signal })) controller.abort(reason);
      });
      await lab.until(() => ended === 2);
      await here.destroy();
      await there.destroy();
      return { same: wanted.length > 0 && wanted.every((value, index) => value === got[index]) && wanted.length === got.length, reports: reports[0] !== undefined && reports[0] === reports[1], parts, ended, aborted: aborted.error?.message };
    }, session.model(`${CLIPS}/`), CLIENT);
    assert.deepEqual(found, { same: true, reports: true, parts: 5, ended: 2, aborted: 'enough' });
  });
});
