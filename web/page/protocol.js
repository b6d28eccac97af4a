// @ts-check
// What the page and its worker say to each other: plain objects with a `type`. Types only.

/** @typedef {import('../src/index.js').Plan} Plan */
/** Pixels. @typedef {{ width: number, height: number }} Size */
/** @typedef {import('../src/index.js').Report} Report */
/** The package's, and the page's own. @typedef {{ code: import('../src/index.js').Notice['code'] | 'cache-failed', message: string }} Notice */
/** @typedef {import('../src/index.js').Progress} Progress */
/** @typedef {import('../src/index.js').ModelInfo} ModelInfo */

/**
 * How to open and to decode. `budget` is in bytes, `index` counts from 0.
 * @typedef {{ precision: 'auto' | 'f16' | 'f32', budget: number | undefined, family: string | undefined, unscaled: boolean, index: number }} Settings
 */

/**
 * A model: files that the user chose, or addresses. `isDemo`: the one that comes with the page. And what is made of it: latents to be decoded, or a picture to be encoded
 * and decoded again.
 * @typedef {{ files?: File[], urls?: string[], config?: File | string, isDemo?: boolean }} ModelChoice
 * @typedef {{ file?: File, url?: string }} InputChoice
 */

/**
 * To the worker.
 * - `start`: comes first.
 * - `open`: a model, latents or a picture, or both; `decode`: and decode as soon as both are there.
 * - `files`: dropped or chosen files of which the page does not know what they are, unless `kind` says so.
 * - `settings`: all of them.
 * @typedef {{ type: 'start', settings: Settings }
 *   | { type: 'open', model?: ModelChoice, input?: InputChoice, decode?: boolean }
 *   | { type: 'files', files: File[], kind?: 'model' | 'input' }
 *   | { type: 'settings', settings: Settings }
 *   | { type: 'decode' } | { type: 'cancel' } | { type: 'clear-cache' }} ToWorker
 */

/** What the worker is at. @typedef {'starting' | 'idle' | 'loading' | 'planning' | 'ready' | 'encoding' | 'decoding' | 'done' | 'failed'} State */

/**
 * A failure in words that can cross over. `during` is what was going on.
 * @typedef {{ code: string, message: string, smallest?: number, seconds?: number, during: State }} Problem
 */

/** @typedef {'decode' | 'encode'} Operation */

/**
 * What a finished decode or encode took, and all that a memory report says of it. Width and height are the picture's.
 * @typedef {{ operation: Operation, width: number, height: number, report: Report, plan: Plan, info: ModelInfo, budget: number | undefined, isDemo: boolean }} Outcome
 */

/** What will be done, in order. @typedef {{ operation: Operation, plan: Plan }[]} Plans */

/**
 * From the worker. `input`: latents have a shape, a picture has a size. `plans`: none where there is nothing to do yet. `original`: what of a picture will be encoded.
 * `picture`: what was decoded, and the name of what it was made of; `psnr`, in dB, of a picture that was encoded before.
 * @typedef {{ type: 'module', version: string, families: string[] }
 *   | { type: 'state', state: State, canDecode: boolean }
 *   | { type: 'model', name: string, info: ModelInfo | undefined }
 *   | { type: 'input', name: string, shape?: number[], size?: Size }
 *   | { type: 'plans', plans: Plans }
 *   | { type: 'progress', progress: Progress }
 *   | { type: 'outcomes', outcomes: Outcome[] }
 *   | { type: 'notice', notice: Notice }
 *   | { type: 'problem', problem: Problem }
 *   | { type: 'original', bitmap: ImageBitmap, name: string }
 *   | { type: 'picture', bitmap: ImageBitmap, name: string, psnr?: number }
 *   | { type: 'cache', bytes: number, entries: number }} FromWorker
 */

export {};
