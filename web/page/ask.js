// @ts-check
// Calls to the tasks that the page's worker does beside the package's work, on files and pixels.

import { Link } from '../src/link.js';
import { WgvaeError } from '../src/worker.js';
import { failure, worker } from './start-worker.js';

/** @typedef {import('./worker.js').Tasks} Tasks */

const { port1, port2 } = new MessageChannel();
worker.postMessage({ tasks: port2 }, [port2]);
const link = new Link(port1, { gives: false });
port1.start();

failure.then(({ message = 'it could not be loaded' }) => {
  // Uncaught errors in the running worker end nothing.
  if (link.isUp) return;
  link.fail(new WgvaeError('internal', `the page's worker did not start: ${message}`));
  // Once more for the package, which began to listen after this file.
  setTimeout(() => worker.dispatchEvent(new ErrorEvent('error', { message, cancelable: true })));
});

/**
 * Runs a task in the worker.
 * @template {keyof Tasks} N
 * @param {N} name
 * @param {Parameters<Tasks[N]>} parameters
 * @returns {Promise<Awaited<ReturnType<Tasks[N]>>>}
 */
export async function ask(name, ...parameters) {
  const { answer, release } = link.call(name, parameters);
  try {
    return await answer;
  } finally {
    release();
  }
}
