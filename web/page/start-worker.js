// @ts-check
// The page's worker, started as soon as this file is loaded: it fetches its scripts while the page
// still fetches its own. It imports nothing, so that nothing delays it.

export const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });

/**
 * Resolves with the worker's first error, which may come before others listen.
 * @type {Promise<ErrorEvent>}
 */
export const failure = new Promise((resolve) => worker.addEventListener('error', resolve, { once: true }));
