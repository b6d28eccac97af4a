// @ts-check
// What the page and its worker say to each other: plain objects with a `type`. Types only.

/** @typedef {import('../src/index.js').Plan} Plan */
/** @typedef {import('../src/index.js').Report} Report */
/** The package's, and the page's own. @typedef {{ code: import('../src/index.js').Notice['code'] | 'cache-failed', message: string }} Notice */
/** @typedef {import('../src/index.js').Progress} Progress */
/** @typedef {import('../src/index.js').DecoderInfo} DecoderInfo */

/**
 * How to open and to decode. `budget` is in bytes, `index` counts from 0.
 * @typedef {{ precision: 'auto' | 'f16' | 'f32', budget: number | undefined, family: string | undefined, unscaled: boolean, index: number }} Settings
 */

/**
 * A model: files that the user chose, or addresses. `isDemo`: the one that comes with the page.
 * @typedef {{ files?: File[], urls?: string[], config?: File | string, isDemo?: boolean }} ModelChoice
 * @typedef {{ file?: File, url?: string }} LatentsChoice
 */

/**
 * To the worker.
 * - `start`: comes first.
 * - `open`: a model, latents, or both; `decode`: and decode as soon as both are there.
 * - `files`: dropped or chosen files of which the page does not know what they are, unless `kind` says so.
 * - `settings`: all of them.
 * @typedef {{ type: 'start', settings: Settings }
 *   | { type: 'open', model?: ModelChoice, latents?: LatentsChoice, decode?: boolean }
 *   | { type: 'files', files: File[], kind?: 'model' | 'latents' }
 *   | { type: 'settings', settings: Settings }
 *   | { type: 'decode' } | { type: 'cancel' } | { type: 'clear-cache' }} ToWorker
 */

/** What the worker is at. @typedef {'starting' | 'idle' | 'loading' | 'planning' | 'ready' | 'decoding' | 'done' | 'failed'} State */

/**
 * A failure in words that can cross over. `during` is what was going on.
 * @typedef {{ code: string, message: string, smallest?: number, seconds?: number, during: State }} Problem
 */

/**
 * What a finished decode took, and all that a memory report says of it.
 * @typedef {{ width: number, height: number, report: Report, plan: Plan, info: DecoderInfo, budget: number | undefined, isDemo: boolean }} Outcome
 */

/**
 * From the worker. `picture`: what was decoded, and the name of its latents.
 * @typedef {{ type: 'module', version: string, families: string[] }
 *   | { type: 'state', state: State, canDecode: boolean }
 *   | { type: 'model', name: string, info: DecoderInfo | undefined }
 *   | { type: 'latents', name: string, shape: number[] | undefined }
 *   | { type: 'plan', plan: Plan | undefined }
 *   | { type: 'progress', progress: Progress }
 *   | { type: 'outcome', outcome: Outcome }
 *   | { type: 'notice', notice: Notice }
 *   | { type: 'problem', problem: Problem }
 *   | { type: 'picture', bitmap: ImageBitmap, name: string }
 *   | { type: 'cache', bytes: number, entries: number }} FromWorker
 */

export {};
