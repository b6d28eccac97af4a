//! Graphs of diffusers' `AutoencoderKLQwenImage21`: Wan's network for images, with a shortcut
//! around each level.

use super::blocks::{Blocks, Kernel, NormKind};
use super::config::Wan;
use super::graph::{Border, Conv2d, Ending, Graph, Shape, Transform, WeightSlice, Window};
use super::wan::attention;

/// Builds the decoder for latents of `shape`.
pub(super) fn decoder(network: &Wan, shape: Shape, transform: Transform, out_channels: u32) -> Graph {
    let mut blocks = blocks();
    let mut x = blocks.graph.input(shape, transform);
    x = blocks.graph.conv2d("post_quant_conv", x, shape.channels, 1);
    let levels: Vec<u32> = network.decoder_channels().into_iter().rev().collect();
    x = blocks.conv3("decoder.conv_in", x, levels[0]);
    x = blocks.middle("decoder.mid_block", x, Some(attention));
    for (level, &channels) in levels.iter().enumerate() {
        let (name, start) = (format!("decoder.up_blocks.{level}"), x);
        x = blocks.resnets(&name, x, channels, network.num_res_blocks + 1);
        if let Some(change) = levels.len().checked_sub(level + 2) {
            let graph = &mut blocks.graph;
            let shortcut =
                graph.regroup(&format!("{name}.avg_shortcut"), start, network.up_shortcut(change), channels, None);
            let doubled = graph.upsample(x);
            let branch = graph.conv2d(&format!("{name}.upsampler.resample.1"), doubled, channels, 3);
            x = graph.add(shortcut, branch);
        }
    }
    x = blocks.norm_silu("decoder.norm_out", x);
    x = blocks.conv3("decoder.conv_out", x, out_channels);
    blocks.graph.output(x, Ending { clamp: true, ..Ending::NONE });
    blocks.graph
}

/// Builds the encoder for images of `shape`. Its output has `channels` channels: mean and log
/// variance.
pub(super) fn encoder(network: &Wan, shape: Shape, channels: u32) -> Graph {
    let mut blocks = blocks();
    let mut x = blocks.graph.input(shape, Transform::none(shape.channels));
    x = blocks.conv3("encoder.conv_in", x, network.base_dim);
    let levels = network.channels();
    for (level, &level_channels) in levels.iter().enumerate() {
        let (name, start) = (format!("encoder.down_blocks.{level}"), x);
        let (shortcut, around) = (network.down_shortcut(level), format!("{name}.avg_shortcut"));
        if level + 1 < levels.len() {
            let residual = blocks.graph.regroup(&around, start, shortcut, level_channels, None);
            x = blocks.resnets(&name, x, level_channels, network.num_res_blocks);
            let conv = format!("{name}.downsampler.resample.1");
            let halving = Conv2d::of(&conv, Window::halving(Border::After));
            let branch = blocks.graph.convolution(&conv, x, level_channels, halving);
            x = blocks.graph.add(residual, branch);
        } else {
            // A sum takes two summands, so the last resnet's residual takes the shortcut in.
            let last = network.num_res_blocks - 1;
            x = blocks.resnets(&name, x, level_channels, last);
            x = blocks.resnet_with(&format!("{name}.resnets.{last}"), x, level_channels, |graph, residual| {
                graph.regroup(&around, start, shortcut, level_channels, Some(residual))
            });
        }
    }
    x = blocks.middle("encoder.mid_block", x, Some(attention));
    x = blocks.norm_silu("encoder.norm_out", x);
    x = blocks.conv3("encoder.conv_out", x, channels);
    x = blocks.graph.conv2d("quant_conv", x, channels, 1);
    blocks.graph.output(x, Ending::NONE);
    blocks.graph
}

fn blocks() -> Blocks {
    Blocks::new(NormKind::Pixel, Kernel::Image(WeightSlice::All))
}
