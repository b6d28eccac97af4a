//! Derivation of networks like `AutoencoderKLLTX2Video`.

use super::votes::{Needed, Shapes, most_common};
use crate::model::config::{AutoencoderConfig, Halves, Ltx2, Network, SizeChange};

/// Derives the config of the network that `shapes` show.
///
/// Weights show neither shortcuts nor borders. So those of LTX-2 are assumed if all size changes of
/// the decoder also change time, and those of LTX-2.3 otherwise.
pub(super) fn derive(shapes: &Shapes<'_>, halves: Halves) -> Result<AutoencoderConfig, Needed> {
    let mut network = Ltx2 { patch_size: shapes.image_patch(), ..Ltx2::published() };
    if halves.decoder {
        decoder(shapes, &mut network).ok_or("decoder.up_blocks.0.upsamplers.0.conv.weight")?;
    }
    if halves.encoder {
        encoder(shapes, &mut network).ok_or("encoder.down_blocks.0.downsamplers.0.conv.weight")?;
    }
    let witnesses = [("decoder.conv_in.weight", 1), ("encoder.conv_in.weight", 0), ("encoder.conv_in.bias", 0)];
    let latents = witnesses.into_iter().filter_map(|(name, axis)| shapes.extent(name, axis));
    let latents = most_common(latents).ok_or("decoder.conv_in.weight")?;
    Ok(AutoencoderConfig::new(Network::Ltx2(network), latents))
}

fn decoder(shapes: &Shapes<'_>, network: &mut Ltx2) -> Option<()> {
    let made = shapes.levels("decoder.up_blocks")?;
    let levels = (0..).take(made.len());
    let read: Vec<u32> = middle(shapes, "decoder").into_iter().chain(made.iter().copied()).take(made.len()).collect();
    let change = |(level, made): (u32, &u32)| {
        let conv = format!("decoder.up_blocks.{level}.upsamplers.0.conv");
        size_change(shapes, &conv, |rows| rows.checked_div(*made))
    };
    network.upsample = levels.clone().zip(&made).map(change).collect::<Option<_>>()?;
    network.upsample_factor =
        read.iter().zip(&made).map(|(read, made)| read.checked_div(*made)).collect::<Option<_>>()?;
    let is_first = network.upsample.iter().all(|change| *change == SizeChange::BOTH);
    (network.upsample_residual, network.decoder_reflects) = (vec![is_first; made.len()], is_first);
    network.decoder_block_out_channels = read;
    let counts = levels.map(|level| shapes.count(&format!("decoder.up_blocks.{level}.resnets")));
    network.decoder_layers_per_block =
        std::iter::once(shapes.count("decoder.mid_block.resnets")).chain(counts).collect();
    Some(())
}

fn encoder(shapes: &Shapes<'_>, network: &mut Ltx2) -> Option<()> {
    let read = shapes.levels("encoder.down_blocks")?;
    let levels = (0..).take(read.len());
    let made: Vec<u32> = read.into_iter().skip(1).chain(middle(shapes, "encoder")).collect();
    let change = |(level, made): (u32, &u32)| {
        let conv = format!("encoder.down_blocks.{level}.downsamplers.0.conv");
        size_change(shapes, &conv, |rows| made.checked_div(rows))
    };
    network.downsample = levels.clone().zip(&made).map(change).collect::<Option<_>>()?;
    network.block_out_channels = made;
    let counts = levels.map(|level| shapes.count(&format!("encoder.down_blocks.{level}.resnets")));
    network.layers_per_block = counts.chain([shapes.count("encoder.mid_block.resnets")]).collect();
    Some(())
}

/// Returns the channels of the middle block of `half`.
fn middle(shapes: &Shapes<'_>, half: &str) -> Option<u32> {
    let start = format!("{half}.mid_block.resnets.");
    shapes.most_common_first_extent(&|name| name.starts_with(&start))
}

/// Returns the size change of the convolution `conv`, by the first of its tensors with rows for
/// one. `places` gives the pixels on one side for a pixel on the other.
fn size_change(shapes: &Shapes<'_>, conv: &str, places: impl Fn(u32) -> Option<u32>) -> Option<SizeChange> {
    let rows = ["weight", "bias"].map(|part| shapes.extent(&format!("{conv}.{part}"), 0));
    rows.into_iter().flatten().find_map(|rows| {
        let places = places(rows)?;
        [SizeChange::SPACE, SizeChange::TIME, SizeChange::BOTH].into_iter().find(|change| change.places() == places)
    })
}
