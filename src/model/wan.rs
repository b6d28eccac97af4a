//! Graphs of the VAE of Wan 2.1, Wan 2.2 5B, Qwen-Image and Qwen-Image 2.1: diffusers'
//! `AutoencoderKLWan`, `AutoencoderKLQwenImage` and `AutoencoderKLQwenImage21`, which is for
//! images.
//!
//! A video VAE whose convolutions look back in time, with zeros before the first frame. In a single
//! image only the last of three taps in time sees the image. Layers that change time (`time_conv`)
//! leave the first frame unchanged: 1 + 4 n frames are 1 + n latents.

use super::blocks::{Blocks, Kernel, NormKind, Part};
use super::config::Wan;
use super::graph::{
    Border, Conv2d, Ending, Graph, PastFrames, PixelNormKind, Regroup, Shape, Sight, TensorId, Time, Transform,
    WeightSlice, Window,
};

/// The tap in time that sees a single image.
const NOW: WeightSlice = WeightSlice::Tap { taps: 3, index: 2 };

/// Builds the decoder for latents of `shape`.
pub(super) fn decoder(network: &Wan, part: Part, shape: Shape, transform: Transform, out_channels: u32) -> Graph {
    let mut blocks = blocks(network, part);
    let mut x = blocks.graph.input(shape, transform);
    x = blocks.graph.conv2d("post_quant_conv", x, shape.channels, 1);
    let channels: Vec<u32> = network.decoder_channels().into_iter().rev().collect();
    x = blocks.conv3("decoder.conv_in", x, channels[0]);
    x = blocks.middle("decoder.mid_block", x, Some(attention));
    for (level, &level_channels) in channels.iter().enumerate() {
        let (name, start) = (format!("decoder.up_blocks.{level}"), x);
        x = blocks.resnets(&name, x, level_channels, network.num_res_blocks + 1);
        let Some(change) = channels.len().checked_sub(level + 2) else { continue };
        let upsampler = format!("{name}.{}", if network.is_residual { "upsampler" } else { "upsamplers.0" });
        if part == Part::Next && network.changes_time(change) {
            x = double_time(&mut blocks, &format!("{upsampler}.time_conv"), x);
        }
        let residual = network.is_residual.then(|| {
            let (around, shortcut) = (format!("{name}.avg_shortcut"), in_part(network.up_shortcut(change), part));
            blocks.graph.regroup(&around, start, shortcut, level_channels, None)
        });
        let doubled = blocks.graph.upsample(x);
        let made = if network.is_residual { level_channels } else { level_channels / 2 };
        x = blocks.graph.conv2d(&format!("{upsampler}.resample.1"), doubled, made, 3);
        if let Some(residual) = residual {
            x = blocks.graph.add(residual, x);
        }
    }
    x = blocks.norm_silu("decoder.norm_out", x);
    x = blocks.conv3("decoder.conv_out", x, out_channels * (network.patch_size * network.upscale).pow(2));
    x = blocks.graph.patches(x, network.patch_size, true, true, out_channels);
    x = blocks.graph.patches(x, network.upscale, true, false, out_channels);
    blocks.graph.output(x, Ending { clamp: true, ..Ending::NONE });
    blocks.graph
}

/// Builds the encoder for images of `shape`. Its output has `channels` channels: mean and log
/// variance.
pub(super) fn encoder(network: &Wan, part: Part, shape: Shape, channels: u32) -> Graph {
    let mut blocks = blocks(network, part);
    let mut x = blocks.graph.input(shape, Transform::none(shape.channels));
    let pixels = shape.channels * network.patch_size.pow(2);
    x = blocks.graph.patches(x, network.patch_size, false, true, pixels);
    x = blocks.conv3("encoder.conv_in", x, network.base_dim);
    x = if network.is_residual {
        residual_levels(&mut blocks, network, part, x)
    } else {
        levels(&mut blocks, network, part, x)
    };
    x = blocks.middle("encoder.mid_block", x, Some(attention));
    x = blocks.norm_silu("encoder.norm_out", x);
    x = blocks.conv3("encoder.conv_out", x, channels);
    x = blocks.graph.conv2d("quant_conv", x, channels, 1);
    blocks.graph.output(x, Ending::NONE);
    blocks.graph
}

fn blocks(network: &Wan, part: Part) -> Blocks {
    let kernel = match part {
        // Files of Qwen-Image 2.1 hold only the tap that sees an image.
        _ if !network.is_video => Kernel::Image(WeightSlice::All),
        Part::Image => Kernel::Image(NOW),
        Part::First | Part::Next => Kernel::Frames(PastFrames::Kept),
    };
    Blocks::new(NormKind::Pixel(PixelNormKind::Gamma), kernel)
}

/// Returns the shortcut of an image as it is in `part`: later parts have all frames.
fn in_part(shortcut: Regroup, part: Part) -> Regroup {
    Regroup { missing: if part == Part::Next { 0 } else { shortcut.missing }, ..shortcut }
}

/// Adds the encoder's levels. Resnets and the layers between levels share one numbering.
fn levels(blocks: &mut Blocks, network: &Wan, part: Part, mut x: TensorId) -> TensorId {
    let levels = network.channels();
    let mut names = (0..).map(|index| format!("encoder.down_blocks.{index}"));
    let mut next = || names.next().unwrap_or_default();
    for (level, &level_channels) in levels.iter().enumerate() {
        for _ in 0..network.num_res_blocks {
            x = blocks.resnet(&next(), x, level_channels);
        }
        if level + 1 < levels.len() {
            let name = next();
            x = halve(blocks, &format!("{name}.resample.1"), x);
            if network.changes_time(level) {
                x = halve_time(blocks, format!("{name}.time_conv"), x, part);
            }
        }
    }
    x
}

/// Adds the encoder's levels, each with a shortcut around it.
fn residual_levels(blocks: &mut Blocks, network: &Wan, part: Part, mut x: TensorId) -> TensorId {
    let levels = network.channels();
    for (level, &level_channels) in levels.iter().enumerate() {
        let (name, start) = (format!("encoder.down_blocks.{level}"), x);
        let around = format!("{name}.avg_shortcut");
        let shortcut = in_part(network.down_shortcut(level), part);
        if level + 1 < levels.len() {
            // First, because it is smaller than what it is made from.
            let residual = blocks.graph.regroup(&around, start, shortcut, level_channels, None);
            x = blocks.resnets(&name, x, level_channels, network.num_res_blocks);
            x = halve(blocks, &format!("{name}.downsampler.resample.1"), x);
            if network.changes_time(level) {
                x = halve_time(blocks, format!("{name}.downsampler.time_conv"), x, part);
            }
            x = blocks.graph.add(residual, x);
        } else {
            // A sum takes two summands, so the last resnet's residual takes the shortcut in.
            let last = network.num_res_blocks - 1;
            x = blocks.resnets(&name, x, level_channels, last);
            x = blocks.resnet_with(&format!("{name}.resnets.{last}"), x, level_channels, |graph, residual| {
                graph.regroup(&around, start, shortcut, level_channels, Some(residual))
            });
        }
    }
    x
}

/// Adds the convolution `name`, which halves the size.
fn halve(blocks: &mut Blocks, name: &str, x: TensorId) -> TensorId {
    let channels = blocks.graph.shape(x).channels;
    blocks.graph.convolution(name, x, channels, Conv2d::of(name, Window::halving(Border::After)))
}

/// Doubles the frames with `time_conv`. The very first frame of a clip stays one frame and never
/// serves as past here.
fn double_time(blocks: &mut Blocks, name: &str, x: TensorId) -> TensorId {
    let time = Time { taps: 3, stride: 1, past: PastFrames::Kept };
    let channels = blocks.graph.shape(x).channels;
    let mut conv = Conv2d { phases: 2, ..Conv2d::of(name, Window::same(1)).over(time) };
    if !channels.is_multiple_of(4) {
        conv = conv.taking(WeightSlice::Filled { block: channels });
        conv.bias.take = WeightSlice::Filled { block: channels };
    }
    blocks.graph.convolution(name, x, channels, conv)
}

/// Halves the frames. The very first frame of a clip stays as it is, and later frames see it.
fn halve_time(blocks: &mut Blocks, name: String, x: TensorId, part: Part) -> TensorId {
    let time = Time { taps: 3, stride: 2, past: PastFrames::Kept };
    match part {
        Part::Image => x,
        Part::First => blocks.graph.keep(x, name, time.kept()),
        Part::Next => {
            let channels = blocks.graph.shape(x).channels;
            blocks.graph.convolution(&name, x, channels, Conv2d::of(&name, Window::same(1)).over(time))
        }
    }
}

/// Adds a `WanAttentionBlock`: `x + proj(attention(q, k, v))`, where `q`, `k` and `v` are thirds of
/// `to_qkv(norm(x))`.
fn attention(blocks: &mut Blocks, name: &str, x: TensorId) -> TensorId {
    let channels = blocks.graph.shape(x).channels;
    let normed = blocks.norm(&format!("{name}.norm"), x);
    let seen = [0, 1, 2].map(|third| {
        let of = channels * 3;
        let rows = WeightSlice::Rows { start: third * channels, block: channels, step: of, of, summed: 1 };
        let mut conv = Conv2d::of(&format!("{name}.to_qkv"), Window::same(1)).taking(rows);
        conv.bias.take = rows;
        blocks.graph.convolution(&format!("{name}.to_qkv.{third}"), normed, channels, conv)
    });
    let mixed = blocks.graph.attention(name, seen, Sight::Own);
    let branch = blocks.graph.conv2d(&format!("{name}.proj"), mixed, channels, 1);
    blocks.graph.add(x, branch)
}
