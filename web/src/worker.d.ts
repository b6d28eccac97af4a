// Types of wgvae/worker: the package's types, without values that cannot leave a worker.

import type { Decoder, Encoder, InspectOptions as PackageInspectOptions, Inspection, LatentsInput, Ledger, LinearPreviewOptions as PackageLinearPreviewOptions, ModelOptions, Plan, PlanForOptions as PackagePlanForOptions, Selftest, SelftestOptions as PackageSelftestOptions, Support, SupportOptions as PackageSupportOptions, TuneOptions as PackageTuneOptions, Tuning, Vae, WasmSources, WholeClipPlan } from './index.js';

export { hub, WgvaeError } from './index.js';

/**
 * Options for a model in a worker. The worker has its own device and its own `fetch`, so these
 * options are left out.
 */
export interface WorkerOptions extends Omit<ModelOptions, 'device' | 'gpu' | 'fetch'> {
  /** As in the package, but for a device of your own. */
  device?: 'auto' | 'webgpu' | 'cpu';
  /**
   * A worker that runs `wgvae/worker-host`, for any number of models and calls. Destroying the
   * model does not end it. Default: a worker of the model's own.
   */
  worker?: Worker;
}

/** A model in a worker: synchronous methods of the package return promises here. */
export type Remote<T> = {
  [K in keyof Omit<T, 'device' | 'plan' | 'planClip' | 'planEncode' | 'planEncodeClip' | 'ledger'>]: T[K];
} & {
  [K in keyof Pick<T, Extract<keyof T, 'plan' | 'planClip' | 'planEncode' | 'planEncodeClip'>>]: T[K] extends (options: infer O) => infer P ? (options: O) => Promise<P> : never;
} & {
  ledger(): Promise<Ledger>;
  /**
   * Limits of the device, which stays in the worker, such as `maxTextureDimension2D`. The CPU has
   * none.
   */
  readonly limits: Readonly<Partial<Omit<GPUSupportedLimits, '__brand'>>>;
};

/**
 * Opens a model in a worker, like `createDecoder` of the package. `canvas` becomes a canvas with a
 * `bitmaprenderer` context; the outputs `texture` and `buffer` do not exist.
 */
export function createDecoder(options: WorkerOptions): Promise<Remote<Decoder>>;
export function createEncoder(options: WorkerOptions): Promise<Remote<Encoder>>;
export function createVae(options: WorkerOptions): Promise<Remote<Vae>>;

/**
 * Choice of the worker: `worker` as in {@link WorkerOptions}, by default a worker that ends with
 * the answer; `wasm` as in the package's options.
 */
export interface OnWorker {
  worker?: Worker;
  wasm?: WasmSources;
}

export type InspectOptions = Omit<PackageInspectOptions, 'fetch'> & Pick<OnWorker, 'worker'>;
export type LinearPreviewOptions = Omit<PackageLinearPreviewOptions, 'fetch'> & Pick<OnWorker, 'worker'>;
export type SelftestOptions = Omit<PackageSelftestOptions, 'gpu' | 'fetch'> & Pick<OnWorker, 'worker'>;
export type SupportOptions = Omit<PackageSupportOptions, 'gpu'> & Pick<OnWorker, 'worker'>;
export type TuneOptions = Omit<PackageTuneOptions, 'device' | 'gpu'> & Pick<OnWorker, 'worker'>;
export type PlanForOptions = Omit<PackagePlanForOptions, 'fetch'> & Pick<OnWorker, 'worker'>;

/** Like the functions of the package, in a worker. */
export function families(options?: OnWorker): Promise<string[]>;
export function version(options?: OnWorker): Promise<string>;
export function inspect(options: InspectOptions): Promise<Inspection>;
export function planFor(options: PlanForOptions & { frames: number }): Promise<WholeClipPlan>;
export function planFor(options: PlanForOptions): Promise<Plan>;
export function preview(latents: LatentsInput, options: LinearPreviewOptions): Promise<{ data: Uint8ClampedArray<ArrayBuffer>; width: number; height: number }>;
export function selftest(options: SelftestOptions): Promise<Selftest>;
export function isSupported(options?: SupportOptions): Promise<Support>;
export function tune(options?: TuneOptions): Promise<Tuning>;

/**
 * Like the functions of the package. On the worker that loads, they wait for its writes to the
 * cache.
 */
export function cacheUsage(options?: Pick<OnWorker, 'worker'>): Promise<{ bytes: number; entries: number }>;
export function clearCache(address?: string | URL, options?: Pick<OnWorker, 'worker'>): Promise<void>;

/**
 * Returns `value`, and marks `transferables` to be moved to the worker instead of copied when
 * `value` is passed to a call. Moved buffers are empty here afterwards; bitmaps move, too.
 */
export function transfer<T extends object>(value: T, transferables: Transferable[]): T;
