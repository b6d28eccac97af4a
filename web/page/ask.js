// @ts-check
// What the page's worker does beside the package's work: files and pixels in, files and pixels out.

import { Link } from '../src/link.js';
import { worker } from './start-worker.js';

/** @typedef {import('./worker.js').Tasks} Tasks */

const { port1, port2 } = new MessageChannel();
worker.postMessage({ tasks: port2 }, [port2]);
const link = new Link(port1, { gives: false });
port1.start();

/**
 * Has the worker do one of its tasks.
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
