// @ts-check
// Canvases, written by the GPU itself.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { inBrowsers } from './session.mjs';

const MODEL = 'toy_odd';

inBrowsers({ models: [MODEL] }, (session) => {
  const folder = () => session.model(`${MODEL}/`);

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
          // Canvases lose their picture at the end of a task: it is presented again, and read at once.
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
});
