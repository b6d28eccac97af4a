// @ts-check
// Links to workers that run worker-host.js: the caller's, or new ones.

import { startOfAddresses } from './address.js';
import { kindOf, messageOf, mismatch, WgvaeError } from './errors.js';
import { Link } from './link.js';
import { orAborted } from './queue.js';

/** A signal that is never aborted. */
export const NEVER = new AbortController().signal;

/** Advice, because browsers start no worker from another origin, and do not all say so. */
const ELSEWHERE = '; if the package comes from another origin, pass a `worker` of your own that imports wgvae/worker-host';

/**
 * One link for each worker: two on one worker would receive each other's messages.
 * @type {WeakMap<Worker, Link>}
 */
const links = new WeakMap();

/** Start of relative addresses that each worker was told last. @type {WeakMap<Link, string | undefined>} */
const starts = new WeakMap();

/** Returns the error of calls to a model that is gone. */
export function destroyed() {
  return new WgvaeError('destroyed', 'the model was destroyed');
}

/**
 * Returns a link to the caller's worker, or to a new one, which ends with `end`.
 * @param {Worker | undefined} callers
 */
export function reach(callers) {
  const worker = callers ?? startWorker();
  // The threads of Node have no addEventListener.
  if (typeof worker?.postMessage !== 'function' || typeof worker.addEventListener !== 'function') throw mismatch('input', 'worker', 'a Worker as in browsers', kindOf(worker));
  const link = links.get(worker) ?? linkTo(worker, callers ? '' : ELSEWHERE);
  tellStart(link);
  const end = () => {
    if (callers) return;
    // A worker that has ended answers nothing.
    link.fail(destroyed());
    worker.terminate();
  };
  return { link, end };
}

function startWorker() {
  if (!globalThis.Worker) throw mismatch('input', 'worker', 'a runtime that has workers, or one of your own', 'none');
  try {
    // Bundlers recognise this form, and include the file.
    return new Worker(new URL('./worker-host.js', import.meta.url), { type: 'module', name: 'wgvae' });
  } catch (cause) {
    throw notStarted(messageOf(cause), ELSEWHERE);
  }
}

/**
 * @param {Worker} worker
 * @param {string} advice for a worker that does not start
 */
function linkTo(worker, advice) {
  const link = new Link(worker, { gives: false });
  links.set(worker, link);
  worker.addEventListener('error', (event) => {
    // Uncaught errors in the running worker, such as those of listeners, end nothing.
    if (link.isUp) return;
    event.preventDefault();
    link.fail(notStarted(event.message ?? 'it could not be loaded', advice));
  });
  return link;
}

/**
 * Tells the worker where relative addresses start, if that has changed: pages change their own.
 * @param {Link} link
 */
export function tellStart(link) {
  const start = startOfAddresses();
  if (starts.has(link) && starts.get(link) === start) return;
  starts.set(link, start);
  // Messages arrive in order. If the worker fails, the calls after this one tell it.
  link.call('startFrom', [start]).answer.catch(() => {});
}

/**
 * @param {string} why
 * @param {string} advice
 */
function notStarted(why, advice) {
  return new WgvaeError('internal', `the worker did not start: ${why}${advice}`);
}

/**
 * @param {Worker | undefined} worker
 * @param {string} name
 * @param {unknown[]} parameters
 * @param {AbortSignal | null} [callers]
 */
export async function ask(worker, name, parameters, callers) {
  const signal = callers ?? NEVER;
  signal.throwIfAborted();
  const { link, end } = reach(worker);
  const { answer, release } = link.call(name, parameters);
  try {
    return await orAborted(answer, signal);
  } finally {
    release();
    end();
  }
}
