//! Graphs of `SeedVR`'s VAE.
//!
//! The network is SD 3's with a time axis. Its convolutions look back in time, and copies of the
//! first frame come before it. In a single image all three taps in time see the same image, so
//! their filters are summed. A layer that doubles time makes only one frame of the first: 1 + n
//! latents are 1 + 4 n frames.

use super::blocks::{Blocks, Kernel, NormKind, Part};
use super::config::SeedVr;
use super::graph::{Border, Conv2d, Ending, Graph, PastFrames, Shape, TensorId, Transform, WeightSlice, Window};

/// Builds the decoder for latents of `shape`.
pub(super) fn decoder(network: &SeedVr, part: Part, shape: Shape, transform: Transform, out_channels: u32) -> Graph {
    let mut blocks = blocks(network, part);
    let mut x = blocks.graph.input(shape, transform);
    let channels: Vec<u32> = network.block_out_channels.iter().rev().copied().collect();
    x = blocks.conv3("decoder.conv_in", x, channels[0]);
    x = blocks.middle("decoder.mid_block", x, Some(Blocks::attention));
    for (level, &level_channels) in (0..).zip(&channels) {
        let name = format!("decoder.up_blocks.{level}");
        x = blocks.resnets(&name, x, level_channels, network.layers_per_block + 1);
        if (level as usize) + 1 < channels.len() {
            let times = if level < network.temporal_scale_num { 2 } else { 1 };
            x = upsample(&mut blocks, &format!("{name}.upsamplers.0"), x, times, part);
        }
    }
    x = blocks.norm_silu("decoder.conv_norm_out", x);
    x = blocks.conv3("decoder.conv_out", x, out_channels);
    blocks.graph.output(x, Ending::NONE);
    blocks.graph
}

/// Builds the encoder for images of `shape`. Its output has `channels` channels: mean and log
/// variance.
pub(super) fn encoder(network: &SeedVr, part: Part, shape: Shape, channels: u32) -> Graph {
    let levels = &network.block_out_channels;
    let mut blocks = blocks(network, part);
    let mut x = blocks.graph.input(shape, Transform::none(shape.channels));
    x = blocks.conv3("encoder.conv_in", x, levels[0]);
    for (level, &level_channels) in levels.iter().enumerate() {
        let name = format!("encoder.down_blocks.{level}");
        x = blocks.resnets(&name, x, level_channels, network.layers_per_block);
        let to_come = levels.len() - 1 - level;
        if to_come > 0 {
            // The last size changes also change time.
            let temporal = to_come <= network.temporal_scale_num as usize;
            let kernel = if temporal { blocks.kernel } else { Kernel::Image(WeightSlice::Tap { taps: 1, index: 0 }) };
            let conv = format!("{name}.downsamplers.0.conv");
            let halving = kernel.conv(&conv, Window::halving(Border::After), 2);
            x = blocks.graph.convolution(&conv, x, level_channels, halving);
        }
    }
    x = blocks.middle("encoder.mid_block", x, Some(Blocks::attention));
    x = blocks.norm_silu("encoder.conv_norm_out", x);
    x = blocks.conv3("encoder.conv_out", x, channels);
    blocks.graph.output(x, Ending::NONE);
    blocks.graph
}

fn blocks(network: &SeedVr, part: Part) -> Blocks {
    let kernel = match part {
        // All taps see the same image.
        Part::Image => Kernel::Image(WeightSlice::SumOfTaps { taps: 3 }),
        Part::First => Kernel::Frames(PastFrames::Copies),
        Part::Next => Kernel::Frames(PastFrames::Kept),
    };
    Blocks::new(NormKind::Group(network.norm_num_groups), kernel)
}

/// Adds `upscale_conv`, which makes the channels of four pixels and `times` as many frames, then a
/// convolution. The very first frame stays one frame.
fn upsample(blocks: &mut Blocks, name: &str, x: TensorId, times: u32, part: Part) -> TensorId {
    let channels = blocks.graph.shape(x).channels;
    let upscale = format!("{name}.upscale_conv");
    // Order of channels in the file: ((sy * 2 + sx) * times + frame) * channels + c.
    let (take, phases) = match (times, part) {
        (1, _) => (WeightSlice::All, 1),
        (_, Part::Next) => (WeightSlice::Frames { frames: times, parts: 4, block: channels }, times),
        _ => {
            let of = 4 * times * channels;
            (WeightSlice::Rows { start: 0, block: channels, step: times * channels, of, summed: 1 }, 1)
        }
    };
    let mut conv = Conv2d { phases, ..Conv2d::of(&upscale, Window::same(1)).taking(take) };
    conv.bias.take = take;
    let wide = blocks.graph.convolution(&upscale, x, 4 * channels, conv);
    let doubled = blocks.graph.shuffle(wide);
    blocks.conv3(&format!("{name}.conv"), doubled, channels)
}
