//! Graphs of diffusers' `AutoencoderKL`: SD, SDXL, SD3, FLUX.1, FLUX.2, Z-Image, CogView4 and
//! similar models.
//!
//! Structure and names follow `diffusers.models.autoencoders`: `conv_in`, `down_blocks`,
//! `mid_block`, `up_blocks`, `conv_norm_out`, `conv_out`.

use super::blocks::{Attention, Blocks, Kernel, NormKind};
use super::config::Kl;
use super::graph::{Border, Conv2d, Ending, Graph, Shape, Transform, WeightSlice, Window};

/// Builds the decoder for latents of `shape`.
pub(super) fn decoder(network: &Kl, shape: Shape, transform: Transform, out_channels: u32) -> Graph {
    let mut blocks = blocks(network);
    let mut x = blocks.graph.input(shape, transform);
    if network.use_post_quant_conv {
        x = blocks.graph.conv2d("post_quant_conv", x, shape.channels, 1);
    }
    let channels: Vec<u32> = network.decoder_channels().iter().rev().copied().collect();
    x = blocks.conv3("decoder.conv_in", x, channels[0]);
    x = blocks.middle("decoder.mid_block", x, attention(network));
    for (level, &level_channels) in channels.iter().enumerate() {
        let name = format!("decoder.up_blocks.{level}");
        x = blocks.resnets(&name, x, level_channels, network.decoder_resnets());
        if level + 1 < channels.len() {
            let doubled = blocks.graph.upsample(x);
            x = blocks.conv3(&format!("{name}.upsamplers.0.conv"), doubled, level_channels);
        }
    }
    x = blocks.norm_silu("decoder.conv_norm_out", x);
    x = blocks.conv3("decoder.conv_out", x, out_channels);
    blocks.graph.output(x, Ending::NONE);
    blocks.graph
}

/// Builds the encoder for images of `shape`. Its output has `channels` channels: mean and log
/// variance.
pub(super) fn encoder(network: &Kl, shape: Shape, channels: u32) -> Graph {
    let levels = &network.block_out_channels;
    let mut blocks = blocks(network);
    let mut x = blocks.graph.input(shape, Transform::none(shape.channels));
    x = blocks.conv3("encoder.conv_in", x, levels[0]);
    for (level, &level_channels) in levels.iter().enumerate() {
        let name = format!("encoder.down_blocks.{level}");
        x = blocks.resnets(&name, x, level_channels, network.layers_per_block);
        if level + 1 < levels.len() {
            let conv = format!("{name}.downsamplers.0.conv");
            x = blocks.graph.convolution(&conv, x, level_channels, Conv2d::of(&conv, Window::halving(Border::After)));
        }
    }
    x = blocks.middle("encoder.mid_block", x, attention(network));
    x = blocks.norm_silu("encoder.conv_norm_out", x);
    x = blocks.conv3("encoder.conv_out", x, channels);
    if network.use_quant_conv {
        x = blocks.graph.conv2d("quant_conv", x, channels, 1);
    }
    blocks.graph.output(x, Ending::NONE);
    blocks.graph
}

fn blocks(network: &Kl) -> Blocks {
    let blocks = Blocks::new(NormKind::Group(network.norm_num_groups), Kernel::Image(WeightSlice::All));
    Blocks { border: network.padding_mode.border(), ..blocks }
}

fn attention(network: &Kl) -> Option<Attention> {
    network.mid_block_add_attention.then_some(Blocks::attention)
}
