// @ts-check
// A worker of the package's, for what shall neither wait for the page's decodes nor keep them
// waiting.

/** @param {string} name */
export function hostWorker(name) {
  return new Worker(new URL('../src/worker-host.js', import.meta.url), { type: 'module', name });
}

/**
 * Does `task` with one that ends with it.
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
