// @ts-check
// Published formulas that people use today to estimate a VAE's memory. None of them looks at the
// network.

/** Number of parameters of Stable Diffusion 1.x's VAE, including the encoder. */
const SD15_PARAMETERS = 83_653_863;

/**
 * Facts that the formulas need of a network: channels of its latents, and input channels of the
 * largest convolution of its decoder and encoder.
 * @typedef {{ latents: number, decode: number, encode: number }} Channels
 */

/**
 * The families that the formulas cover, which are all of class AutoencoderKL.
 * tests/cpu/memory_report.rs compares this table with the families of the library.
 * @type {Map<string, Channels>}
 */
const COVERED = new Map([
  ['sd15', { latents: 4, decode: 256, encode: 128 }],
  ['sd21', { latents: 4, decode: 256, encode: 128 }],
  ['sdxl', { latents: 4, decode: 256, encode: 128 }],
  ['playground', { latents: 4, decode: 256, encode: 128 }],
  ['sd_x4_upscaler', { latents: 4, decode: 256, encode: 128 }],
  ['sd3', { latents: 16, decode: 256, encode: 128 }],
  ['flux1', { latents: 16, decode: 256, encode: 128 }],
  ['z_image', { latents: 16, decode: 256, encode: 128 }],
  ['cogview4', { latents: 16, decode: 512, encode: 128 }],
  ['flux2', { latents: 32, decode: 256, encode: 128 }],
  ['flux2_small_decoder', { latents: 32, decode: 192, encode: 128 }],
  ['ideogram4', { latents: 32, decode: 256, encode: 128 }],
  ['fibo2', { latents: 32, decode: 256, encode: 128 }],
  ['hunyuan_image', { latents: 64, decode: 256, encode: 128 }],
]);

/**
 * The run to estimate: the family's name, the direction, the picture's size in pixels, and the
 * bytes of a stored element.
 * @typedef {{ model: string, operation: string, width: number, height: number, elementBytes: number
 * }} Work
 */
/**
 * A published way to estimate the memory of a VAE. In `formula`, H and W are the picture's sides in
 * pixels, and E is the bytes of an element. `bytes` returns undefined for a run that the formula
 * does not cover.
 * @typedef {{ name: string, formula: string, source: string, address?: string, isDrawn: boolean,
 * bytes: (work: Work) => number | undefined }} Estimator
 */

/** Names the estimate whose constant is drawn. */
export const INVOKE_AI = 'InvokeAI, in use';

/** @type {Estimator[]} */
export const ESTIMATORS = [
  {
    name: INVOKE_AI,
    formula: '2200 · H · W · E to decode, 1100 · H · W · E to encode; for SD and SDXL in f32 250 MiB more',
    source: 'InvokeAI, vae_working_memory.py',
    address: 'https://github.com/invoke-ai/InvokeAI/blob/main/invokeai/backend/util/vae_working_memory.py',
    isDrawn: true,
    bytes: (work) => {
      const channels = COVERED.get(work.model);
      if (!channels) return undefined;
      const allowance = channels.latents === 4 && work.elementBytes === 4 ? 250 * 2 ** 20 : 0;
      return stored(work) * invokeAiConstant(work.operation) + allowance;
    },
  },
  {
    name: 'InvokeAI, measured',
    formula: '2136 · H · W · E to decode, 950 · H · W · E to encode',
    source: 'InvokeAI pull request 8414, investigation',
    address: 'https://github.com/invoke-ai/InvokeAI/pull/8414',
    isDrawn: false,
    // 2136 is the 95th percentile of its measurements on an RTX 4090.
    bytes: (work) => (COVERED.has(work.model) ? stored(work) * (work.operation === 'decode' ? 2136 : 950) : undefined),
  },
  {
    name: 'SD1.5 VRAM calculator',
    formula: '1.2 · (2 · parameters + latent + output + 3 · output), in f16: latent = 2 · 4 · H/8 · W/8, output = 2 · 3 · H · W',
    source: 'SD1.5 VRAM calculator, VAE part',
    isDrawn: true,
    // Encoding has the same terms in another order.
    bytes: ({ model, width, height }) => {
      if (model !== 'sd15') return undefined;
      const latent = 2 * 4 * Math.floor(width / 8) * Math.floor(height / 8);
      const sum = 2 * SD15_PARAMETERS + latent + 4 * (2 * 3 * width * height);
      return sum + Math.floor(sum / 5);
    },
  },
  {
    name: 'im2col workspace',
    formula: '9 · C · H · W · E, where C is the input channels of the largest convolution: 256 in the decoders of SD and FLUX.1, 128 in their encoders',
    source: 'MLX im2col analysis',
    isDrawn: true,
    bytes: (work) => {
      const channels = COVERED.get(work.model);
      return channels && im2col(work, work.operation === 'decode' ? channels.decode : channels.encode);
    },
  },
];

/**
 * Returns the constant in use by which InvokeAI's formula multiplies pixels and bytes of an
 * element.
 * @param {string} operation
 */
export function invokeAiConstant(operation) {
  return operation === 'decode' ? 2200 : 1100;
}

/**
 * Returns the bytes of the im2col matrix of a 3x3 convolution at full resolution.
 * @param {Pick<Work, 'width' | 'height' | 'elementBytes'>} work
 * @param {number} channels
 */
export function im2col(work, channels) {
  return 9 * channels * stored(work);
}

/**
 * Returns the bytes of one channel of the picture.
 * @param {Pick<Work, 'width' | 'height' | 'elementBytes'>} work
 */
function stored({ width, height, elementBytes }) {
  return width * height * elementBytes;
}
