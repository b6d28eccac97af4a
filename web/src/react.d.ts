// Types of wgvae/react.

import type { Decoder, Progress } from './index.js';
import type { Remote, WorkerOptions } from './worker.js';

/** Result of {@link useDecoder}. */
export interface DecoderState<D> {
  /** The model, once it is loaded. */
  decoder: D | undefined;
  /** Last progress of loading, or of a decode without a listener of its own. */
  progress: Progress | undefined;
  /** Reason why the model could not be opened. */
  error: unknown;
}

/**
 * Opens a model in a worker when the component mounts, and destroys it when the component unmounts
 * or when an option changes. Options are compared by identity, so create objects such as `config`
 * and `cache` outside the component. Listeners and `fetch` are not compared: those of the render
 * that opened the model stay. Without options it opens nothing, for example until a file is chosen.
 *
 * `create` opens something else, such as `createVae` of `wgvae/worker`, or `createDecoder` of
 * `wgvae` to stay on this thread.
 */
export function useDecoder(options: Omit<WorkerOptions, 'signal'> | undefined): DecoderState<Remote<Decoder>>;
export function useDecoder<O extends object, D extends { destroy(): Promise<void> }>(options: Omit<O, 'signal'> | undefined, create: (options: O) => Promise<D>): DecoderState<D>;
