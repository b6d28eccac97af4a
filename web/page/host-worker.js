// @ts-check
// Workers of the package for work that must not wait for the page's decodes, nor delay them.

/** @param {string} name */
export function hostWorker(name) {
  return new Worker(new URL('../src/worker-host.js', import.meta.url), { type: 'module', name });
}

/**
 * Runs `task` with a new worker, and ends the worker after it.
 * @template T
 * @param {string} name
 * @param {(worker: Worker) => Promise<T>} task
 */
export async function withHostWorker(name, task) {
  const worker = hostWorker(name);
  try {
    return await task(worker);
  } finally {
    worker.terminate();
  }
}
