// @ts-check
// The page's worker, as soon as this file is there: it fetches its programs while the page still
// fetches its own. It imports nothing, so that nothing is waited for.

export const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
