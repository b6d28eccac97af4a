// Types of wgvae/worker: those of the package, but for what cannot leave a worker.

import type { Decoder, Encoder, InspectOptions as PackageInspectOptions, Inspection, Ledger, ModelOptions, Plan, PlanForOptions as PackagePlanForOptions, Selftest, SelftestOptions as PackageSelftestOptions, TuneOptions as PackageTuneOptions, Tuning, Vae, WasmSource, WholeClipPlan } from './index.js';

export { hub, WgvaeError } from './index.js';

/** Without what would be another thread's: the worker has its own device and its own fetch. */
export interface WorkerOptions extends Omit<ModelOptions, 'device' | 'gpu' | 'fetch'> {
  /**
   * One that runs `wgvae/worker-host`, for as many models and calls as you like. It is not ended
   * with the model. Default: one of the model's own.
   */
  worker?: Worker;
}

/** A model in a worker: what would be told at once is told by a promise. */
export type Remote<T> = {
  [K in keyof Omit<T, 'device' | 'plan' | 'planClip' | 'planEncode' | 'planEncodeClip' | 'ledger'>]: T[K];
} & {
  [K in keyof Pick<T, Extract<keyof T, 'plan' | 'planClip' | 'planEncode' | 'planEncodeClip'>>]: T[K] extends (options: infer O) => infer P ? (options: O) => Promise<P> : never;
} & {
  ledger(): Promise<Ledger>;
  /** Those of the device, which stays in the worker, such as `maxTextureDimension2D`. */
  readonly limits: Readonly<Record<string, number>>;
};

/**
 * As `createDecoder` of the package, in a worker. `canvas` becomes one of bitmaps; there is no
 * `texture` and no `buffer`.
 */
export function createDecoder(options: WorkerOptions): Promise<Remote<Decoder>>;
export function createEncoder(options: WorkerOptions): Promise<Remote<Encoder>>;
export function createVae(options: WorkerOptions): Promise<Remote<Vae>>;

/**
 * Where to ask: `worker` as in {@link WorkerOptions}, by default one of the call's own, which ends
 * with the answer; `wasm` as in the package's options.
 */
export interface OnWorker {
  worker?: Worker;
  wasm?: WasmSource;
}

export type InspectOptions = Omit<PackageInspectOptions, 'fetch'> & Pick<OnWorker, 'worker'>;
export type SelftestOptions = Omit<PackageSelftestOptions, 'gpu' | 'fetch'> & Pick<OnWorker, 'worker'>;
export type TuneOptions = Omit<PackageTuneOptions, 'device' | 'gpu'> & Pick<OnWorker, 'worker'>;
export type PlanForOptions = Omit<PackagePlanForOptions, 'fetch'> & Pick<OnWorker, 'worker'>;

/** As those of the package, in a worker. */
export function families(options?: OnWorker): Promise<string[]>;
export function version(options?: OnWorker): Promise<string>;
export function inspect(options: InspectOptions): Promise<Inspection>;
export function planFor(options: PlanForOptions & { frames: number }): Promise<WholeClipPlan>;
export function planFor(options: PlanForOptions): Promise<Plan>;
export function selftest(options: SelftestOptions): Promise<Selftest>;
export function tune(options?: TuneOptions): Promise<Tuning>;

/** As those of the package. Asked of the worker that loads, they wait for what it is writing. */
export function cacheUsage(options?: Pick<OnWorker, 'worker'>): Promise<{ bytes: number; entries: number }>;
export function clearCache(address?: string | URL, options?: Pick<OnWorker, 'worker'>): Promise<void>;

/**
 * `value`, with which these move to the worker when it is given to a call, instead of being copied:
 * buffers, which are empty here afterwards, and bitmaps.
 */
export function transfer<T extends object>(value: T, transferables: Transferable[]): T;
