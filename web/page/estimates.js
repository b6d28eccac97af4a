// @ts-check
// Memory that other tools estimate for a decode with Stable Diffusion 1.x's VAE, by their published
// formulas. It is crates/memory-report/src/estimates.rs in JavaScript, as far as the page draws it.
// None of the formulas looks at the network.

/** Number of weights of Stable Diffusion 1.x's VAE, encoder included. */
const PARAMETERS = 83_653_863;

/** Input channels of the decoder's largest convolution, at the picture's full size. */
const CHANNELS = 256;

/**
 * An estimate. `bytes` returns it for a square picture, from its side in pixels and the bytes of a
 * stored element.
 * @typedef {{ name: string, source: string, bytes: (side: number, elementBytes: number) => number
 * }} Estimate
 */

/** @type {Estimate[]} */
export const ESTIMATES = [
  {
    name: 'InvokeAI, in use',
    source: 'https://github.com/invoke-ai/InvokeAI/blob/main/invokeai/backend/util/vae_working_memory.py',
    // For f32 the tool adds an allowance of 250 MiB.
    bytes: (side, elementBytes) => 2200 * side * side * elementBytes + (elementBytes === 4 ? 250 << 20 : 0),
  },
  {
    name: 'SD1.5 VRAM calculator',
    source: 'SD1.5 VRAM calculator, VAE part',
    // Always for f16: weights, latents, the picture, three more tensors of its size, and a fifth of
    // the sum.
    bytes: (side) => {
      const latents = 2 * 4 * Math.floor(side / 8) ** 2;
      const picture = 2 * 3 * side * side;
      const sum = 2 * PARAMETERS + latents + 4 * picture;
      return sum + Math.floor(sum / 5);
    },
  },
  {
    name: 'im2col workspace',
    source: 'MLX im2col analysis',
    // The matrix of one 3x3 convolution alone.
    bytes: (side, elementBytes) => 9 * CHANNELS * side * side * elementBytes,
  },
];
