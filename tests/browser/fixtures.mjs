// @ts-check
// The golden decodes and encodes of tests/fixtures: diffusers' pictures and moments in f64, and the
// models for them, whose weights come from a formula. make_fixtures.py states the formula. Beside
// numpy and Rust, this is its third implementation, so that a browser gets the same model.

import { readFile } from 'node:fs/promises';

import { readSafetensors, writeSafetensors } from './safetensors.mjs';

/** @typedef {import('./safetensors.mjs').Tensor} Tensor */

/**
 * Fields of a config.json that determine the shapes.
 * @typedef {object} Config
 * @property {number[]} block_out_channels
 * @property {number} latent_channels
 * @property {number} in_channels
 * @property {number} layers_per_block
 * @property {number} out_channels
 * @property {boolean} [mid_block_add_attention]
 * @property {boolean} [use_post_quant_conv]
 * @property {boolean} [use_quant_conv]
 */

/**
 * Reads a golden decode: the model, its latents, and diffusers' picture [1, 3, h, w]. Some have a
 * golden encode as well: a picture, and diffusers' moments of it.
 * @param {string} name
 */
export async function fixture(name) {
  const { metadata, tensor } = readSafetensors(await readFile(new URL(`../fixtures/${name}.safetensors`, import.meta.url)));
  const shape = /** @type {number[]} */ (JSON.parse(metadata.latent_shape));
  return {
    name,
    config: metadata.config,
    latents: { shape, data: fill('latents', count(shape), 0, 1.7) },
    image: tensor('image'),
    /** max |torch f16 - f64| / max |f64| */
    f16Error: Number(metadata.f16_error),
    encode: metadata.image_shape ? encode(JSON.parse(metadata.image_shape), tensor('moments'), Number(metadata.moments_f16_error)) : undefined,
  };
}

/** @typedef {Awaited<ReturnType<typeof fixture>>} Fixture */

/**
 * Reads a golden decode and encode of a clip: the model, its latents [1, c, t, h, w], and the
 * frames [1, 3, 1 + 4 (t - 1), h, w] of the whole clip in f64; pixels of as many frames, and their
 * moments in f64.
 * @param {string} name
 */
export async function clipFixture(name) {
  const { metadata, tensor } = readSafetensors(await readFile(new URL(`../fixtures/${name}.safetensors`, import.meta.url)));
  const [shape, pixels] = /** @type {number[][]} */ ([metadata.latent_shape, metadata.pixels_shape].map((text) => JSON.parse(text)));
  return {
    config: metadata.config,
    latents: { shape, data: fill('latents', count(shape), 0, 1.7) },
    frames: tensor('frames'),
    /** max |torch - f64| / max |f64|, in f32 and in f16 */
    errors: { f32: Number(metadata.frames_f32_error), f16: Number(metadata.frames_f16_error) },
    encode: {
      pixels: { shape: pixels, data: fill('pixels', count(pixels), 0, 1) },
      moments: tensor('moments'),
      errors: { f32: Number(metadata.moments_f32_error), f16: Number(metadata.moments_f16_error) },
    },
  };
}

/**
 * Returns frame `index` of a clip [1, 3, t, h, w] as a picture.
 * @param {Tensor} clip
 * @param {number} index
 * @returns {Tensor}
 */
export function frameOf({ shape: [, channels, frames, height, width], data }, index) {
  const plane = height * width;
  const starts = Array.from({ length: channels }, (_, channel) => (channel * frames + index) * plane);
  return { shape: [1, channels, height, width], data: Float32Array.from(starts.flatMap((start) => [...data.subarray(start, start + plane)])) };
}

/**
 * @param {number[]} shape
 * @param {Tensor} moments
 * @param {number} f16Error as in `fixture`
 */
function encode(shape, moments, f16Error) {
  return { image: { shape, data: fill('image', count(shape), 0, 1) }, moments, f16Error };
}

/**
 * Returns the decoder's weights as a .safetensors file.
 * @param {string} config config.json
 * @param {object} [options]
 * @param {boolean} [options.encoder] true to add the encoder's weights
 * @param {string} [options.prefix] prefix of every name: `first_stage_model.` and the like
 * @param {number} [options.hole] bytes of another tensor before them
 * @param {(name: string) => boolean} [options.keep] true for the names of tensors to write
 */
export function modelFile(config, { encoder = false, prefix = '', hole = 0, keep = () => true } = {}) {
  const parsed = JSON.parse(config);
  const kept = [...decoderShapes(parsed), ...(encoder ? encoderShapes(parsed) : [])].filter(([name]) => keep(name));
  return writeSafetensors(kept.map(([name, shape]) => [prefix + name, weight(name, shape)]), { hole });
}

/** @param {Tensor} latents */
export function latentsFile(latents) {
  return writeSafetensors([['latents', latents]]);
}

/**
 * Returns names and shapes of the tensors that diffusers' AutoencoderKL decodes with.
 * @param {Config} config
 * @returns {[string, number[]][]}
 */
export function decoderShapes(config) {
  const { block_out_channels: widths, latent_channels: z, layers_per_block: layers } = config;
  const top = /** @type {number} */ (widths.at(-1));
  const upward = [...widths].reverse();
  const blocks = upward.flatMap((width, level) => {
    const path = `decoder.up_blocks.${level}`;
    const first = resnet(`${path}.resnets.0`, upward[Math.max(0, level - 1)], width);
    const more = Array.from({ length: layers }, (_, index) => resnet(`${path}.resnets.${index + 1}`, width, width)).flat();
    const isLast = level === upward.length - 1;
    return [...first, ...more, ...(isLast ? [] : convolution(`${path}.upsamplers.0.conv`, width, width, 3))];
  });
  return [
    ...(config.use_post_quant_conv === false ? [] : convolution('post_quant_conv', z, z, 1)),
    ...convolution('decoder.conv_in', z, top, 3),
    ...resnet('decoder.mid_block.resnets.0', top, top),
    ...(config.mid_block_add_attention === false ? [] : attention('decoder.mid_block.attentions.0', top)),
    ...resnet('decoder.mid_block.resnets.1', top, top),
    ...blocks,
    ...norm('decoder.conv_norm_out', widths[0]),
    ...convolution('decoder.conv_out', widths[0], config.out_channels, 3),
  ];
}

/**
 * Returns names and shapes of the tensors that it encodes with.
 * @param {Config} config
 * @returns {[string, number[]][]}
 */
export function encoderShapes(config) {
  const { block_out_channels: widths, latent_channels: z, layers_per_block: layers } = config;
  const top = /** @type {number} */ (widths.at(-1));
  const blocks = widths.flatMap((width, level) => {
    const path = `encoder.down_blocks.${level}`;
    const first = resnet(`${path}.resnets.0`, widths[Math.max(0, level - 1)], width);
    const more = Array.from({ length: layers - 1 }, (_, index) => resnet(`${path}.resnets.${index + 1}`, width, width)).flat();
    const isLast = level === widths.length - 1;
    return [...first, ...more, ...(isLast ? [] : convolution(`${path}.downsamplers.0.conv`, width, width, 3))];
  });
  return [
    ...convolution('encoder.conv_in', config.in_channels, widths[0], 3),
    ...blocks,
    ...resnet('encoder.mid_block.resnets.0', top, top),
    ...(config.mid_block_add_attention === false ? [] : attention('encoder.mid_block.attentions.0', top)),
    ...resnet('encoder.mid_block.resnets.1', top, top),
    ...norm('encoder.conv_norm_out', top),
    ...convolution('encoder.conv_out', top, 2 * z, 3),
    ...(config.use_quant_conv === false ? [] : convolution('quant_conv', 2 * z, 2 * z, 1)),
  ];
}

/** @type {(name: string, from: number, to: number, side: number) => [string, number[]][]} */
const convolution = (name, from, to, side) => [[`${name}.weight`, [to, from, side, side]], [`${name}.bias`, [to]]];

/** @type {(name: string, width: number) => [string, number[]][]} */
const norm = (name, width) => [[`${name}.weight`, [width]], [`${name}.bias`, [width]]];

/** @type {(name: string, width: number) => [string, number[]][]} */
const linear = (name, width) => [[`${name}.weight`, [width, width]], [`${name}.bias`, [width]]];

/** @type {(name: string, from: number, to: number) => [string, number[]][]} */
const resnet = (name, from, to) => [
  ...norm(`${name}.norm1`, from),
  ...convolution(`${name}.conv1`, from, to, 3),
  ...norm(`${name}.norm2`, to),
  ...convolution(`${name}.conv2`, to, to, 3),
  ...(from === to ? [] : convolution(`${name}.conv_shortcut`, from, to, 1)),
];

/** @type {(name: string, width: number) => [string, number[]][]} */
const attention = (name, width) => [
  ...norm(`${name}.group_norm`, width),
  ...['to_q', 'to_k', 'to_v', 'to_out.0'].flatMap((part) => linear(`${name}.${part}`, width)),
];

/**
 * Returns the weight that diffusers calls `name`.
 * @param {string} name
 * @param {number[]} shape
 * @returns {Tensor}
 */
export function weight(name, shape) {
  if (name.endsWith('.bias')) return { shape, data: fill(name, count(shape), 0, 0.17) };
  // Weight of a norm.
  if (shape.length === 1 || name.endsWith('.gamma')) return { shape, data: fill(name, count(shape), 1, 0.35) };
  // Keeps clips from being clamped everywhere at -1 and 1.
  const times = name === 'decoder.conv_out.weight' && shape.length === 5 ? 2 : 1;
  return { shape, data: fill(name, count(shape), 0, times * Math.sqrt(3 / count(shape.slice(1)))) };
}

/** @param {number[]} shape */
export function count(shape) {
  return shape.reduce((product, side) => product * side, 1);
}

/**
 * @param {string} name
 * @param {number} length
 * @param {number} offset
 * @param {number} scale
 */
export function fill(name, length, offset, scale) {
  const values = new Float32Array(length);
  const [base, factor] = [Math.fround(offset), Math.fround(scale)];
  const hash = fnv1a64(name);
  let [high, low] = [Number(hash >> 32n), Number(hash & 0xffffffffn)];
  for (let index = 0; index < length; index += 1) {
    // The next number of splitmix64.
    const sum = low + 0x7f4a7c15;
    high = (high + 0x9e3779b9 + (sum > 0xffffffff ? 1 : 0)) >>> 0;
    low = sum >>> 0;
    const unit = (splitmixHigh(high, low) >>> 8) / 8388608 - 1;
    // In f32: one rounded product, one rounded sum.
    values[index] = base + Math.fround(factor * unit);
  }
  return values;
}

/** @param {string} text */
export function fnv1a64(text) {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash;
}

/**
 * Returns the upper 32 bits of splitmix64. Numbers of 64 bits are in two halves, without objects: a
 * published network has 50 million weights, for which BigInt takes minutes.
 * @type {(high: number, low: number) => number}
 */
function splitmixHigh(high, low) {
  // z ^ (z >>> 30), times 0xbf58476d1ce4e5b9.
  low ^= (low >>> 30) | (high << 2);
  high ^= high >>> 30;
  high = (upperOfProduct(low, 0x1ce4e5b9) + Math.imul(high, 0x1ce4e5b9) + Math.imul(low, 0xbf58476d)) | 0;
  low = Math.imul(low, 0x1ce4e5b9);
  // z ^ (z >>> 27), times 0x94d049bb133111eb.
  low ^= (low >>> 27) | (high << 5);
  high ^= high >>> 27;
  high = (upperOfProduct(low, 0x133111eb) + Math.imul(high, 0x133111eb) + Math.imul(low, 0x94d049bb)) | 0;
  // The upper half of z ^ (z >>> 31).
  return (high ^ (high >>> 31)) >>> 0;
}

/**
 * Returns the upper 32 bits of a product of two numbers of 32 bits.
 * @type {(a: number, b: number) => number}
 */
function upperOfProduct(a, b) {
  const [a1, a0] = [a >>> 16, a & 0xffff];
  const [b1, b0] = [b >>> 16, b & 0xffff];
  const middle = a1 * b0 + ((a0 * b0) >>> 16);
  const other = a0 * b1 + (middle & 0xffff);
  return a1 * b1 + Math.floor(middle / 65536) + (other >>> 16);
}
