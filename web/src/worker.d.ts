// Types of wgvae/worker: those of the package, but for what cannot leave a worker.

import type { Decoder, Encoder, Ledger, ModelOptions, TuneOptions, Tuning, Vae } from './index.js';

/** Without what would be another thread's: the worker has its own device and its own fetch. */
export interface WorkerOptions extends Omit<ModelOptions, 'device' | 'gpu' | 'fetch'> {
  /** One that runs `wgvae/worker-host`. It is not ended with the model. Default: one of the model's own. */
  worker?: Worker;
}

/** A model in a worker: what would be told at once is told by a promise. */
export type Remote<T> = {
  [K in keyof Omit<T, 'device' | 'plan' | 'planClip' | 'planEncode' | 'planEncodeClip' | 'ledger'>]: T[K];
} & {
  [K in keyof Pick<T, Extract<keyof T, 'plan' | 'planClip' | 'planEncode' | 'planEncodeClip'>>]: T[K] extends (options: infer O) => infer P ? (options: O) => Promise<P> : never;
} & { ledger(): Promise<Ledger> };

/** As `createDecoder` of the package, in a worker. `canvas` becomes one of bitmaps; there is no `texture` and no `buffer`. */
export function createDecoder(options: WorkerOptions): Promise<Remote<Decoder>>;
export function createEncoder(options: WorkerOptions): Promise<Remote<Encoder>>;
export function createVae(options: WorkerOptions): Promise<Remote<Vae>>;

export interface WorkerTuneOptions extends Omit<TuneOptions, 'device' | 'gpu'> {
  worker?: Worker;
}

/** As `tune` of the package, in a worker. */
export function tune(options?: WorkerTuneOptions): Promise<Tuning>;

/** `value`, with which these move to the worker when it is given to a call, instead of being copied: buffers, which are empty here afterwards, and bitmaps. */
export function transfer<T extends object>(value: T, transferables: Transferable[]): T;
