// @ts-check
// Numbers of frames and of frames of latents of a clip. A start is a frame of latents that stands
// for one frame; every other one stands for `frames_per_latent` frames.

/**
 * Facts of a model that numbers of frames depend on.
 * @typedef {Pick<import('./index.js').ModelFacts, 'frames_per_latent' | 'fills_parts' | 'starts'>
 * } Times
 */

/** Frames of latents from one start to the next, if there are several. */
const CHUNK = 5;

/**
 * Returns the number of frames that `latents` frames of latents decode to; undefined if the model
 * has no such clips.
 * @param {Times} times
 * @param {number} latents
 */
export function decodedFrames({ frames_per_latent: step, starts }, latents) {
  const frames = latents * step;
  if (starts === 'every_fifth') return latents % CHUNK === 2 ? frames - (Math.floor(latents / CHUNK) + 1) * (step - 1) : undefined;
  return starts === 'first_if_odd' && latents % 2 === 0 ? frames : frames - (step - 1);
}

/**
 * Returns the number of frames of latents that decode to `frames` frames, or to the next number of
 * frames that fits.
 * @param {Times} times
 * @param {number} frames
 */
export function latentsOfFrames(times, frames) {
  let latents = Math.max(1, Math.floor(frames / times.frames_per_latent));
  while ((decodedFrames(times, latents) ?? 0) < frames) latents += 1;
  return latents;
}

/**
 * Returns the lowest numbers of frames that fit, for errors.
 * @param {Times} times
 */
export function fittingFrames(times) {
  const counts = Array.from({ length: 3 * CHUNK }, (_, index) => decodedFrames(times, 1 + index));
  return `${counts.filter((count) => count !== undefined).slice(0, 3).join(', ')} and so on`;
}

/**
 * Returns the number of frames of latents that `frames` frames are encoded to, after padding if
 * they need it.
 * @param {Times} times
 * @param {number} frames
 */
export function encodedLatents(times, frames) {
  return times.fills_parts ? Math.ceil(frames / times.frames_per_latent) : latentsOfFrames(times, frames);
}

/**
 * Returns the frames that an encode of `frames` frames lacks.
 * @param {Times} times
 * @param {number} frames
 */
export function missingFrames(times, frames) {
  return times.fills_parts ? 0 : (decodedFrames(times, latentsOfFrames(times, frames)) ?? frames) - frames;
}

/**
 * Returns the most frames that an encode may lack.
 * @param {Times} times
 */
export function mostMissing({ frames_per_latent: step, starts }) {
  return starts === 'every_fifth' ? (CHUNK - 1) * step : step - 1;
}
