// @ts-check
// Canvases that the GPU itself draws on.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { decoderShapes, fixture, weight } from './fixtures.mjs';
import { writeSafetensors } from './safetensors.mjs';
import { inBrowsers } from './session.mjs';

const MODEL = 'toy_direct';

inBrowsers({ models: [MODEL] }, (session) => {
  const folder = () => session.model(`${MODEL}/`);

  it('stays as it was after an abort that comes when the work is done', async () => {
    const found = await session.run(async (folder) => {
      const latents = `${folder}latents.safetensors`;
      const decoder = await lab.open(folder, { precision: 'f32' });
      const canvas = document.createElement('canvas');
      const controller = new AbortController();
      const onProgress = (/** @type {{ phase: string, done: number, total: number }} */ { phase, done, total }) => {
        if (phase === 'decode' && done === total) controller.abort();
      };
      const { error } = await lab.outcome(decoder.decode(latents, { canvas, signal: controller.signal, onProgress }));
      // It waits for the turn of the other.
      await decoder.decode(latents, { output: 'raw' });
      const presented = await lab.outcome(decoder.present(canvas));
      await decoder.destroy();
      return { name: error?.name, width: canvas.width, code: presented.error?.code };
    }, folder());
    assert.deepEqual(found, { name: 'AbortError', width: 300, code: 'input' });
  });

  it('gives PNG files, textures and buffers of the same pixels as image data', async () => {
    const found = await session.run(async (folder) => {
      const latents = `${folder}latents.safetensors`;
      const decoder = await lab.open(folder, { precision: 'f32' });
      const image = await decoder.decode(latents, { output: 'image-data' });
      const blob = await decoder.decode(latents, { output: 'blob' });
      const texture = await decoder.decode(latents, { output: 'texture' });
      const { width, height, format, usage } = texture;
      const pixels = await decoder.decode(latents, { output: 'buffer' });
      const presented = await lab.outcome(decoder.present(new OffscreenCanvas(1, 1)));
      const refused = await lab.outcome(decoder.decode(latents, { output: 'buffer', tiling: 'blend', tileSize: 32, tileOverlap: 8 }));
      // Another decode must not change it.
      await decoder.decode(latents, { output: 'raw' });
      const { device } = decoder;
      const bytesPerRow = Math.ceil((4 * width) / 256) * 256;
      const buffer = device.createBuffer({ size: bytesPerRow * height, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
      const encoder = device.createCommandEncoder();
      encoder.copyTextureToBuffer({ texture }, { buffer, bytesPerRow }, [width, height]);
      device.queue.submit([encoder.finish()]);
      const copy = device.createBuffer({ size: pixels.buffer.size, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
      const copying = device.createCommandEncoder();
      copying.copyBufferToBuffer(pixels.buffer, 0, copy, 0, copy.size);
      device.queue.submit([copying.finish()]);
      await Promise.all([buffer, copy].map((each) => each.mapAsync(GPUMapMode.READ)));
      const bytes = new Uint8ClampedArray(copy.getMappedRange()).slice();
      const padded = new Uint8Array(buffer.getMappedRange());
      const order = format === 'bgra8unorm' ? [2, 1, 0, 3] : [0, 1, 2, 3];
      const data = Uint8ClampedArray.from({ length: 4 * width * height }, (_, at) => padded[bytesPerRow * Math.floor(at / 4 / width) + 4 * ((at >> 2) % width) + order[at % 4]]);
      const drawn = new ImageData(data, width, height);
      for (const each of [buffer, copy, pixels.buffer, texture]) each.destroy();
      await decoder.destroy();
      return {
        png: lab.levelsApart(image, await lab.filePixels(URL.createObjectURL(blob))),
        type: blob.type,
        texture: lab.levelsApart(image, drawn),
        usage: usage === (GPUTextureUsage.COPY_SRC | GPUTextureUsage.COPY_DST | GPUTextureUsage.TEXTURE_BINDING | GPUTextureUsage.RENDER_ATTACHMENT),
        isPreferred: format === navigator.gpu.getPreferredCanvasFormat(),
        shape: pixels.shape,
        same: lab.isSame(bytes, image.data),
        isStorage: pixels.buffer.usage === (GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST),
        errors: [presented, refused].map(({ error }) => error?.code),
        left: lab.gpu.liveBytes(),
      };
    }, folder());
    const { shape, same, isStorage, errors, left, ...others } = found;
    assert.deepEqual(others, { png: 0, type: 'image/png', texture: 0, usage: true, isPreferred: true });
    assert.deepEqual({ shape, same, isStorage, errors, left }, { shape: [40, 88, 4], same: true, isStorage: true, errors: ['input', 'input'], left: 0 });
  });

  for (const kind of /** @type {const} */ (['HTMLCanvasElement', 'OffscreenCanvas'])) {
    it(`writes the same pixels to an ${kind} of any size as to image data`, async () => {
      const found = await session.run(
        async (folder, kind) => {
          const latents = `${folder}latents.safetensors`;
          const decoder = await lab.shared(folder);
          const wanted = await decoder.decode(latents, { output: 'image-data' });
          const canvas = kind === 'OffscreenCanvas' ? new OffscreenCanvas(7, 3) : document.createElement('canvas');
          if (canvas instanceof HTMLCanvasElement) document.body.append(canvas);
          const result = await decoder.decode(latents, { canvas });
          // Canvases lose their picture at the end of a task: present it again, and read it at
          // once.
          const presented = decoder.present(canvas);
          const levels = lab.levelsApart(wanted, lab.pixels(canvas));
          await presented;
          const before = decoder.ledger().current;
          await decoder.decode(latents, { canvas });
          return { isEmpty: result === undefined, size: [canvas.width, canvas.height], levels, left: decoder.ledger().current - before };
        },
        folder(),
        kind,
      );
      assert.deepEqual(found, { isEmpty: true, size: [88, 40], levels: 0, left: 0 });
    });
  }

  it('makes the same ImageBitmap', async () => {
    const found = await session.run(async (folder) => {
      const latents = `${folder}latents.safetensors`;
      const decoder = await lab.shared(folder);
      const wanted = await decoder.decode(latents, { output: 'image-data' });
      const bitmap = await decoder.decode(latents);
      return { isBitmap: bitmap instanceof ImageBitmap, levels: lab.levelsApart(wanted, lab.pixels(bitmap)) };
    }, folder());
    assert.deepEqual(found, { isBitmap: true, levels: 0 });
  });

  it('configures a canvas once for pictures of one size, keeps no textures for bitmaps, and leaves a canvas on the device of a caller as it is', async () => {
    const found = await session.run(async (folder) => {
      const latents = `${folder}latents.safetensors`;
      const { device } = await lab.shared(folder);
      const decoder = await lab.open(folder, { device });
      const before = lab.gpu.liveCanvases();
      for (let count = 0; count < 3; count += 1) (await decoder.decode(latents)).close();
      const afterBitmaps = lab.gpu.liveCanvases() - before;
      const canvas = document.createElement('canvas');
      lab.gpu.takeConfigurations();
      for (let count = 0; count < 3; count += 1) await decoder.decode(latents, { canvas });
      const sameSize = lab.gpu.takeConfigurations();
      await decoder.decode({ data: new Float32Array(4 * 4), shape: [1, 4, 2, 2] }, { canvas });
      const otherSize = lab.gpu.takeConfigurations();
      await decoder.destroy();
      return { afterBitmaps, sameSize, otherSize, size: [canvas.width, canvas.height], atTheEnd: lab.gpu.liveCanvases() - before };
    }, folder());
    assert.deepEqual(found, { afterBitmaps: 0, sameSize: 1, otherSize: 1, size: [16, 16], atTheEnd: 1 });
  });

  it('never takes a blank picture of a lost device for one, and lets go of canvases with its own device', async () => {
    const found = await session.run(async (folder) => {
      const latents = `${folder}latents.safetensors`;
      const before = lab.gpu.liveCanvases();
      /** @type {string[]} */
      const notices = [];
      const decoder = await lab.open(folder, { onNotice: ({ code }) => notices.push(code) });
      // Loses the device just before a picture is copied, after everything else succeeded.
      const { copyBufferToTexture } = GPUCommandEncoder.prototype;
      let armed = false;
      GPUCommandEncoder.prototype.copyBufferToTexture = function (...parameters) {
        if (armed) decoder.device.destroy();
        armed = false;
        return copyBufferToTexture.apply(this, parameters);
      };
      armed = true;
      const bitmap = await decoder.decode(latents);
      const right = await lab.isRight(folder, lab.pixels(bitmap));
      armed = true;
      const canvas = document.createElement('canvas');
      const { error } = await lab.outcome(() => decoder.present(canvas));
      GPUCommandEncoder.prototype.copyBufferToTexture = copyBufferToTexture;
      const whileThere = lab.gpu.liveCanvases() - before;
      await decoder.destroy();
      return { right, notices, code: error?.code, isTyped: error?.isTyped, whileThere, atTheEnd: lab.gpu.liveCanvases() - before };
    }, folder());
    assert.deepEqual(found, { right: true, notices: ['device-recovered'], code: 'device-lost', isTyped: true, whileThere: 1, atTheEnd: 0 });
  });

  it('rejects with typed errors only where a picture cannot be presented', async () => {
    const found = await session.run(async (folder) => {
      const { device } = await lab.shared(folder);
      const decoder = await lab.open(folder, { device });
      const canvas = document.createElement('canvas');
      const calls = [];
      // A call that throws instead of rejecting would fail here.
      calls.push(decoder.present(canvas).catch(lab.describe));
      await decoder.decode(`${folder}latents.safetensors`);
      calls.push(decoder.present(/** @type {any} */ ({})).catch(lab.describe));
      // The answer of Edge when the GPU process is gone.
      const { popErrorScope } = GPUDevice.prototype;
      GPUDevice.prototype.popErrorScope = function () {
        return Promise.reject(new DOMException('Instance dropped in popErrorScope', 'OperationError'));
      };
      calls.push(decoder.present(canvas).catch(lab.describe));
      const errors = await Promise.all(calls);
      GPUDevice.prototype.popErrorScope = popErrorScope;
      await decoder.destroy();
      calls.push(decoder.present(canvas).catch(lab.describe));
      return (await Promise.all(calls)).map((error) => ({ code: error?.code, isTyped: error?.isTyped }));
    }, folder());
    assert.deepEqual(found, ['input', 'canvas', 'device-failed', 'destroyed'].map((code) => ({ code, isTyped: true })));
  });

  it('shows the picture on the page', async () => {
    await session.run(async (folder) => {
      const canvas = Object.assign(document.createElement('canvas'), { id: 'shown' });
      document.body.prepend(canvas);
      const decoder = await lab.shared(folder);
      await decoder.decode(`${folder}latents.safetensors`, { canvas });
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    }, folder());
    const canvas = await session.page.$('#shown');
    const shot = await canvas?.screenshot({ encoding: 'base64' });
    const right = await session.run(
      async (folder, shot) => lab.isRight(folder, await lab.filePixels(`data:image/png;base64,${shot}`)),
      folder(),
      shot ?? '',
    );
    assert.ok(right, 'what the screen shows is not the picture');
  });

  for (const make of /** @type {const} */ (['2d', 'bitmaprenderer'])) {
    it(`refuses a canvas with a ${make} context before it decodes`, async () => {
      const found = await session.run(
        async (folder, make) => {
          const decoder = await lab.shared(folder);
          const canvas = document.createElement('canvas');
          if (!canvas.getContext(make)) return { code: `the browser has no ${make}` };
          const before = decoder.ledger().current;
          const { error } = await lab.outcome(decoder.decode(`${folder}latents.safetensors`, { canvas }));
          const left = decoder.ledger().current - before;
          const picture = await decoder.decode(`${folder}latents.safetensors`, { output: 'image-data' });
          return { code: error?.code, isTyped: error?.isTyped, width: picture.width, left };
        },
        folder(),
        make,
      );
      assert.deepEqual(found, { code: 'canvas', isTyped: true, width: 88, left: 0 });
    });
  }

  it('looks at the size of the picture, which the VAE\'s own latents have twice as many of where the diffusion model has patches', async () => {
    const { config } = await fixture('toy_flux2');
    const tensors = decoderShapes(JSON.parse(config)).map(([name, shape]) => /** @type {[string, import('./safetensors.mjs').Tensor]} */ ([name, weight(name, shape)]));
    const statistics = ['mean', 'var'].map((part) => /** @type {[string, import('./safetensors.mjs').Tensor]} */ ([`bn.running_${part}`, { shape: [32], data: new Float32Array(32).fill(1) }]));
    const model = session.server.route('/flux2.safetensors', { bytes: writeSafetensors([...tensors, ...statistics]) });
    const file = session.server.route('/flux2.json', { bytes: new TextEncoder().encode(config) });
    const found = await session.run(
      async (folder, model, file) => {
        const { device } = await lab.shared(folder);
        const decoder = await lab.wgvae.createDecoder({ model, config: file, device });
        // Too many for latents of the diffusion model.
        const columns = device.limits.maxTextureDimension2D / 16 + 1;
        const canvas = new OffscreenCanvas(7, 3);
        await decoder.decode({ data: new Float32Array(8 * 2 * columns), shape: [1, 8, 2, columns], unscaled: true }, { canvas });
        const { error } = await lab.outcome(decoder.decode({ data: new Float32Array(32 * columns), shape: [1, 32, 1, columns] }, { canvas: new OffscreenCanvas(7, 3) }));
        await decoder.destroy();
        return { isWide: canvas.width === 8 * columns, height: canvas.height, code: error?.code };
      },
      folder(),
      model,
      file,
    );
    assert.deepEqual(found, { isWide: true, height: 16, code: 'canvas' });
  });
});
