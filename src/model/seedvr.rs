//! `SeedVR`'s video VAE as graphs, for single images.
//!
//! SD 3's network with an axis of time. Its convolutions look back in time, where the first frame is repeated before the first: a single image meets
//! all three taps of a kernel, which are therefore summed. Of what doubles time, the first half is the image's.

use super::blocks::{Blocks, Norm};
use super::config::SeedVr;
use super::graph::{Border, Conv2d, Ending, Graph, Shape, Take, TensorId, Transform, Window};

/// All taps meet the same image.
const EVERY_TAP: Take = Take::SumOfTaps { taps: 3 };

/// The decoder of latents of `shape`.
pub(super) fn decoder(network: &SeedVr, shape: Shape, transform: Transform, out_channels: u32) -> Graph {
    let mut blocks = blocks(network);
    let mut x = blocks.graph.input(shape, transform);
    let channels: Vec<u32> = network.block_out_channels.iter().rev().copied().collect();
    x = blocks.conv3("decoder.conv_in", x, channels[0]);
    x = blocks.middle("decoder.mid_block", x, Some(Blocks::attention));
    for (level, &level_channels) in (0..).zip(&channels) {
        let name = format!("decoder.up_blocks.{level}");
        x = blocks.resnets(&name, x, level_channels, network.layers_per_block + 1);
        if (level as usize) + 1 < channels.len() {
            let times = if level < network.temporal_scale_num { 2 } else { 1 };
            x = upsample(&mut blocks, &format!("{name}.upsamplers.0"), x, times);
        }
    }
    x = blocks.norm_silu("decoder.conv_norm_out", x);
    x = blocks.conv3("decoder.conv_out", x, out_channels);
    blocks.graph.output(x, Ending::NONE);
    blocks.graph
}

/// The encoder of images of `shape`, with `channels` of mean and variance.
pub(super) fn encoder(network: &SeedVr, shape: Shape, channels: u32) -> Graph {
    let levels = &network.block_out_channels;
    let mut blocks = blocks(network);
    let mut x = blocks.graph.input(shape, Transform::none(shape.channels));
    x = blocks.conv3("encoder.conv_in", x, levels[0]);
    for (level, &level_channels) in levels.iter().enumerate() {
        let name = format!("encoder.down_blocks.{level}");
        x = blocks.resnets(&name, x, level_channels, network.layers_per_block);
        let to_come = levels.len() - 1 - level;
        if to_come > 0 {
            // The last changes of size are those that change time, too.
            let temporal = to_come <= network.temporal_scale_num as usize;
            let kernel = if temporal { EVERY_TAP } else { Take::Tap { taps: 1, index: 0 } };
            let conv = format!("{name}.downsamplers.0.conv");
            let halving = Conv2d::of(&conv, Window::halving(Border::After)).taking(kernel);
            x = blocks.graph.convolution(&conv, x, level_channels, halving);
        }
    }
    x = blocks.middle("encoder.mid_block", x, Some(Blocks::attention));
    x = blocks.norm_silu("encoder.conv_norm_out", x);
    x = blocks.conv3("encoder.conv_out", x, channels);
    blocks.graph.output(x, Ending::NONE);
    blocks.graph
}

fn blocks(network: &SeedVr) -> Blocks {
    Blocks { graph: Graph::default(), norm: Norm::Group(network.norm_num_groups), kernel: EVERY_TAP }
}

/// `upscale_conv` to the channels of four pixels, `times` as many frames of them, of which the first is taken; then a convolution.
fn upsample(blocks: &mut Blocks, name: &str, x: TensorId, times: u32) -> TensorId {
    let channels = blocks.graph.shape(x).channels;
    let upscale = format!("{name}.upscale_conv");
    // Channel ((sy * 2 + sx) * times + frame) * channels + c of the file.
    let first = match times {
        1 => Take::All,
        _ => Take::Rows { start: 0, block: channels, step: times * channels, of: 4 * times * channels },
    };
    let mut conv = Conv2d::of(&upscale, Window::same(1)).taking(first);
    conv.bias.take = first;
    let wide = blocks.graph.convolution(&upscale, x, 4 * channels, conv);
    let doubled = blocks.graph.shuffle(wide);
    blocks.conv3(&format!("{name}.conv"), doubled, channels)
}
