//! Graphs of `AutoencoderKLLTX2Video`: the VAE of LTX-2, 2.3 and 2.5.
//!
//! The encoder looks back in time, with copies of the first frame before it. The decoder's
//! convolutions also see the next frame, and copies of the last frame come after it. So in a clip
//! each of them lags one frame behind its input, and its input is a window: the frames of this part
//! with two of the part before. In a single image all taps in time see the same image, so their
//! filters are summed.
//!
//! Sizes change by moving pixels and frames into channels. 1 + 8 n frames are 1 + n latents.

use super::blocks::{Blocks, Kernel, NormKind, Part};
use super::config::{Ltx2, Ltx2Level, SizeChange};
use super::graph::{
    Border, Ending, Graph, PastFrames, PixelNormKind, Regroup, Resize, Shape, TensorId, Transform, WeightSlice,
};

/// Builds the decoder for latents of `shape`.
pub(super) fn decoder(network: &Ltx2, part: Part, shape: Shape, transform: Transform, out_channels: u32) -> Graph {
    let mut blocks = blocks(part, PastFrames::Window);
    if network.decoder_reflects {
        blocks.border = Border::Mirror;
    }
    let levels = network.decoder_levels();
    let mut x = blocks.graph.input(shape, transform);
    x = blocks.seen("decoder.conv_in", x);
    x = blocks.conv3("decoder.conv_in", x, levels[0].channels);
    x = blocks.resnets("decoder.mid_block", x, levels[0].channels, network.decoder_layers_per_block[0]);
    for (index, level) in levels.iter().enumerate() {
        let name = format!("decoder.up_blocks.{index}");
        x = upsample(&mut blocks, &format!("{name}.upsamplers.0.conv"), x, *level, part);
        let channels = blocks.graph.shape(x).channels;
        x = blocks.resnets(&name, x, channels, network.decoder_layers_per_block[index + 1]);
    }
    x = last(&mut blocks, "decoder", x, out_channels * network.patch_size.pow(2));
    x = blocks.graph.patches(x, network.patch_size, true, true, out_channels);
    blocks.graph.output(x, Ending::NONE);
    blocks.graph
}

/// Builds the encoder for images of `shape`. Its output has one more channel than latents: their
/// means, and one log variance for all of them.
pub(super) fn encoder(network: &Ltx2, part: Part, shape: Shape, latents: u32) -> Graph {
    let past = if part == Part::First { PastFrames::Copies } else { PastFrames::Kept };
    let mut blocks = blocks(part, past);
    let mut x = blocks.graph.input(shape, Transform::none(shape.channels));
    let channels = shape.channels * network.patch_size.pow(2);
    x = blocks.graph.patches(x, network.patch_size, false, true, channels);
    x = blocks.conv3("encoder.conv_in", x, latents);
    for (index, (change, &made)) in network.downsample.iter().zip(&network.block_out_channels).enumerate() {
        let name = format!("encoder.down_blocks.{index}");
        let own = blocks.graph.shape(x).channels;
        x = blocks.resnets(&name, x, own, network.layers_per_block[index]);
        x = downsample(&mut blocks, &format!("{name}.downsamplers.0.conv"), x, *change, made, part);
    }
    let own = blocks.graph.shape(x).channels;
    x = blocks.resnets("encoder.mid_block", x, own, network.layers_per_block[network.downsample.len()]);
    x = last(&mut blocks, "encoder", x, latents + 1);
    blocks.graph.output(x, Ending::NONE);
    blocks.graph
}

fn blocks(part: Part, past: PastFrames) -> Blocks {
    let kernel = match part {
        Part::Image => Kernel::Image(WeightSlice::SumOfTaps { taps: 3 }),
        Part::First | Part::Next => Kernel::Frames(past),
    };
    Blocks::new(NormKind::Pixel(PixelNormKind::Plain), kernel)
}

/// Adds the last layers of `half` before the patches.
fn last(blocks: &mut Blocks, half: &str, x: TensorId, channels: u32) -> TensorId {
    let name = format!("{half}.conv_out");
    let seen = blocks.seen(&name, x);
    let hidden = blocks.norm_silu(&format!("{half}.norm_out"), seen);
    blocks.conv3(&name, hidden, channels)
}

/// Adds an `LTX2VideoUpsampler3d`: a convolution, whose channels become pixels and frames. Its
/// shortcut, if it has one, is several copies of the input in the same order.
fn upsample(blocks: &mut Blocks, name: &str, x: TensorId, level: Ltx2Level, part: Part) -> TensorId {
    let channels = blocks.graph.shape(x).channels;
    let made = channels / level.factor;
    let places = level.change.places();
    let seen = blocks.seen(name, x);
    let grow = Regroup {
        resize: if level.change.space { Resize::Double } else { Resize::Keep },
        frames: level.change.frames(),
        // An image is the last of the frames that are made of it.
        missing: if part == Part::Image { level.change.frames() - 1 } else { 0 },
        longer: !level.change.space,
        ..Regroup::COPY
    };
    let shortcut = level.residual.then(|| {
        let of_window = (part != Part::Image).then_some(1);
        let copies = Regroup { tiled: true, of_window, ..grow };
        blocks.graph.regroup(&format!("{name} (shortcut)"), seen, copies, made, None)
    });
    let wide = blocks.conv3(name, seen, made * places);
    blocks.graph.regroup(&format!("{name} (pixels)"), wide, grow, made, shortcut)
}

/// Adds an `LTX2VideoDownsampler3d`: a convolution, whose pixels and frames become channels, and
/// means over the input as its shortcut.
fn downsample(blocks: &mut Blocks, name: &str, x: TensorId, change: SizeChange, made: u32, part: Part) -> TensorId {
    let shrink = Regroup {
        resize: if change.space { Resize::Halve } else { Resize::Keep },
        frames: change.frames(),
        // The first frame comes twice.
        missing: if part == Part::Next { 0 } else { change.frames() - 1 },
        repeats_first: true,
        ..Regroup::COPY
    };
    let shortcut = blocks.graph.regroup(&format!("{name} (shortcut)"), x, shrink, made, None);
    let narrow = blocks.conv3(name, x, made / change.places());
    blocks.graph.regroup(&format!("{name} (pixels)"), narrow, shrink, made, Some(shortcut))
}
