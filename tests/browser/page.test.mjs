// @ts-check
// The page as a visitor sees it: its content, its buttons, and its errors.

import assert from 'node:assert/strict';
import { copyFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';

import { fixture, latentsFile } from './fixtures.mjs';
import { reportFiles } from './native.mjs';
import { inBrowsers, ROOT } from './session.mjs';
import { apart, before, checkBar, choose, drop, FILE, hasPreview, keepDownloads, MODEL, openAddress, openSmall, patchWorker, reach, save, screenshot, text, watchBar } from './visitor.mjs';

/** @typedef {import('puppeteer-core').Page} Page */

/**
 * Returns diffusers' picture as a data URL.
 * @param {Page} page
 * @param {string} url of a golden.json
 */
function goldenPicture(page, url) {
  return page.evaluate(async (url) => {
    const { width, height, rgba } = await fetch(url).then((response) => response.json());
    const canvas = Object.assign(document.createElement('canvas'), { width, height });
    canvas.getContext('2d')?.putImageData(new ImageData(Uint8ClampedArray.from(rgba), width, height), 0, 0);
    return canvas.toDataURL();
  }, url);
}

inBrowsers({ models: [MODEL] }, (session) => {
  const folder = () => join(session.folder, MODEL);

  it('sharpens a preview of the demo by its decode, asks nobody else, shows what it took, and fits a phone with a picture that is wider', async () => {
    const page = await session.open('/tests/blank.html');
    /** @type {string[]} */
    const requests = [];
    page.on('request', (request) => requests.push(request.url()));
    await page.setViewport({ width: 1280, height: 900 });
    await page.goto(session.server.url('/'));
    await watchBar(page);
    await page.waitForFunction(hasPreview);
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    await checkBar(page);
    assert.equal(await page.evaluate(hasPreview), false);
    const isSoftware = await page.evaluate(async () => /** @type {any} */ ((await navigator.gpu?.requestAdapter())?.info)?.isFallbackAdapter);
    assert.equal(await text(page, 'caption'), isSoftware ? 'Decoded by a software GPU driver' : 'Decoded on your GPU');
    assert.match(await text(page, 'phase'), /^\d.*iB of memory at the peak, as predicted$/);
    assert.match(await text(page, 'status'), /^Decoded 512 × 512 pixels in /);
    assert.match(await text(page, 'plan'), /peak \d.* MiB/);
    assert.match(await text(page, 'report'), /equal to the byte/);
    assert.match(await text(page, 'cache-size'), /MiB/);
    const levels = await apart(page, `data:image/png;base64,${await screenshot(page)}`, session.server.route('/native.png', { file: join(ROOT, 'assets', 'demo.png') }));
    assert.ok(levels < 1, `${levels} levels from the native picture`);
    const foreign = requests.filter((url) => !url.startsWith(session.server.origin) && !/^(data|blob):/.test(url));
    assert.deepEqual(foreign, []);
    await page.setViewport({ width: 390, height: 844 });
    await page.waitForFunction(() => innerWidth === 390 && document.documentElement.scrollWidth <= document.documentElement.clientWidth);
    // A model of the visitor's own, to which the demo's latents do not belong.
    await choose(page, 'model-file', join(folder(), FILE), join(folder(), 'config.json'));
    await page.waitForFunction((name) => document.querySelector('#model-name')?.textContent === name && ['idle', 'failed'].includes(document.body.dataset.state ?? ''), {}, FILE);
    assert.deepEqual([await text(page, 'status'), await text(page, 'input-name'), await text(page, 'problem')], ['Choose latents, a picture or a video', 'None', '']);
    assert.deepEqual(session.complaints(), []);
  });

  it('takes files, plans before it decodes, and saves what is on the canvas', async () => {
    const page = await openSmall(session);
    // Until a choice is taken up, nothing is ready to decode.
    const answered = await page.$eval('#precision', (select) => {
      select.dispatchEvent(new Event('change'));
      return [document.body.dataset.state, /** @type {HTMLButtonElement} */ (document.querySelector('#decode')).disabled];
    });
    assert.deepEqual(answered, ['loading', true]);
    await choose(page, 'model-file', join(folder(), FILE), join(folder(), 'config.json'));
    assert.equal(await reach(page, 'ready', 'failed'), 'ready', await text(page, 'problem'));
    assert.equal(await text(page, 'model-name'), FILE);
    await choose(page, 'input-file', join(folder(), 'latents.safetensors'));
    await reach(page, 'ready', 'failed');
    const plan = await text(page, 'plan');
    assert.match(plan, /Peak memory\s+\d.*iB\s+Weights\s+\d.*iB\s+Multiply-adds\s+\d.* G/);
    assert.equal(await page.$eval('#download', (button) => /** @type {HTMLButtonElement} */ (button).disabled), true, 'nothing to save yet');
    await keepDownloads(page);
    await page.click('#decode');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    assert.match(await text(page, 'status'), /^Decoded 88 × 40 pixels/);
    const golden = await goldenPicture(page, session.model(`${MODEL}/golden.json`));
    const checkSaved = async () => {
      const { name, type, data } = await save(page);
      assert.deepEqual({ name, type }, { name: 'latents.png', type: 'image/png' });
      assert.ok((await apart(page, data, golden)) < 1, 'the file is the picture');
      const levels = await apart(page, data, `data:image/png;base64,${await screenshot(page)}`);
      assert.ok(levels < 1, `the file is ${levels} levels from the screen`);
    };
    await checkSaved();
    assert.match(await page.$eval('#picture', (canvas) => canvas.getAttribute('aria-label') ?? ''), /latents\.safetensors, 88 by 40 pixels/);
    // The picture is still there after another model and a problem with the latents.
    await choose(page, 'model-file', join(folder(), FILE), join(folder(), 'config.json'));
    const unread = join(session.folder, 'unread.npy');
    await writeFile(unread, 'no latents');
    await choose(page, 'input-file', unread);
    await page.waitForFunction(() => document.body.dataset.problem === 'format');
    await checkSaved();
    assert.deepEqual(session.complaints(), []);
  });

  it('stops at once when told to, and decodes again', async (t) => {
    // Large enough to take a while.
    const large = join(session.folder, 'large.safetensors');
    await writeFile(large, latentsFile({ shape: [1, 4, 96, 96], data: new Float32Array(4 * 96 * 96) }));
    const page = await openSmall(session, { latents: session.model('large.safetensors') });
    await page.click('#decode');
    await reach(page, 'decoding');
    const start = performance.now();
    await page.click('#cancel');
    assert.equal(await reach(page, 'ready', 'failed', 'done'), 'ready');
    t.diagnostic(`${(performance.now() - start).toFixed(0)} ms until the page said so`);
    await choose(page, 'input-file', join(folder(), 'latents.safetensors'));
    await page.waitForFunction(() => document.querySelector('#status')?.textContent?.includes('88 × 40'));
    await page.click('#decode');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
  });

  it('says what is wrong, and goes on', async () => {
    const page = await openSmall(session);
    const broken = join(session.folder, 'broken.safetensors');
    await writeFile(broken, 'this is no model');
    const letter = join(session.folder, 'letter.txt');
    await writeFile(letter, 'a letter');
    const wrong = join(session.folder, 'wrong.npy');
    const header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 2, 2), }".padEnd(117) + '\n';
    await writeFile(wrong, Buffer.concat([Buffer.from('\x93NUMPY\x01\x00\x76\x00', 'latin1'), Buffer.from(header), Buffer.alloc(48)]));
    /** @type {[() => Promise<void>, string, RegExp][]} */
    const wrongs = [
      [() => choose(page, 'input-file', wrong), 'input', /3 channels/],
      [() => choose(page, 'input-file', broken), 'format', /broken/],
      [() => choose(page, 'input-file', letter), 'format', /letter/],
      [() => choose(page, 'model-file', broken), 'format', /broken/],
      [() => openAddress(page, 'model', '/nothing.safetensors'), 'http', /404/],
      [() => openAddress(page, 'model', '/'), 'http', /web page/],
    ];
    for (const [act, code, message] of wrongs) {
      await act();
      await page.waitForFunction((code) => document.body.dataset.problem === code, {}, code);
      assert.match(await text(page, 'problem'), message);
    }
    await choose(page, 'model-file', join(folder(), FILE), join(folder(), 'config.json'));
    // Wider than a texture.
    const wide = join(session.folder, 'wide.safetensors');
    await writeFile(wide, latentsFile({ shape: [1, 4, 1, 2100], data: new Float32Array(4 * 2100) }));
    await choose(page, 'input-file', wide);
    await page.waitForFunction(() => document.querySelector('#status')?.textContent?.includes('16800 × 8'));
    await page.click('#decode');
    await page.waitForFunction(() => document.body.dataset.problem === 'canvas');
    assert.match(await text(page, 'problem'), /too large to be shown: expected at most \d+ pixels/);
    await choose(page, 'input-file', join(folder(), 'latents.safetensors'));
    await page.waitForFunction(() => document.querySelector('#status')?.textContent?.includes('88 × 40'));
    assert.equal(await text(page, 'problem'), '', 'the problem is gone');
  });

  it('encodes a picture that is dropped, decodes it, and wipes between both', async () => {
    const page = await openSmall(session, { model: session.model(`${MODEL}/both.safetensors`) });
    await keepDownloads(page);
    // 61x42, of which 56x40 are whole latents.
    const original = await stripes(page, 2, 56, 40);
    await drop(page, async ([url]) => {
      const bytes = Uint8Array.from(atob(url.split(',')[1]), (letter) => letter.charCodeAt(0));
      return { files: [new File([bytes], 'stripes.png')] };
    }, [await stripes(page, 0, 61, 42)]);
    await page.waitForFunction(() => document.querySelector('#status')?.textContent === 'Ready to encode and decode 56 × 40 pixels');
    assert.match(await text(page, 'input-facts'), /61 × 42 pixels/);
    assert.match(await text(page, 'plan-of'), /^\d.*iB to encode, \d.*iB to decode; the chart shows the encode$/);
    assert.equal(await text(page, 'wipe-row'), '', 'nothing to compare yet');
    assert.match(await page.$eval('#original', (canvas) => canvas.getAttribute('aria-label') ?? ''), /stripes\.png, 56 by 40 pixels/);
    await page.click('#decode');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    assert.match(await text(page, 'status'), /^Encoded and decoded 56 × 40 pixels in /);
    assert.match(await text(page, 'notices'), /61x42 pixels is encoded without its borders, as 56x40/);
    assert.match(await text(page, 'report'), /Measured peak\s+\d.*iB, then \d.*iB, equal to the byte/);
    const { name, data } = await save(page);
    assert.equal(name, 'stripes-decoded.png');
    // By keyboard: all of one picture, then all of the other.
    await page.focus('#wipe');
    await page.keyboard.press('End');
    assert.equal(await page.$eval('#wipe', (range) => range.getAttribute('aria-valuetext')), '100 % original');
    const shown = async () => `data:image/png;base64,${await screenshot(page)}`;
    // The dividing line at the border differs.
    const [line, other] = [5, await apart(page, original, data)];
    assert.ok(other > 2 * line, `${other} levels: two pictures that can be told apart`);
    assert.ok((await apart(page, await shown(), original)) < line, 'the original');
    await page.keyboard.press('Home');
    assert.ok((await apart(page, await shown(), data)) < line, 'what was decoded');
    // Alpha is equal, and not counted.
    const psnr = 10 * Math.log10((255 ** 2 * 0.75) / (await apart(page, original, data, 2)));
    const said = await text(page, 'psnr');
    assert.ok(Math.abs(Number(/^PSNR (-?[\d.]+) dB$/.exec(said)?.[1]) - psnr) < 0.06, `${said}, not ${psnr}`);
    // By dragging on the picture.
    const box = await (await page.$('#compare'))?.boundingBox();
    assert.ok(box);
    await page.mouse.move(box.x + 0.25 * box.width, box.y + 5);
    await page.mouse.down();
    await page.mouse.move(box.x + 0.75 * box.width, box.y + 5);
    await page.mouse.up();
    assert.ok(Math.abs(Number(await page.$eval('#wipe', (range) => /** @type {HTMLInputElement} */ (range).value)) - 75) <= 2);
    // The original without its transparency, as it is encoded: the decoded picture must not show
    // through.
    await drop(page, async () => {
      const canvas = new OffscreenCanvas(56, 40);
      const context = canvas.getContext('2d');
      if (context) context.fillStyle = 'rgb(200 90 60 / 50%)';
      context?.fillRect(0, 0, 56, 40);
      return { files: [new File([await canvas.convertToBlob()], 'glass.png')] };
    });
    await page.waitForFunction(() => document.querySelector('#original')?.getAttribute('aria-label')?.includes('glass.png'));
    const glass = await page.$eval('#original', (canvas) => {
      const context = new OffscreenCanvas(56, 40).getContext('2d');
      context?.drawImage(/** @type {HTMLCanvasElement} */ (canvas), 0, 0);
      return [...(context?.getImageData(20, 20, 1, 1).data ?? [])];
    });
    assert.ok([200, 90, 60, 255].every((level, index) => Math.abs(level - glass[index]) <= 2), `${glass}`);
    // Latents remove the original.
    await choose(page, 'input-file', join(folder(), 'latents.safetensors'));
    await page.waitForFunction(() => document.querySelector('#status')?.textContent?.includes('decode 88 × 40'));
    await page.click('#decode');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    assert.equal(await text(page, 'wipe-row'), '');
    assert.equal(await page.$eval('#original', (canvas) => /** @type {HTMLElement} */ (canvas).hidden), true);
  });

  it('recovers from a lost device, says so, and asks for latents only once', async (t) => {
    await patchWorker(t, session, before(`
      let armed = false;
      new BroadcastChannel('lose').onmessage = () => { armed = true; };
      const { createCommandEncoder } = GPUDevice.prototype;
      GPUDevice.prototype.createCommandEncoder = function (...parameters) {
        if (armed) this.destroy();
        armed = false;
        return createCommandEncoder.apply(this, parameters);
      };`));
    const once = (/** @type {number} */ request) => (request > 0 ? 410 : undefined);
    const latents = session.server.route('/once.safetensors', { file: join(folder(), 'latents.safetensors'), fails: once });
    const page = await openSmall(session, { latents });
    await page.evaluate(() => new BroadcastChannel('lose').postMessage(''));
    await page.click('#decode');
    assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
    assert.match(await text(page, 'notices'), /device was lost/);
    assert.equal(session.server.seen('/once.safetensors').length, 1);
  });
});

inBrowsers({ models: [MODEL], device: 'cpu' }, (session) => {
  const folder = () => join(session.folder, MODEL);

  it('decodes each of several pictures', async () => {
    const { latents } = await fixture(MODEL);
    // The first latents, negated.
    const second = latents.data.map((value) => -value);
    const write = async (/** @type {string} */ name, /** @type {Float32Array[]} */ ...pictures) => {
      const data = Float32Array.from(pictures.flatMap((picture) => [...picture]));
      const file = join(session.folder, name);
      await writeFile(file, latentsFile({ shape: [pictures.length, ...latents.shape.slice(1)], data }));
      return file;
    };
    const page = await openSmall(session);
    const decode = async () => {
      await page.click('#decode');
      assert.equal(await reach(page, 'done', 'failed'), 'done', await text(page, 'problem'));
      return `data:image/png;base64,${await screenshot(page)}`;
    };
    const singles = [];
    for (const [name, data] of Object.entries({ first: latents.data, second })) {
      await choose(page, 'input-file', await write(`${name}.safetensors`, data));
      // The shape appears when the file has been read: it is not ready before.
      const isRead = (/** @type {string} */ name) => {
        const [found, shape] = ['#input-name', '#input-facts'].map((id) => document.querySelector(id)?.textContent);
        return found === name && shape !== '';
      };
      await page.waitForFunction(isRead, {}, `${name}.safetensors`);
      await reach(page, 'ready', 'failed');
      assert.equal(await text(page, 'index-row'), '', 'nothing to pick from one');
      singles.push(await decode());
    }
    assert.ok((await apart(page, singles[0], singles[1])) > 10, 'two pictures that can be told apart');
    await choose(page, 'input-file', await write('both.safetensors', latents.data, second));
    await page.waitForFunction(() => document.querySelector('#index-count')?.textContent === 'of 2');
    await reach(page, 'ready', 'failed');
    assert.ok((await apart(page, await decode(), singles[0])) < 1, 'the first, if nobody says which');
    for (const picture of [2, 1]) {
      await page.$eval('#index', (input, picture) => {
        /** @type {HTMLInputElement} */ (input).value = `${picture}`;
        input.dispatchEvent(new Event('change'));
      }, picture);
      await reach(page, 'ready', 'failed');
      const levels = await apart(page, await decode(), singles[picture - 1]);
      assert.ok(levels < 1, `picture ${picture}: ${levels} levels from the one decoded alone`);
    }
  });

  it('works by keyboard, with every control named', async () => {
    const page = await openSmall(session);
    const unnamed = await page.$$eval('button, input, select, canvas:not([aria-hidden]), progress, svg[role=img], a[href]', (controls) =>
      controls.filter((control) => {
        const labels = 'labels' in control ? [.../** @type {HTMLInputElement} */ (control).labels ?? []].map((label) => label.textContent) : [];
        const named = [control.getAttribute('aria-label'), control.getAttribute('aria-labelledby'), control.textContent, ...labels];
        return !named.some((name) => name?.trim());
      }).map((control) => control.outerHTML),
    );
    assert.deepEqual(unnamed, []);
    for (let presses = 0; presses < 30 && (await page.evaluate(() => document.activeElement?.id)) !== 'decode'; presses += 1) await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'decode', 'Tab leads to the button');
    await page.keyboard.press('Enter');
    assert.equal(await reach(page, 'done', 'failed'), 'done');
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'decode', 'the focus stays where it was');
  });

  it('says what is wrong with what was dropped, and goes on', async () => {
    const page = await openSmall(session);
    // A file that is removed after it was chosen.
    const gone = join(session.folder, 'gone.safetensors');
    await writeFile(gone, 'here for a moment');
    await page.evaluate(() => document.body.append(Object.assign(document.createElement('input'), { type: 'file', id: 'taken-up', hidden: true })));
    await choose(page, 'taken-up', gone);
    await rm(gone);
    /** @type {[() => any, string[], RegExp][]} */
    const drops = [
      [() => ({ files: [new File(['a letter'], 'letter.txt')] }), ['format'], /letter/],
      // Browsers that look at the file only now find it empty.
      [() => ({ files: /** @type {HTMLInputElement} */ (document.querySelector('#taken-up')).files }), ['changed', 'io', 'format'], /gone/],
      [() => ({ folder: (/** @type {any} */ _, /** @type {any} */ reject) => reject(new DOMException('no permission', 'NotReadableError')) }), ['io'], /no permission/],
      [() => ({ folder: (/** @type {any} */ resolve) => resolve([]) }), ['input'], /no \.safetensors, \.latent or \.npy file and no picture/],
    ];
    for (const [made, codes, message] of drops) {
      await drop(page, made);
      const isSaid = (/** @type {string} */ source) => new RegExp(source).test(document.querySelector('#problem-message')?.textContent ?? '');
      await page.waitForFunction(isSaid, {}, message.source);
      const code = await page.evaluate(() => String(document.body.dataset.problem));
      assert.ok(codes.includes(code), `${code}: ${await text(page, 'problem')}`);
      assert.equal(await page.$eval('#drop', (veil) => /** @type {HTMLElement} */ (veil).hidden), true);
    }
    await drop(page, async (names) => ({
      files: await Promise.all(names.map(async (name) => new File([await (await fetch(name)).blob()], name.split('/').at(-1) ?? ''))),
    }), [FILE, 'config.json', 'latents.safetensors'].map((name) => session.model(`${MODEL}/${name}`)));
    assert.equal(await reach(page, 'ready'), 'ready');
    assert.equal(await text(page, 'problem'), '', 'the problem is gone');
  });

  it('says that a model has no encoder, and decodes with it', async () => {
    const page = await openSmall(session);
    const picture = session.server.route('/picture', { file: join(ROOT, 'assets', 'demo.png') });
    await openAddress(page, 'input', picture);
    await page.waitForFunction(() => document.body.dataset.problem === 'input');
    assert.match(await text(page, 'problem'), /no encoder/);
    await choose(page, 'input-file', join(folder(), 'latents.safetensors'));
    await page.waitForFunction(() => document.querySelector('#status')?.textContent === 'Ready to decode 88 × 40 pixels');
    assert.equal(await text(page, 'problem'), '', 'the problem is gone');
  });

  it('tells of a server without ranges, unless the file is small', async () => {
    const whole = { file: join(folder(), FILE), ranges: false };
    // A file without a length may be of any size.
    const page = await openSmall(session, { model: session.server.route('/chunked.safetensors', { ...whole, chunked: true }) });
    assert.match(await text(page, 'notices'), /whole files only/);
    const small = await openSmall(session, { model: session.server.route('/whole.safetensors', whole) });
    assert.doesNotMatch(await text(small, 'notices'), /whole files/);
  });

  it('shows what it keeps, and clears it', async () => {
    const page = await openSmall(session);
    await page.waitForFunction(() => /iB$/.test(document.querySelector('#cache-size')?.textContent ?? ''));
    await page.click('#cache-clear');
    await page.waitForFunction(() => document.querySelector('#cache-size')?.textContent === 'nothing');
  });

  it('takes precision and budget from the link, and says which budget would do', async () => {
    const page = await openSmall(session, { precision: 'f32', budget: '0.001' });
    await page.waitForFunction(() => document.body.dataset.problem === 'budget');
    const [, smallest] = /smallest budget found is (\d+) MiB/.exec(await text(page, 'problem')) ?? [];
    assert.match(await text(page, 'settings-facts'), /f32, budget/);
    await page.$eval('#budget', (field, smallest) => {
      /** @type {HTMLInputElement} */ (field).value = smallest;
      field.dispatchEvent(new Event('change'));
    }, smallest);
    assert.equal(await reach(page, 'ready'), 'ready', `${smallest} MiB`);
  });

  it('plots more values than a call takes arguments', async () => {
    const page = await openSmall(session);
    const points = await page.evaluate(async () => {
      const { plot } = await import(/** @type {any} */ ('/crates/memory-report/src/view/plot.js'));
      const axis = { name: 'axis', label: String };
      const points = Array.from({ length: 600_000 }, (_, index) => ({ x: index + 1, y: 2 * index + 1 }));
      const figure = plot({ id: 'many', title: '', description: '', x: axis, y: axis, series: [], legend: [], guides: [{ name: 'all', source: 'here', points }] });
      return figure.querySelector('polyline').getAttribute('points').split(' ').length;
    });
    assert.equal(points, 600_000);
  });

  it('lets any file be chosen, for devices that know no other kinds', async () => {
    const page = await session.open('/tests/blank.html');
    await page.goto(session.server.url('/?model=none'));
    assert.deepEqual(await page.$$eval('#model-file, #input-file', (inputs) => inputs.map((input) => input.getAttribute('accept'))), [null, null]);
  });

  it('keeps choices that are made while it is busy', async (t) => {
    await patchWorker(t, session, before(`
      const { fetch } = self;
      const told = new Promise((resolve) => { new BroadcastChannel('begin').onmessage = resolve; });
      self.fetch = async (...parameters) => {
        if (String(parameters[0]?.url ?? parameters[0]).endsWith('.wasm')) await told;
        return fetch(...parameters);
      };`));
    const page = await openSmall(session, {}, false);
    // The worker has been asked to open a model and latents, and cannot yet.
    await page.select('#precision', 'f32');
    const latents = join(session.folder, 'chosen.safetensors');
    await copyFile(join(folder(), 'latents.safetensors'), latents);
    await choose(page, 'input-file', latents);
    await page.select('#family', '');
    const begun = await page.waitForFunction(() => {
      // Repeats until the worker listens.
      new BroadcastChannel('begin').postMessage('');
      return ['ready', 'idle', 'failed'].includes(document.body.dataset.state ?? '') && document.body.dataset.state;
    });
    assert.equal(await begun.jsonValue(), 'ready', await text(page, 'problem'));
    assert.match(await text(page, 'model-facts'), /, f32$/);
    assert.equal(await text(page, 'input-name'), 'chosen.safetensors');
  });

  it('says what to do where a precision needs WebGPU and there is none', async () => {
    const page = await session.open('/?precision=fast');
    assert.equal(await reach(page, 'done', 'failed'), 'failed');
    const said = await text(page, 'problem');
    assert.match(said, /Choose auto, f16 or f32/);
    for (const browser of ['Chrome', 'Edge', 'Firefox', 'Safari']) assert.ok(said.includes(browser), `${browser}: ${said}`);
  });

  it('shows memory reports, its own among them', async () => {
    const page = await openSmall(session);
    await page.click('#decode');
    await reach(page, 'done');
    await keepDownloads(page);
    await page.click('#export');
    const own = await page.evaluate(() => /** @type {any} */ (globalThis).saved[0].text());
    const [measurement] = JSON.parse(own).measurements;
    assert.equal(measurement.measured.ledger_peak, measurement.predicted.peak);
    const file = join(session.folder, 'own.json');
    await writeFile(file, own);
    await drop(page, async ([own]) => ({ files: [new File([own], 'own.json')] }), [own]);
    await page.waitForFunction(() => /a page of their own/.test(document.querySelector('#said')?.textContent ?? ''));
    await page.goto(session.server.url('/reports.html'));
    const reports = await reportFiles();
    await choose(page, 'reports-file', file, ...reports);
    // Each file is shown when it has been read.
    await page.waitForSelector('#reports[aria-busy="false"] #reports-plots svg');
    const shown = await page.$eval('#reports-plots', (host) => ({ plots: host.querySelectorAll('figure').length, rows: host.querySelectorAll('tr').length }));
    assert.ok(shown.plots >= 2 && shown.rows > reports.length, JSON.stringify(shown));
    assert.equal(await text(page, 'reports-problem'), '');
    const guides = await page.$$eval('#reports-plots svg[aria-labelledby^="peaks"]', (plots) => plots.map((plot) => plot.querySelectorAll('.guide').length));
    assert.deepEqual(guides, [3, 3], 'lines of estimates, for f16 and for f32');
    assert.equal(await page.$('#reports-plots svg[aria-labelledby^="clips"]'), null, 'no clips yet');
    // Clips of two lengths, beside reports of the first version of the format.
    const clips = join(session.folder, 'clips.json');
    await writeFile(clips, reportOfClips(own, [5, 17]));
    await choose(page, 'reports-file', clips);
    await page.waitForSelector('#reports-plots svg[aria-labelledby^="clips"]');
    const cells = await page.$$eval('#reports-plots [aria-label$="decodes of clips"] tbody tr', (rows) => rows.map((row) => [.../** @type {HTMLTableRowElement} */ (row).cells].map((cell) => cell.textContent)));
    assert.deepEqual(cells.map((row) => row.slice(1, 3)), [['88 × 40', '5'], ['88 × 40', '17']]);
    for (const row of cells) assert.deepEqual(row.slice(5, 9), ['3.0', '2.0', '0.5', '3.0'], row.join());
    const marks = await page.$$eval('#reports-plots svg[aria-labelledby^="clips"] .mark', (all) => all.map((mark) => mark.getAttribute('transform') ?? ''));
    assert.equal(marks.length, 2, 'one plot, a mark for each');
    const [short, long] = marks.map((transform) => transform.split(' '));
    assert.ok(short[1] === long[1] && short[0] !== long[0], `the peak does not depend on the length: ${marks}`);
    assert.equal(await page.$$eval('#reports-plots svg[aria-labelledby^="peaks"]', (plots) => plots.length), guides.length, 'pictures are drawn as before');
    assert.equal(await text(page, 'reports-problem'), '');
    // A table of their own.
    shown.rows += 3;
    const newer = join(session.folder, 'newer.json');
    await writeFile(newer, own.replace('"version": 2', '"version": 3'));
    await choose(page, 'reports-file', newer);
    await page.waitForFunction(() => /^newer\.json: version 3 .* expected 1 to 2/.test(document.querySelector('#reports-problem')?.textContent ?? ''));
    const odd = join(session.folder, 'odd.json');
    await writeFile(odd, own.replace(/"seconds": ([\d.e-]+)/, '"seconds": "$1"'));
    await choose(page, 'reports-file', odd);
    await page.waitForFunction(() => /^odd\.json: /.test(document.querySelector('#reports-problem')?.textContent ?? ''));
    const { measurements, ...lacks } = JSON.parse(own);
    for (const [report, problem] of /** @type {[object, string][]} */ ([[lacks, 'expected a list of measurements, found none'], [{ ...lacks, measurements: [{ ...measurements[0], width: undefined }] }, 'a measurement has no "width"']])) {
      await writeFile(odd, JSON.stringify(report));
      await choose(page, 'reports-file', odd);
      await page.waitForFunction((wanted) => document.querySelector('#reports-problem')?.textContent === wanted, {}, `odd.json: ${problem}`);
    }
    assert.equal(await page.$$eval('#reports-plots tr', (rows) => rows.length), shown.rows, 'the others stay');
    await choose(page, 'reports-file', join(folder(), 'config.json'));
    await page.waitForFunction(() => /not a memory report/.test(document.querySelector('#reports-problem')?.textContent ?? ''));
  });
});

/**
 * Returns the report of a page as if its picture had been clips.
 * @param {string} own
 * @param {number[]} lengths
 */
function reportOfClips(own, lengths) {
  const report = JSON.parse(own);
  const [row] = report.measurements;
  const mib = 2 ** 20;
  const predicted = { peak: 3 * mib, weights: mib, slots: mib / 2, parameters: 0, staging: 0, host: mib / 2, transferred: 0, states: { total: 2 * mib, gpu: 1.5 * mib } };
  const measured = { ...row.measured, ledger_peak: 3 * mib };
  return JSON.stringify({ ...report, measurements: lengths.map((frames) => ({ ...row, frames, predicted, measured })) });
}

/**
 * Returns a picture of stripes as a data URL.
 * @param {Page} page
 * @param {number} first index of the first stripe
 * @param {number} width
 * @param {number} height
 */
function stripes(page, first, width, height) {
  return page.evaluate((first, width, height) => {
    const canvas = Object.assign(document.createElement('canvas'), { width, height });
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    for (let column = 0; column < width; column += 1) {
      context.fillStyle = `rgb(${4 * (first + column)} 90 ${255 - 4 * (first + column)})`;
      context.fillRect(column, 0, 1, height);
    }
    return canvas.toDataURL();
  }, first, width, height);
}
