// @ts-check
// The package in Node, on Dawn, or in Deno, on its own WebGPU: decodes and encodes in the main
// thread, then in a worker thread, and prints both results; nothing without an adapter. It is a
// separate program because the GPU depends on the driver that it is started with. `node
// without-browser.mjs PACKAGE FOLDER`, where FOLDER is a model's.

import { openAsBlob } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';

const [entry, folder] = process.argv.slice(2);

if (isMainThread) {
  const main = await decode();
  // No driver is new enough.
  if (!main) process.exit();
  const worker = new Worker(fileURLToPath(import.meta.url), { argv: [entry, folder] });
  const other = await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));
  process.stdout.write(JSON.stringify([main, other]));
} else {
  parentPort?.postMessage(await decode());
}

/** Does what a program with the package installed would do. */
async function decode() {
  const gpu = globalThis.navigator?.gpu ?? (await ofDawn());
  const before = ownGlobals();
  /** @type {typeof import('../../web/src/index.js')} */
  const { createVae } = await import(pathToFileURL(entry).href);
  const [model, config, latents] = await Promise.all(['both.safetensors', 'config.json', 'latents.safetensors'].map((name) => openAsBlob(join(folder, name))));
  if (!(await gpu.requestAdapter())) return undefined;
  /** @type {Set<string>} */
  const phases = new Set();
  const vae = await createVae({ model, config, gpu, precision: 'f32', onProgress: ({ phase }) => phases.add(phase) });
  const raw = await vae.decode(latents, { output: 'raw' });
  const report = vae.report;
  const image = await vae.decode(latents, { output: 'image-data' });
  const png = new Uint8Array(await (await vae.decode(latents, { output: 'blob' })).arrayBuffer());
  const encoded = await vae.encode(image, { output: 'moments' });
  const { buffer, shape: ofBuffer } = await vae.decode(latents, { output: 'buffer' });
  const ofBytes = buffer.size;
  buffer.destroy();
  const bitmap = await vae.decode(latents).then(({ width, height }) => `${width}x${height}`, ({ code, message }) => `${code}: ${message}`);
  await vae.destroy();
  return {
    adapter: vae.info.adapter.name,
    raw: base64(raw.data),
    shape: raw.shape,
    peaks: [report?.predicted_peak_bytes, report?.measured_peak_bytes],
    left: vae.ledger().current,
    rgba: base64(image.data),
    png: base64(png),
    moments: { data: base64(encoded.data), shape: encoded.shape },
    bitmap,
    buffer: [...ofBuffer, ofBytes],
    phases: [...phases],
    hasChanged: ownGlobals() !== before,
  };
}

/** Returns Dawn's `GPU`, which gives adapters to programs in Node. */
async function ofDawn() {
  const { create, globals } = await import('webgpu');
  Object.assign(globalThis, globals);
  return create([]);
}

/** Returns the definitions of the globals that wgpu looks at. */
function ownGlobals() {
  const describe = (/** @type {string} */ name) => Object.entries(Object.getOwnPropertyDescriptor(globalThis, name) ?? {}).map(([key, value]) => `${name}.${key}: ${value}`);
  return ['Window', 'navigator'].flatMap(describe).join();
}

/** @param {ArrayBufferView} view */
function base64({ buffer, byteOffset, byteLength }) {
  return Buffer.from(buffer, byteOffset, byteLength).toString('base64');
}
