// @ts-check
// The weights of a small decoder of LTX-2's kind, as diffusers' AutoencoderKLLTX2Video has them.

import { fill, weight } from './fixtures.mjs';
import { writeSafetensors } from './safetensors.mjs';

/**
 * Fields of its config.json that determine the shapes, for size changes in all directions. Lists
 * are in the encoder's order.
 * @typedef {{ latent_channels: number, decoder_block_out_channels: number[],
 * decoder_layers_per_block: number[], upsample_factor: number[], patch_size: number }} Config
 */

/**
 * Returns the decoder's weights as a .safetensors file.
 * @param {string} config config.json
 */
export function ltx2DecoderFile(config) {
  const { latent_channels: z, decoder_block_out_channels: channels, decoder_layers_per_block: layers, upsample_factor: factors, patch_size: patch } = /** @type {Config} */ (JSON.parse(config));
  const [widths, counts, shrinks] = [channels, layers, factors].map((list) => [...list].reverse());
  const resnets = (/** @type {string} */ path, /** @type {number} */ count, /** @type {number} */ width) => Array.from({ length: count }, (_, index) => [1, 2].flatMap((part) => conv(`${path}.resnets.${index}.conv${part}`, width, width))).flat();
  let width = widths[0];
  const blocks = shrinks.flatMap((shrink, level) => {
    const path = `decoder.up_blocks.${level}`;
    const made = width / shrink;
    const upsampler = conv(`${path}.upsamplers.0.conv`, width, 8 * made);
    width = made;
    return [...upsampler, ...resnets(path, counts[level + 1], made)];
  });
  const statistics = (/** @type {string} */ name, /** @type {number} */ offset, /** @type {number} */ scale) => ({ shape: [z], data: fill(name, z, offset, scale) });
  return writeSafetensors([
    ['latents_mean', statistics('bn.running_mean', 0, 1)],
    ['latents_std', statistics('bn.running_var', 1.5, 1.2)],
    ...conv('decoder.conv_in', z, widths[0]),
    ...resnets('decoder.mid_block', counts[0], widths[0]),
    ...blocks,
    ...conv('decoder.conv_out', width, 3 * patch * patch),
  ]);
}

/**
 * Returns a convolution. In the file, there is a module in it; the formula knows it without.
 * @param {string} name
 * @param {number} inputs
 * @param {number} outputs
 * @returns {[string, import('./safetensors.mjs').Tensor][]}
 */
function conv(name, inputs, outputs) {
  return [
    [`${name}.conv.weight`, weight(`${name}.weight`, [outputs, inputs, 3, 3, 3])],
    [`${name}.conv.bias`, weight(`${name}.bias`, [outputs])],
  ];
}
