//! Graphs of the VAE of HunyuanImage 2.1: diffusers' `AutoencoderKLHunyuanImage`.
//!
//! The resnets and the attention are those of `AutoencoderKL`. A size change moves pixels into
//! channels, or back, and also changes the number of channels. A shortcut without weights leads
//! around each size change, around the decoder's first convolution and around the encoder's last
//! layers.

use super::blocks::{Attention, Blocks, Kernel, NormKind};
use super::config::Kl;
use super::graph::{Conv2d, Ending, Graph, Regroup, Resize, Shape, TensorId, Transform, WeightSlice, Window};

/// Builds the decoder for latents of `shape`.
pub(super) fn decoder(network: &Kl, shape: Shape, transform: Transform, out_channels: u32) -> Graph {
    let mut blocks = blocks(network);
    let latents = blocks.graph.input(shape, transform);
    let channels: Vec<u32> = network.decoder_channels().iter().rev().copied().collect();
    let copies = blocks.graph.regroup("decoder.conv_in (shortcut)", latents, Regroup::COPY, channels[0], None);
    let mut x = blocks.conv3("decoder.conv_in", latents, channels[0]);
    x = blocks.graph.add(copies, x);
    x = blocks.middle("decoder.mid_block", x, attention(network));
    x = levels(&mut blocks, "decoder.up_blocks", x, &channels, network.decoder_resnets(), Resize::Double);
    x = blocks.norm_silu("decoder.norm_out", x);
    x = blocks.conv3("decoder.conv_out", x, out_channels);
    blocks.graph.output(x, Ending::NONE);
    blocks.graph
}

/// Builds the encoder for images of `shape`. Its output has `channels` channels: mean and log
/// variance.
pub(super) fn encoder(network: &Kl, shape: Shape, channels: u32) -> Graph {
    let levels_of = &network.block_out_channels;
    let mut blocks = blocks(network);
    let mut x = blocks.graph.input(shape, Transform::none(shape.channels));
    x = blocks.conv3("encoder.conv_in", x, levels_of[0]);
    x = levels(&mut blocks, "encoder.down_blocks", x, levels_of, network.layers_per_block, Resize::Halve);
    x = blocks.middle("encoder.mid_block", x, attention(network));
    x = blocks.encoder_end(x, channels);
    blocks.graph.output(x, Ending::NONE);
    blocks.graph
}

fn blocks(network: &Kl) -> Blocks {
    let blocks = Blocks::new(NormKind::Group(network.norm_num_groups), Kernel::Image(WeightSlice::All));
    Blocks { border: network.padding_mode.border(), ..blocks }
}

fn attention(network: &Kl) -> Option<Attention> {
    network.mid_block_add_attention.then_some(|blocks, name, x| blocks.attention_named(name, x, ["norm", "proj"]))
}

/// Adds levels of `channels`, each with `count` resnets. Resnets and the size changes between
/// levels share one numbering in `list`.
fn levels(blocks: &mut Blocks, list: &str, mut x: TensorId, channels: &[u32], count: u32, resize: Resize) -> TensorId {
    let mut number = 0;
    let mut next = || {
        number += 1;
        format!("{list}.{}", number - 1)
    };
    for (level, &level_channels) in channels.iter().enumerate() {
        for _ in 0..count {
            x = blocks.resnet(&next(), x, level_channels);
        }
        if let Some(&to) = channels.get(level + 1) {
            x = resample(blocks, &next(), x, to, resize);
        }
    }
    x
}

/// Adds a `HunyuanImageDownsample` or `HunyuanImageUpsample` to `channels` channels: a convolution
/// whose channels are those of a quarter of the pixels or of four, and its shortcut.
fn resample(blocks: &mut Blocks, name: &str, x: TensorId, channels: u32, resize: Resize) -> TensorId {
    let kind = Regroup { resize, by_place: true, ..Regroup::COPY };
    let mut sum = blocks.graph.regroup(&format!("{name} (shortcut)"), x, kind, channels, None);
    let conv = format!("{name}.conv");
    if resize == Resize::Halve {
        let moved = blocks.conv3(&conv, x, channels / 4);
        return blocks.graph.regroup(name, moved, kind, channels, Some(sum));
    }
    // The upper two of four pixels, then the lower two: half of the filter fits WebGPU's bindings
    // in f32, and half of the result takes less memory.
    let half = channels * 2;
    for row in 0..2 {
        let take = WeightSlice::Rows { start: row * half, block: half, step: half * 2, of: half * 2, summed: 1 };
        let mut filter = Conv2d::of(&conv, Window { border: blocks.border, ..Window::same(3) }).taking(take);
        filter.bias.take = take;
        let moved = blocks.graph.convolution(&format!("{conv}.{row}"), x, half, filter);
        let kind = Regroup { row: Some(row), ..kind };
        sum = blocks.graph.regroup(&format!("{name}.{row}"), moved, kind, channels, Some(sum));
    }
    sum
}
