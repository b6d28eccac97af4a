// @ts-check
// A thread of the module for the CPU: a worker with an instance of its own on the module's memory.
// It computes until it is ended, so it hears no second message.

import { makeInstance } from '../pkg/wgvae_cpu_threads.js';

/** @type {{ postMessage: (message: unknown) => void, onmessage: ((event: any) => void) | null }} */
const port = globalThis.process?.getBuiltinModule?.('node:worker_threads').parentPort ?? /** @type {any} */ (globalThis);

port.onmessage = async ({ data: { module, memory } }) => {
  const instance = makeInstance((exports) => exports);
  try {
    await instance.init({ module_or_path: module, memory });
  } catch (error) {
    port.postMessage(`${error}`);
    return;
  }
  // An answer without a problem.
  port.postMessage('');
  try {
    instance.runThread();
  } catch (error) {
    console.error(`${error}`);
    instance.threadBroke();
  }
};
