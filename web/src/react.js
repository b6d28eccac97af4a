// @ts-check
// A hook for React: a model that lives as long as a component.

// @ts-ignore React is a package of the application's.
import { useEffect, useState } from 'react';
import { OF_MODELS } from './options.js';
import { createDecoder } from './worker.js';

/** State until something is known. */
const NOTHING = { decoder: undefined, progress: undefined, error: undefined };

/** Options whose change opens another model. Functions are often new in each render. */
const WATCHED = [...Object.keys(OF_MODELS), 'worker'].filter((name) => !['onProgress', 'onNotice', 'fetch', 'signal'].includes(name));

/**
 * @param {any} options
 * @param {(options: any) => Promise<{ destroy(): Promise<void> }>} [create]
 */
export function useDecoder(options, create = createDecoder) {
  const [state, setState] = useState(NOTHING);
  useEffect(() => {
    setState(NOTHING);
    if (!options) return undefined;
    const controller = new AbortController();
    const tell = (/** @type {object} */ news) => {
      if (!controller.signal.aborted) setState((/** @type {object} */ known) => ({ ...known, ...news }));
    };
    const onProgress = (/** @type {unknown} */ progress) => {
      tell({ progress });
      options.onProgress?.(progress);
    };
    const opening = create({ ...options, onProgress, signal: controller.signal });
    opening.then((decoder) => tell({ decoder }), (error) => tell({ error }));
    // StrictMode mounts twice: the first model ends before it is loaded.
    return () => {
      controller.abort();
      opening.then((decoder) => decoder.destroy(), () => {});
    };
  }, WATCHED.map((name) => options?.[name]));
  return state;
}
