// @ts-check
// The weights of small models for video. Their names and shapes are those of diffusers' classes, or
// of TAEHV's published files in diffusers' spelling; fixtures.mjs has the formula of the values.

import { fill, weight } from './fixtures.mjs';
import { writeSafetensors } from './safetensors.mjs';
import { wanDecoderShapes, wanEncoderShapes } from './wan.mjs';

/** @typedef {import('./wan.mjs').Shapes} Shapes */

/**
 * A network: the tensors of each half, by its config. `nests`: true if its files have a module
 * `conv` in each convolution over frames, which the formula does not know.
 * @typedef {{ decoder: (config: any) => Shapes, encoder?: (config: any) => Shapes, nests?: boolean
 * }} Network
 */

/** @type {Record<string, Network>} */
const NETWORKS = {
  AutoencoderKLWan: { decoder: wanDecoderShapes, encoder: wanEncoderShapes },
  AutoencoderKLQwenImage: { decoder: wanDecoderShapes, encoder: wanEncoderShapes },
  AutoencoderKLLTX2Video: { decoder: ltx2DecoderShapes, nests: true },
  AutoencoderKLHunyuanVideo15: { decoder: hunyuanDecoderShapes, encoder: hunyuanEncoderShapes, nests: true },
  'tiny_reference.Tiny': { decoder: taehvDecoderShapes, encoder: taehvEncoderShapes },
};

/**
 * Returns the weights of a model as a .safetensors file.
 * @param {string} config config.json
 * @param {{ encoder?: boolean }} [options] `encoder`: true to add the encoder's weights
 */
export function clipModelFile(config, { encoder = false } = {}) {
  const parsed = JSON.parse(config);
  const { decoder, encoder: ofEncoder = () => [], nests = false } = NETWORKS[parsed._class_name];
  const shapes = [...decoder(parsed), ...(encoder ? ofEncoder(parsed) : [])];
  const written = (/** @type {string} */ name) => (nests && !name.endsWith('.gamma') && !name.includes('.attentions.') ? name.replace(/[^.]+$/, 'conv.$&') : name);
  const weights = shapes.map(([name, shape]) => /** @type {const} */ ([written(name), weight(name, shape)]));
  return writeSafetensors([...weights, ...statistics(parsed)].map(([name, tensor]) => [name, tensor]));
}

/**
 * Returns the statistics of latents in the files of LTX-2.
 * @param {{ _class_name: string, latent_channels: number }} config
 * @returns {[string, import('./safetensors.mjs').Tensor][]}
 */
function statistics({ _class_name: name, latent_channels: z }) {
  if (name !== 'AutoencoderKLLTX2Video') return [];
  const tensor = (/** @type {string} */ like, /** @type {number} */ offset, /** @type {number} */ scale) => ({ shape: [z], data: fill(like, z, offset, scale) });
  return [['latents_mean', tensor('bn.running_mean', 0, 1)], ['latents_std', tensor('bn.running_var', 1.5, 1.2)]];
}

/**
 * Fields of LTX-2's config.json that determine the shapes, for size changes in all directions.
 * Lists are in the encoder's order.
 * @param {{ latent_channels: number, decoder_block_out_channels: number[], patch_size: number,
 * decoder_layers_per_block: number[], upsample_factor: number[] }} config
 * @returns {Shapes}
 */
function ltx2DecoderShapes({ latent_channels: z, decoder_block_out_channels: channels, decoder_layers_per_block: layers, upsample_factor: factors, patch_size: patch }) {
  const [widths, counts, shrinks] = [channels, layers, factors].map((list) => [...list].reverse());
  const resnets = (/** @type {string} */ path, /** @type {number} */ count, /** @type {number} */ width) => Array.from({ length: count }, (_, index) => [1, 2].flatMap((part) => filter(`${path}.resnets.${index}.conv${part}`, width, width))).flat();
  let width = widths[0];
  const blocks = shrinks.flatMap((shrink, level) => {
    const path = `decoder.up_blocks.${level}`;
    const made = width / shrink;
    const upsampler = filter(`${path}.upsamplers.0.conv`, width, 8 * made);
    width = made;
    return [...upsampler, ...resnets(path, counts[level + 1], made)];
  });
  return [
    ...filter('decoder.conv_in', z, widths[0]),
    ...resnets('decoder.mid_block', counts[0], widths[0]),
    ...blocks,
    ...filter('decoder.conv_out', width, 3 * patch * patch),
  ];
}

/**
 * Fields of HunyuanVideo 1.5's config.json that determine the shapes, for a size change between all
 * levels.
 * @typedef {{ latent_channels: number, block_out_channels: number[], layers_per_block: number,
 * temporal_compression_ratio: number }} HunyuanConfig
 */

/**
 * Returns the number of pixels and frames that the size change after a level, counted from the
 * highest resolution, moves into channels.
 * @param {HunyuanConfig} config
 * @param {number} level
 */
function places({ block_out_channels: widths, temporal_compression_ratio: ratio }, level) {
  return level + 1 + Math.log2(ratio) >= widths.length ? 8 : 4;
}

/**
 * @param {HunyuanConfig} config
 * @returns {Shapes}
 */
function hunyuanDecoderShapes(config) {
  const { latent_channels: z, block_out_channels: widths, layers_per_block: layers } = config;
  const lowest = widths.length - 1;
  const blocks = [...widths].reverse().flatMap((width, index) => {
    const [path, higher] = [`decoder.up_blocks.${index}`, lowest - index - 1];
    const resnets = Array.from({ length: layers + 1 }, (_, resnet) => hunyuanResnet(`${path}.resnets.${resnet}`, width)).flat();
    return [...resnets, ...(higher < 0 ? [] : filter(`${path}.upsamplers.0.conv`, width, widths[higher] * places(config, higher)))];
  });
  return [
    ...filter('decoder.conv_in', z, widths[lowest]),
    ...hunyuanMiddle('decoder.mid_block', widths[lowest]),
    ...blocks,
    ['decoder.norm_out.gamma', [widths[0], 1, 1, 1]],
    ...filter('decoder.conv_out', widths[0], 3),
  ];
}

/**
 * @param {HunyuanConfig} config
 * @returns {Shapes}
 */
function hunyuanEncoderShapes(config) {
  const { latent_channels: z, block_out_channels: widths, layers_per_block: layers } = config;
  const lowest = widths.length - 1;
  const blocks = widths.flatMap((width, level) => {
    const path = `encoder.down_blocks.${level}`;
    const resnets = Array.from({ length: layers }, (_, resnet) => hunyuanResnet(`${path}.resnets.${resnet}`, width)).flat();
    return [...resnets, ...(level === lowest ? [] : filter(`${path}.downsamplers.0.conv`, width, widths[level + 1] / places(config, level)))];
  });
  return [
    ...filter('encoder.conv_in', 3, widths[0]),
    ...blocks,
    ...hunyuanMiddle('encoder.mid_block', widths[lowest]),
    ['encoder.norm_out.gamma', [widths[lowest], 1, 1, 1]],
    ...filter('encoder.conv_out', widths[lowest], 2 * z),
  ];
}

/** @type {(name: string, width: number) => Shapes} */
const hunyuanResnet = (name, width) => [1, 2].flatMap((part) => [/** @type {Shapes[number]} */ ([`${name}.norm${part}.gamma`, [width, 1, 1, 1]]), ...filter(`${name}.conv${part}`, width, width)]);

/** @type {(name: string, width: number) => Shapes} */
const hunyuanMiddle = (name, width) => [
  ...hunyuanResnet(`${name}.resnets.0`, width),
  [`${name}.attentions.0.norm.gamma`, [width, 1, 1, 1]],
  ...['to_q', 'to_k', 'to_v', 'proj_out'].flatMap((part) => filter(`${name}.attentions.0.${part}`, width, width, [1, 1, 1])),
  ...hunyuanResnet(`${name}.resnets.1`, width),
];

/**
 * Fields of a tiny autoencoder for video that determine the shapes. The network is in
 * tests/fixtures/tiny_reference.py.
 * @typedef {{ latent_channels: number, encoder_block_out_channels: number[], num_encoder_blocks:
 * number[], decoder_block_out_channels: number[], num_decoder_blocks: number[],
 * temporal_downsample: boolean[], grow_frames: number[] }} TaehvConfig
 */

/**
 * @param {TaehvConfig} config
 * @returns {Shapes}
 */
function taehvDecoderShapes({ latent_channels: z, decoder_block_out_channels: widths, num_decoder_blocks: counts, grow_frames: frames }) {
  // A ReLU follows the first layer.
  let next = 2;
  const layer = () => `decoder.layers.${next++}`;
  const levels = widths.flatMap((width, level) => {
    const blocks = Array.from({ length: counts[level] }, () => taehvBlock(layer(), width)).flat();
    if (level === widths.length - 1) return blocks;
    // The layer that doubles the size has no weights.
    next += 1;
    return [...blocks, ...plainFilter(`${layer()}.conv`, width, width * frames[level], 1), ...plainFilter(layer(), width, widths[level + 1], 3)];
  });
  next += 1;
  return [...filter('decoder.layers.0', z, widths[0], [3, 3]), ...levels, ...filter(layer(), widths[widths.length - 1], 3, [3, 3])];
}

/**
 * @param {TaehvConfig} config
 * @returns {Shapes}
 */
function taehvEncoderShapes({ latent_channels: z, encoder_block_out_channels: widths, num_encoder_blocks: counts, temporal_downsample: temporal }) {
  let next = 2;
  const layer = () => `encoder.layers.${next++}`;
  const levels = widths.flatMap((width, level) => {
    const from = widths[level - 1];
    const change = level === 0 ? [] : [...plainFilter(`${layer()}.conv`, from * (temporal[level - 1] ? 2 : 1), from, 1), ...plainFilter(layer(), from, width, 3)];
    return [...change, ...Array.from({ length: counts[level] }, () => taehvBlock(layer(), width)).flat()];
  });
  return [...filter('encoder.layers.0', 3, widths[0], [3, 3]), ...levels, ...filter(layer(), widths[widths.length - 1], z, [3, 3])];
}

/** @type {(name: string, width: number) => Shapes} */
const taehvBlock = (name, width) => [0, 2, 4].flatMap((part) => filter(`${name}.conv.${part}`, part === 0 ? 2 * width : width, width, [3, 3]));

/** @type {(name: string, from: number, to: number, taps?: number[]) => Shapes} */
const filter = (name, from, to, taps = [3, 3, 3]) => [[`${name}.weight`, [to, from, ...taps]], [`${name}.bias`, [to]]];

/** Returns a filter without a bias. @type {(name: string, from: number, to: number, side: number) => Shapes} */
const plainFilter = (name, from, to, side) => [[`${name}.weight`, [to, from, side, side]]];
