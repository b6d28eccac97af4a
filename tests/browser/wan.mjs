// @ts-check
// Names and shapes of the tensors that diffusers' AutoencoderKLWan decodes with. What its weights are is fixtures.mjs's.

/**
 * The fields of its config.json that shapes depend on.
 * @typedef {{ base_dim: number, dim_mult: number[], num_res_blocks: number, temperal_downsample: boolean[], z_dim: number }} WanConfig
 */

/** @typedef {[string, number[]][]} Shapes */

/**
 * @param {WanConfig} config
 * @returns {Shapes}
 */
export function wanDecoderShapes({ base_dim: base, dim_mult: multiples, num_res_blocks: layers, temperal_downsample: temporal, z_dim: z }) {
  const widths = multiples.map((multiple) => multiple * base).reverse();
  const top = widths[0];
  const blocks = widths.flatMap((width, level) => {
    const path = `decoder.up_blocks.${level}`;
    // The change of size before this level has halved the channels.
    const from = level === 0 ? top : widths[level - 1] / 2;
    const resnets = Array.from({ length: layers + 1 }, (_, index) => resnet(`${path}.resnets.${index}`, index === 0 ? from : width, width)).flat();
    if (level === widths.length - 1) return resnets;
    const changesTime = temporal[widths.length - 2 - level];
    const time = changesTime ? filter(`${path}.upsamplers.0.time_conv`, width, 2 * width, [3, 1, 1]) : [];
    return [...resnets, ...time, ...filter(`${path}.upsamplers.0.resample.1`, width, width / 2, [3, 3])];
  });
  return [
    ...filter('post_quant_conv', z, z, [1, 1, 1]),
    ...filter('decoder.conv_in', z, top, [3, 3, 3]),
    ...resnet('decoder.mid_block.resnets.0', top, top),
    ['decoder.mid_block.attentions.0.norm.gamma', [top, 1, 1]],
    ...filter('decoder.mid_block.attentions.0.to_qkv', top, 3 * top, [1, 1]),
    ...filter('decoder.mid_block.attentions.0.proj', top, top, [1, 1]),
    ...resnet('decoder.mid_block.resnets.1', top, top),
    ...blocks,
    ['decoder.norm_out.gamma', [base, 1, 1, 1]],
    ...filter('decoder.conv_out', base, 3, [3, 3, 3]),
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
