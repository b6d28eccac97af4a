// @ts-check
// Names and shapes of the tensors that diffusers' AutoencoderKLWan decodes and encodes with.
// clip-models.mjs computes the weights.

/**
 * Fields of its config.json that determine the shapes. Only AutoencoderKLQwenImage has
 * `input_channels`. `in_channels` counts the pixels of a patch, which Wan 2.2 has; its levels are
 * `is_residual`.
 * @typedef {{ base_dim: number, decoder_base_dim?: number, dim_mult: number[], num_res_blocks:
 * number, temperal_downsample: boolean[], z_dim: number, input_channels?: number, in_channels?:
 * number, is_residual?: boolean }} WanConfig
 */

/** @typedef {[string, number[]][]} Shapes */

/**
 * @param {WanConfig} config
 * @returns {Shapes}
 */
export function wanDecoderShapes({ base_dim, decoder_base_dim: base = base_dim, dim_mult: multiples, num_res_blocks: layers, temperal_downsample: temporal, z_dim: z, in_channels: pixels = 3, input_channels: colors = pixels, is_residual: isResidual = false }) {
  const widths = multiples.map((multiple) => multiple * base).reverse();
  const top = widths[0];
  const blocks = widths.flatMap((width, level) => {
    const path = `decoder.up_blocks.${level}`;
    // Without shortcuts, the resize before this level has halved the channels.
    const from = level === 0 ? top : widths[level - 1] / (isResidual ? 1 : 2);
    const resnets = Array.from({ length: layers + 1 }, (_, index) => resnet(`${path}.resnets.${index}`, index === 0 ? from : width, width)).flat();
    if (level === widths.length - 1) return resnets;
    const changesTime = temporal[widths.length - 2 - level];
    const upsampler = `${path}.${isResidual ? 'upsampler' : 'upsamplers.0'}`;
    const time = changesTime ? filter(`${upsampler}.time_conv`, width, 2 * width, [3, 1, 1]) : [];
    return [...resnets, ...time, ...filter(`${upsampler}.resample.1`, width, isResidual ? width : width / 2, [3, 3])];
  });
  return [
    ...filter('post_quant_conv', z, z, [1, 1, 1]),
    ...filter('decoder.conv_in', z, top, [3, 3, 3]),
    ...middle('decoder.mid_block', top),
    ...blocks,
    ['decoder.norm_out.gamma', [base, 1, 1, 1]],
    ...filter('decoder.conv_out', base, colors, [3, 3, 3]),
  ];
}

/**
 * @param {WanConfig} config
 * @returns {Shapes}
 */
export function wanEncoderShapes({ base_dim: base, dim_mult: multiples, num_res_blocks: layers, temperal_downsample: temporal, z_dim: z, in_channels: pixels = 3, input_channels: colors = pixels, is_residual: isResidual = false }) {
  const widths = multiples.map((multiple) => multiple * base);
  const top = widths[widths.length - 1];
  // Resnets and resizes between levels share one numbering, unless a level has a shortcut.
  let count = 0;
  const next = () => `encoder.down_blocks.${count++}`;
  const blocks = widths.flatMap((width, level) => {
    const from = level === 0 ? base : widths[level - 1];
    const block = `encoder.down_blocks.${level}`;
    const resnets = Array.from({ length: layers }, (_, index) => resnet(isResidual ? `${block}.resnets.${index}` : next(), index === 0 ? from : width, width)).flat();
    if (level === widths.length - 1) return resnets;
    const path = isResidual ? `${block}.downsampler` : next();
    const time = temporal[level] ? filter(`${path}.time_conv`, width, width, [3, 1, 1]) : [];
    return [...resnets, ...filter(`${path}.resample.1`, width, width, [3, 3]), ...time];
  });
  return [
    ...filter('encoder.conv_in', colors, base, [3, 3, 3]),
    ...blocks,
    ...middle('encoder.mid_block', top),
    ['encoder.norm_out.gamma', [top, 1, 1, 1]],
    ...filter('encoder.conv_out', top, 2 * z, [3, 3, 3]),
    ...filter('quant_conv', 2 * z, 2 * z, [1, 1, 1]),
  ];
}

/** @type {(name: string, from: number, to: number, taps: number[]) => Shapes} */
const filter = (name, from, to, taps) => [[`${name}.weight`, [to, from, ...taps]], [`${name}.bias`, [to]]];

/** @type {(name: string, from: number, to: number) => Shapes} */
const resnet = (name, from, to) => [
  [`${name}.norm1.gamma`, [from, 1, 1, 1]],
  ...filter(`${name}.conv1`, from, to, [3, 3, 3]),
  [`${name}.norm2.gamma`, [to, 1, 1, 1]],
  ...filter(`${name}.conv2`, to, to, [3, 3, 3]),
  ...(from === to ? [] : filter(`${name}.conv_shortcut`, from, to, [1, 1, 1])),
];

/** @type {(name: string, width: number) => Shapes} */
const middle = (name, width) => [
  ...resnet(`${name}.resnets.0`, width, width),
  [`${name}.attentions.0.norm.gamma`, [width, 1, 1]],
  ...filter(`${name}.attentions.0.to_qkv`, width, 3 * width, [1, 1]),
  ...filter(`${name}.attentions.0.proj`, width, width, [1, 1]),
  ...resnet(`${name}.resnets.1`, width, width),
];
