// @ts-check
// Types of the page's choices and results, and of the messages that `session.js` sends: plain
// objects with a `type`. The file has no code.

/** @typedef {import('../src/worker.js').Remote<import('../src/index.js').Decoder>} Decoder */
/** @typedef {import('../src/worker.js').Remote<import('../src/index.js').Vae>} Vae */
/** @typedef {import('../src/index.js').Plan} Plan */
/** Size in pixels. @typedef {{ width: number, height: number }} Size */
/** @typedef {import('../src/index.js').Report} Report */
/** @typedef {import('../src/index.js').ClipPlan} ClipPlan */
/**
 * Notices of the package, and of the page itself.
 * @typedef {{ code: import('../src/index.js').Notice['code'] |
 * 'cache-failed' | 'frames-left-out', message: string, bytes?: number }} Notice
 */
/**
 * Progress. `parts`: finished parts of a clip, and their number.
 * @typedef {import('../src/index.js').Progress
 * & { parts?: { done: number, total: number } }} Progress
 */
/** @typedef {import('../src/index.js').ModelInfo} ModelInfo */

/**
 * Settings for opening and decoding. `budget` is in bytes, `index` counts from 0.
 * @typedef {{ precision: import('./query.js').Precision, budget: number | undefined, family: string
 * | undefined, unscaled: boolean, index: number }} Settings
 */

/**
 * A model (files that the user chose, or addresses), and the input for it: latents to decode, or a
 * picture, a video or several pictures in order to encode and decode again. `isDemo`: true for
 * files that come with the page, and `name` is theirs. `urls` may be a name on the hub. `family`:
 * of a model whose files do not tell it. `index`: which of several latents, from 0. `kind`: of an
 * input that is known before it is fetched, so that its model is opened once.
 * @typedef {{ files?: File[], urls?: string[], config?: File | string, family?: string, name?:
 * string, isDemo?: boolean }} ModelChoice
 * @typedef {{ files?: File[], url?: string, index?: number, kind?: 'picture' | 'clip', isDemo?:
 * boolean }} InputChoice
 */

/**
 * Pictures of a clip to encode: the first `count` of `found`. `size`: of each picture before
 * cropping; `rate`: frames per second of a video.
 * @typedef {{ files: File[], size: Size, found: number, rate?: number, count: number }} Footage
 */

/**
 * Tiling of another tool. `tileSize` is in pixels; default: the tool's own.
 * @typedef {{ tiling: 'blend' | 'cosine' | 'estimate', tileSize?: number }} Tiles
 */

/**
 * A picture decoded whole and in tiles, their difference times `amplified`, its PSNR in dB, and the
 * peak in bytes and time in seconds of each.
 * @typedef {Tiles & {
 *   exact: ImageBitmap, tiled: ImageBitmap, difference: ImageBitmap, amplified: number, psnr:
 *   number, count: number, whole: { seconds: number, peak: number }, parts: { seconds: number,
 *   peak: number },
 * }} Comparison
 */

/**
 * State of the session.
 * @typedef {'starting' | 'idle' | 'loading' | 'asking' | 'planning' | 'ready' |
 * 'encoding' | 'decoding' | 'done' | 'failed'} State
 */

/**
 * An error in words. `also`: the error of the other open file; `offer`: a setting that would help;
 * `ofDemo`: true if the demo's model is open for latents of the user.
 * @typedef {{ code: string, message: string, expected?: string, smallest?: number, seconds?:
 * number, also?: string, offer?: 'unscaled', ofDemo?: boolean }} Problem
 */

/** @typedef {'decode' | 'encode'} Operation */

/**
 * Result of a finished decode or encode, with everything that a memory report contains. Width and
 * height belong to the picture.
 * @typedef {{ operation: Operation, width: number, height: number, report: Report, plan: Plan,
 * info: ModelInfo, budget: number | undefined, isDemo: boolean }} Outcome
 */

/**
 * Result of a finished decode or encode of a clip: the largest value of all parts, or their sum.
 * @typedef {{ operation: Operation, frames: number, predicted: number, measured: number, seconds:
 * number, submissions: number, longest: number, compiled: number, compileSeconds: number }}
 * ClipOutcome
 */

/**
 * Planned operations, in order. For a clip, with its number of frames.
 * @typedef {({ operation: Operation,
 * plan: Plan, frames?: undefined } | { operation: Operation, plan: ClipPlan, frames: number })[]}
 * Plans
 */

/**
 * Messages:
 *
 * - `work`: work begins, or the stages of the work under way are known now.
 * - `chosen`: something will be opened, or the settings apply if it has no `name`; `stops` ends
 *   for it.
 * - `stopping`: the work under way will end without a result.
 * - `model`, `input`: an open file; `isFile`: true for a user's file, `isDemo` for the page's own.
 *   Latents have a `shape`, and an `index` of the chosen ones; pictures have a `size`, clips a
 *   number of `frames`.
 * - `plans`: empty while there is nothing to do.
 * - `preview`: latents as colours, a pixel for each, and the size of their picture.
 * - `original`: the part that will be encoded, of a picture or of the first frame.
 * - `latents`: result of encoding a picture or a clip.
 * - `ask`: asks for permission to download `bytes` for a model.
 * - `picture`: the decoded picture, and the name of its input; `psnr` in dB if it was encoded
 *   before.
 * - `clip`: a clip of at most `count` frames begins; `rate`: frames per second of its source.
 * - `frame`: the next frame as a PNG file, with its original, and the PSNR of all frames so far.
 * @typedef {{ type: 'module', version: string, families: string[] } | { type: 'work', stages:
 * import('./bar.js').Stage[], continues?: boolean } | { type: 'chosen', name?: string, stops?:
 * string } | { type: 'stopping' } | { type: 'latents', name: string, latents:
 * import('../src/latents-file.js').Latents } | { type: 'state', state: State, canDecode: boolean }
 * | { type: 'model', name: string, info: ModelInfo | undefined, isFile?: boolean } | { type:
 * 'input', name: string, shape?: number[], size?: Size, frames?: number, index?: number, isFile?:
 * boolean, isDemo?: boolean } | { type: 'ask', name: string, bytes: number } | { type: 'plans',
 * plans: Plans } | { type: 'progress', progress: Progress } | { type: 'outcomes', outcomes:
 * Outcome[] } | { type: 'notice', notice: Notice } | { type: 'problem', problem: Problem } | {
 * type: 'preview', bitmap: ImageBitmap, size: Size } | { type: 'original', bitmap: ImageBitmap,
 * name: string } | { type: 'picture', bitmap: ImageBitmap, name: string, psnr?: number } | { type:
 * 'comparison', name: string, comparison: Comparison } | { type: 'clip', name: string, size: Size,
 * count: number, rate?: number, isRoundTrip: boolean } | { type: 'frame', blob: Blob, original?:
 * Blob, psnr?: number } | { type: 'clip-outcomes', outcomes: ClipOutcome[], info: ModelInfo } | {
 * type: 'cache', bytes: number, entries: number }} News
 */

export {};
