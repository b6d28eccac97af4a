// @ts-check
// A preview of chosen latents before they are decoded, by a published linear map, if the model's
// latent space has one.

import { preview } from '../src/worker.js';
import { worker } from './start-worker.js';

/** Largest side of a preview, pixels. */
const MOST = 256;

/**
 * Scaling factors of latent spaces that many models share, with a family that has each.
 * @type {{ channels: number, factor: number, family: string }[]}
 */
const SPACES = [
  { channels: 4, factor: 0.18215, family: 'sd15' },
  { channels: 4, factor: 0.13025, family: 'sdxl' },
  { channels: 16, factor: 0.3611, family: 'flux1' },
  { channels: 16, factor: 1.5305, family: 'sd3' },
];

/**
 * Returns a pixel for each latent; undefined if nobody has published a map for them.
 * @param {File} file
 * @param {import('./news.js').ModelInfo} info
 * @param {import('./news.js').Settings} settings
 */
export async function previewOf(file, info, { family = familyOf(info), unscaled, index }) {
  // The map is for the diffusion model's scale.
  if (!family || unscaled) return undefined;
  try {
    const { data, width, height } = await preview(file, { family, index, maxSide: MOST, worker });
    return await createImageBitmap(new ImageData(data, width, height));
  } catch {
    // A picture less, and no reason to stop.
    return undefined;
  }
}

/** @param {import('./news.js').ModelInfo} info */
function familyOf({ scale, config, latent_channels: channels }) {
  const [, named] = (scale.known && /: family (\w+)/.exec(scale.from)) || [];
  return named ?? SPACES.find((space) => space.channels === channels && space.factor === config.scaling_factor)?.family;
}
