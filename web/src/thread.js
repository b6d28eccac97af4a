// @ts-check
// A thread of the module for the CPU: a worker with an instance of its own on the module's memory.
// It answers with an empty text or a problem. Then it computes until it is ended, so it hears no
// second message.

import { makeInstance } from '../pkg/wgvae_cpu_threads.js';

/** @type {{ postMessage: (message: unknown) => void, onmessage: ((event: any) => void) | null }} */
const port = globalThis.process?.getBuiltinModule?.('node:worker_threads').parentPort ?? /** @type {any} */ (globalThis);

/** @type {any} */ (port).onmessageerror = () => port.postMessage('it could not receive the module');
port.onmessage = async ({ data: { module, memory } }) => {
  const instance = makeInstance((exports) => exports);
  try {
    await instance.init({ module_or_path: module, memory });
  } catch (error) {
    port.postMessage(`${error}`);
    return;
  }
  port.postMessage('');
  try {
    instance.runThread();
  } catch (error) {
    console.error(`${error}`);
    instance.threadBroke();
  }
};
