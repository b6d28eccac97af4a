// @ts-check
// Planning of a decode or an encode without a loaded model and without an opened device.

import { decodedFrames, encodedLatents, fittingFrames, latentsOfFrames } from './clip-lengths.js';
import { TILINGS } from './decoding.js';
import { kindOf, mismatch, wgvaeError } from './errors.js';
import { areLimits, limitsOf } from './limits.js';
import { checkOptions, OF_MODELS, oneOf, SMALL, TEXT } from './options.js';
import { FRAMES, hostOutput, isShownFromMemory, OUTPUTS } from './outputs.js';
import { planned } from './plans.js';
import { Access, readText } from './sources.js';
import { startWasm } from './wasm.js';

/** @typedef {import('./index.js').PlanForOptions} Options */
/** @typedef {import('../pkg/wgvae.js').Planner} Planner */

/** @type {import('./options.js').Checks} */
const OPTIONS = {
  family: TEXT,
  config: undefined,
  device: oneOf('webgpu', 'cpu'),
  width: SMALL,
  height: SMALL,
  frames: SMALL,
  previewRate: OF_MODELS.previewRate,
  border: OF_MODELS.border,
  direction: oneOf('decode', 'encode'),
  precision: OF_MODELS.precision,
  unscaled: OF_MODELS.unscaled,
  memoryBudget: OF_MODELS.memoryBudget,
  leastMemory: OF_MODELS.leastMemory,
  parking: OF_MODELS.parking,
  output: oneOf(...Object.keys(OUTPUTS)),
  tiling: oneOf(...TILINGS),
  tileSize: SMALL,
  tileOverlap: SMALL,
  limits: [areLimits, 'a GPUAdapter, or limits as in AdapterInfo'],
  fetch: OF_MODELS.fetch,
  wasm: OF_MODELS.wasm,
};

/** Options that only a decode has. */
const OF_DECODES = ['output', 'previewRate', 'tiling', 'tileSize', 'tileOverlap'];

/**
 * @param {Options} options
 * @returns {Promise<any>}
 */
export async function planFor(options) {
  check(options);
  const { family, config, device, direction, precision, unscaled, memoryBudget, frames, previewRate, border, limits } = options;
  const cores = device === 'cpu';
  if (cores && limits) throw mismatch('input', 'limits', 'none for the CPU', kindOf(limits));
  try {
    const wasm = await startWasm(options.wasm);
    const access = new Access(new AbortController().signal, () => {}, false, options.fetch);
    const text = config === undefined ? undefined : await readText(config, access, 'config');
    // Weights are placed as for a model that is loaded for this call alone.
    const weights = { direction, clips: frames !== undefined, weightsOnHost: memoryBudget !== undefined };
    const planner = wasm.Planner.suppose({ family, config: text, precision, unscaled, ...weights, cores, limits: limits && limitsOf(limits) }, previewRate ?? false, border);
    try {
      return frames === undefined ? planOfPicture(planner, options) : planOfClip(planner, options, frames);
    } finally {
      planner.free();
    }
  } catch (error) {
    throw wgvaeError(error);
  }
}

/**
 * Throws for unknown or invalid options: a plan that ignored one would be a wrong answer.
 * @param {Options} options
 */
function check(options) {
  checkOptions(options, OPTIONS);
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && options.direction === 'encode' && OF_DECODES.includes(name)) throw mismatch('input', name, 'a decode with it', 'direction encode');
  }
}

/**
 * @param {Planner} planner
 * @param {Options} options
 * @returns {import('./index.js').Plan}
 */
function planOfPicture(planner, { device, output = 'bitmap', ...options }) {
  const [facts, isOnCpu] = [planner.latents(), device === 'cpu'];
  const form = isShownFromMemory(isOnCpu, facts) ? hostOutput({ output }, isOnCpu) : OUTPUTS[output];
  return planned(planner, { scale: facts.decoded_pixels_per_latent, isOnCpu }, jobOf(options, form));
}

/**
 * @param {Planner} planner
 * @param {Options} options
 * @param {number} frames
 * @returns {import('./index.js').WholeClipPlan}
 */
function planOfClip(planner, { device, output = 'bitmap', ...options }, frames) {
  const [facts, isEncode] = [planner.latents(), options.direction === 'encode'];
  if (!facts.has_time) throw mismatch('input', 'frames', 'a model for video with it', `${frames} with one that knows no time`);
  const clipLatents = isEncode ? encodedLatents(facts, frames) : latentsOfFrames(facts, frames);
  const anyCount = facts.fills_parts && isEncode;
  if (frames === 0 || (!anyCount && decodedFrames(facts, clipLatents) !== frames)) {
    throw mismatch('input', 'frames', anyCount ? '1 or more' : fittingFrames(facts), `${frames}`);
  }
  const form = Object.entries(FRAMES).find(([name]) => name === output)?.[1];
  if (!form) throw mismatch('input', 'output', Object.keys(FRAMES).join(', '), `${output} of a clip`);
  /** @type {import('./index.js').ClipPlan} */
  const plan = planned(planner, { scale: facts.decoded_pixels_per_latent, isOnCpu: device === 'cpu' }, { ...jobOf(options, form), frames: 'clip', clipLatents });
  const total = (/** @type {'macs' | 'transferred_bytes' | 'predicted_seconds'} */ fact) => plan.first[fact] + (clipLatents - 1) * plan.next[fact];
  return { ...plan, parts: clipLatents, macs: total('macs'), transferred_bytes: total('transferred_bytes'), predicted_seconds: total('predicted_seconds') };
}

/**
 * @param {Options} options
 * @param {string} form of a decode's result
 */
function jobOf({ direction = 'decode', width, height, memoryBudget, leastMemory, parking, tiling, tileSize, tileOverlap }, form) {
  const output = direction === 'decode' ? form : undefined;
  return { direction, width, height, output, memoryBudget, leastMemory, parking, tiling, tileSize, tileOverlap };
}
