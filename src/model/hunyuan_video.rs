//! Graphs of `AutoencoderKLHunyuanVideo15`: the VAE of HunyuanVideo 1.5.
//!
//! Convolutions look back in time. Beyond the borders of a frame, and before the first frame, they
//! see copies of the nearest pixels. Attention in the middle sees all earlier frames, too.
//!
//! Sizes change by moving pixels and frames into channels, with a shortcut around each change. The
//! first frame stays one frame: 1 + 4 n frames are 1 + n latents.

use super::blocks::{Blocks, Kernel, NormKind, Part};
use super::config::HunyuanVideo;
use super::graph::{
    Border, Ending, Graph, PastFrames, PixelNormKind, Regroup, Resize, Shape, Sight, TensorId, Transform, WeightSlice,
    Window,
};

/// Taps in time of each 3x3 filter.
const TAPS: u32 = 3;

/// Builds the decoder for latents of `shape`.
pub(super) fn decoder(
    network: &HunyuanVideo,
    part: Part,
    shape: Shape,
    transform: Transform,
    out_channels: u32,
) -> Graph {
    let mut blocks = blocks(part);
    let latents = blocks.graph.input(shape, transform);
    let lowest = network.block_out_channels.len() - 1;
    let channels = network.block_out_channels[lowest];
    let copies = blocks.graph.regroup("decoder.conv_in (shortcut)", latents, Regroup::COPY, channels, None);
    let mut x = blocks.conv3("decoder.conv_in", latents, channels);
    x = blocks.graph.add(copies, x);
    x = blocks.middle("decoder.mid_block", x, Some(attention));
    for (level, &channels) in network.block_out_channels.iter().enumerate().rev() {
        let name = format!("decoder.up_blocks.{}", lowest - level);
        x = blocks.resnets(&name, x, channels, network.layers_per_block + 1);
        if let Some(higher) = level.checked_sub(1) {
            let time = network.changes_time(higher);
            let made = network.block_out_channels[higher];
            x = upsample(&mut blocks, &format!("{name}.upsamplers.0.conv"), x, made, time, part);
        }
    }
    x = blocks.norm_silu("decoder.norm_out", x);
    x = blocks.conv3("decoder.conv_out", x, out_channels);
    blocks.graph.output(x, Ending::NONE);
    blocks.graph
}

/// Builds the encoder for images of `shape`. Its output has `channels` channels: mean and log
/// variance.
pub(super) fn encoder(network: &HunyuanVideo, part: Part, shape: Shape, channels: u32) -> Graph {
    let mut blocks = blocks(part);
    let mut x = blocks.graph.input(shape, Transform::none(shape.channels));
    x = blocks.conv3("encoder.conv_in", x, network.block_out_channels[0]);
    for (level, &own) in network.block_out_channels.iter().enumerate() {
        let name = format!("encoder.down_blocks.{level}");
        x = blocks.resnets(&name, x, own, network.layers_per_block);
        if let Some(&made) = network.block_out_channels.get(level + 1) {
            let time = network.changes_time(level);
            x = downsample(&mut blocks, &format!("{name}.downsamplers.0.conv"), x, made, time, part);
        }
    }
    x = blocks.middle("encoder.mid_block", x, Some(attention));
    x = blocks.encoder_end(x, channels);
    blocks.graph.output(x, Ending::NONE);
    blocks.graph
}

fn blocks(part: Part) -> Blocks {
    let (kernel, sight) = match part {
        // All taps in time see copies of the image.
        Part::Image => (Kernel::Image(WeightSlice::SumOfTaps { taps: TAPS }), Sight::Own),
        Part::First => (Kernel::Frames(PastFrames::Copies), Sight::First),
        Part::Next => (Kernel::Frames(PastFrames::Kept), Sight::UpToOwn),
    };
    let blocks = Blocks::new(NormKind::Pixel(PixelNormKind::Gamma), kernel);
    Blocks { border: Border::Copies, sight, ..blocks }
}

fn attention(blocks: &mut Blocks, name: &str, x: TensorId) -> TensorId {
    blocks.attention_named(name, x, ["norm", "proj_out"])
}

/// Adds a `HunyuanVideo15Upsample` to `made` channels: a convolution, whose channels become pixels
/// and perhaps frames. Its shortcut is copies of the input in the same order.
fn upsample(blocks: &mut Blocks, name: &str, x: TensorId, made: u32, time: bool, part: Part) -> TensorId {
    let frames = if time && part == Part::Next { 2 } else { 1 };
    let grow = Regroup { resize: Resize::Double, frames, by_place: true, ..Regroup::COPY };
    let shortcut = blocks.graph.regroup(&format!("{name} (shortcut)"), x, grow, made, None);
    let mut conv = blocks.kernel.conv(name, Window { border: blocks.border, ..Window::same(3) }, 1);
    if time && part != Part::Next {
        // The first frame becomes one frame, by the first half of the channels of each pixel.
        let rows = |summed| WeightSlice::Rows { start: 0, block: made, step: made * 2, of: made * 8, summed };
        conv.weight.take = rows(if part == Part::Image { TAPS } else { 1 });
        conv.bias.take = rows(1);
    }
    let wide = blocks.graph.convolution(name, x, made * grow.places(), conv);
    blocks.graph.regroup(&format!("{name} (pixels)"), wide, grow, made, Some(shortcut))
}

/// Adds a `HunyuanVideo15Downsample` to `made` channels: a convolution, whose pixels and perhaps
/// frames become channels, and means over the input as its shortcut.
fn downsample(blocks: &mut Blocks, name: &str, x: TensorId, made: u32, time: bool, part: Part) -> TensorId {
    let alone = Regroup { resize: Resize::Halve, by_place: true, ..Regroup::COPY };
    let pairs = Regroup { frames: 2, ..alone };
    let is_first = part != Part::Next;
    let means = if time && !is_first { pairs } else { alone };
    let shortcut = blocks.graph.regroup(&format!("{name} (shortcut)"), x, means, made, None);
    let moves = match (time, is_first) {
        (false, _) => alone,
        (true, false) => pairs,
        // The first frame comes twice.
        (true, true) => Regroup { missing: 1, repeats_first: true, ..pairs },
    };
    let narrow = blocks.conv3(name, x, made / moves.places());
    blocks.graph.regroup(&format!("{name} (pixels)"), narrow, moves, made, Some(shortcut))
}
