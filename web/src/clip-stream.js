// @ts-check
// Frames of a clip as a stream. A frame is decoded when the reader requests it, and none waits in a
// queue, where nobody would close it.

import { checkObject, checkValue, SIGNAL } from './options.js';

/**
 * Returns a stream of the frames that `begin` yields, and which it ends by its signal.
 * @param {(options: any) => AsyncGenerator<any, void, undefined>} begin
 * @param {import('./index.js').ClipOptions} [options]
 * @returns {ReadableStream<any>}
 */
export function streamOf(begin, options = {}) {
  checkObject(options);
  const { signal } = options;
  checkValue('signal', signal ?? null, SIGNAL);
  signal?.throwIfAborted();
  const ending = new AbortController();
  const frames = begin({ ...options, signal: ending.signal });
  const end = async (/** @type {unknown} */ reason) => {
    ending.abort(reason);
    await frames.return();
  };
  return new ReadableStream({
    start(controller) {
      const follow = () => {
        controller.error(signal?.reason);
        end(signal?.reason).catch(() => {});
      };
      signal?.addEventListener('abort', follow, { signal: ending.signal });
    },
    async pull(controller) {
      const { done, value } = await frames.next().catch((error) => {
        // Stops listening to the caller's signal, here and at the end.
        ending.abort();
        throw error;
      });
      if (ending.signal.aborted) return value?.close?.();
      if (!done) return controller.enqueue(value);
      controller.close();
      ending.abort();
    },
    cancel: end,
  }, { highWaterMark: 0 });
}
