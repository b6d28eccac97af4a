// @ts-check
// What is made and what it is made of, and what `session.js` tells of them: plain objects with a
// `type`. Types only.

/** @typedef {import('../src/worker.js').Remote<import('../src/index.js').Decoder>} Decoder */
/** @typedef {import('../src/worker.js').Remote<import('../src/index.js').Vae>} Vae */
/** @typedef {import('../src/index.js').Plan} Plan */
/** Pixels. @typedef {{ width: number, height: number }} Size */
/** @typedef {import('../src/index.js').Report} Report */
/** @typedef {import('../src/index.js').ClipPlan} ClipPlan */
/**
 * The package's, and the page's own. @typedef {{ code: import('../src/index.js').Notice['code'] |
 * 'cache-failed' | 'frames-left-out', message: string, bytes?: number }} Notice
 */
/**
 * `parts`: of a clip, how many are done, of how many. @typedef {import('../src/index.js').Progress
 * & { parts?: { done: number, total: number } }} Progress
 */
/** @typedef {import('../src/index.js').ModelInfo} ModelInfo */

/**
 * How to open and to decode. `budget` is in bytes, `index` counts from 0.
 * @typedef {{ precision: import('./query.js').Precision, budget: number | undefined, family: string | undefined, unscaled: boolean, index: number }} Settings
 */

/**
 * A model: files that the user chose, or addresses. `isDemo`: the one that comes with the page. And
 * what is made of it: latents to be decoded, or a picture, a video or several pictures in their
 * order to be encoded and decoded again; `index`: which of several latents, from 0. `urls` may be a
 * name on the hub.
 * @typedef {{ files?: File[], urls?: string[], config?: File | string, isDemo?: boolean }} ModelChoice
 * @typedef {{ files?: File[], url?: string, index?: number, isDemo?: boolean }} InputChoice
 */

/**
 * Pictures of a clip to encode, `count` of those that were `found`; `size`: of each as it is;
 * `rate`: frames a second of a video.
 * @typedef {{ files: File[], size: Size, found: number, rate?: number, count: number }} Footage
 */

/**
 * How another tool decodes; `tileSize` in pixels, the tool's own if there is none. @typedef {{
 * tiling: 'blend' | 'cosine' | 'estimate', tileSize?: number }} Tiles
 */

/**
 * A picture whole and in tiles, `amplified` times their difference, PSNR in dB, and what either
 * took, in bytes and seconds.
 * @typedef {Tiles & {
 *   exact: ImageBitmap, tiled: ImageBitmap, difference: ImageBitmap, amplified: number, psnr:
 *   number, count: number, whole: { seconds: number, peak: number }, parts: { seconds: number,
 *   peak: number },
 * }} Comparison
 */

/**
 * What is going on. @typedef {'starting' | 'idle' | 'loading' | 'asking' | 'planning' | 'ready' |
 * 'encoding' | 'decoding' | 'done' | 'failed'} State
 */

/**
 * A failure in words. `during` is what was going on; `also` what is wrong with something else that
 * is open; `offer` what may be changed for it.
 * @typedef {{ code: string, message: string, expected?: string, smallest?: number, seconds?: number, during: State, also?: string, offer?: 'unscaled' }} Problem
 */

/** @typedef {'decode' | 'encode'} Operation */

/**
 * What a finished decode or encode took, and all that a memory report says of it. Width and height
 * are the picture's.
 * @typedef {{ operation: Operation, width: number, height: number, report: Report, plan: Plan, info: ModelInfo, budget: number | undefined, isDemo: boolean }} Outcome
 */

/**
 * What a finished decode or encode of a clip took, the most of all parts, or the sum.
 * @typedef {{ operation: Operation, frames: number, predicted: number, measured: number, seconds: number, submissions: number, longest: number, compiled: number, compileSeconds: number }} ClipOutcome
 */

/**
 * What will be done, in order. Of a clip: with so many frames. @typedef {({ operation: Operation,
 * plan: Plan, frames?: undefined } | { operation: Operation, plan: ClipPlan, frames: number })[]}
 * Plans
 */

/**
 * `model`, `input`: what is open, and whether that is of the user's files; latents have a shape,
 * and which of them is chosen, pictures a size, and a clip of them a number of frames. `plans`:
 * none where there is nothing to do yet. `original`: what of a picture, or of the first of a clip,
 * will be encoded. `chosen`: something is to be opened, for which `stops` ends. `latents`: those
 * that a picture, or a clip, was encoded to. `ask`: whether to download so much for a model.
 * `picture`: what was decoded, and the name of what it was made of; `psnr`, in dB, of a picture
 * that was encoded before. `clip`: a clip begins of at most so many frames; `rate`: frames a second
 * of what it was made of. `frame`: the next of it, as a PNG, with the one that was encoded and the
 * PSNR of all so far.
 * @typedef {{ type: 'module', version: string, families: string[] }
 *   | { type: 'chosen', name: string, stops?: string }
 *   | { type: 'latents', name: string, latents: { data: Float32Array, shape: readonly number[] } }
 *   | { type: 'state', state: State, canDecode: boolean }
 *   | { type: 'model', name: string, info: ModelInfo | undefined, isFile?: boolean }
 *   | { type: 'input', name: string, shape?: number[], size?: Size, frames?: number, index?: number, isFile?: boolean }
 *   | { type: 'ask', name: string, bytes: number }
 *   | { type: 'plans', plans: Plans }
 *   | { type: 'progress', progress: Progress }
 *   | { type: 'outcomes', outcomes: Outcome[] }
 *   | { type: 'notice', notice: Notice }
 *   | { type: 'problem', problem: Problem }
 *   | { type: 'original', bitmap: ImageBitmap, name: string }
 *   | { type: 'picture', bitmap: ImageBitmap, name: string, psnr?: number }
 *   | { type: 'comparison', name: string, comparison: Comparison }
 *   | { type: 'clip', name: string, size: Size, count: number, rate?: number, isRoundTrip: boolean }
 *   | { type: 'frame', blob: Blob, original?: Blob, psnr?: number }
 *   | { type: 'clip-outcomes', outcomes: ClipOutcome[], info: ModelInfo }
 *   | { type: 'cache', bytes: number, entries: number }} News
 */

export {};
