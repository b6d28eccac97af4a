//! Derivation of networks like `AutoencoderKLWan`.

use super::votes::{Needed, Shapes, most_common};
use crate::model::config::{AutoencoderConfig, Halves, Network, Wan};
use crate::ordered::Set;

/// Derives the config of the network that `shapes` show.
pub(super) fn derive(shapes: &Shapes<'_>, halves: Halves) -> Result<AutoencoderConfig, Needed> {
    let is_residual = shapes.any(&|name| name.contains("sampler."));
    let (channels, num_res_blocks) = if halves.decoder { decoder_levels(shapes) } else { encoder_levels(shapes) }
        .ok_or(match (halves.decoder, is_residual) {
            (true, _) => "decoder.up_blocks.0.resnets.0.conv1.weight",
            (false, true) => "encoder.down_blocks.0.resnets.0.conv1.weight",
            (false, false) => "encoder.down_blocks.0.conv1.weight",
        })?;
    let base_dim = base_dim(shapes, is_residual && halves.encoder).ok_or("encoder.conv_in.weight")?;
    let (decoder_base_dim, dim_mult) = match encoder_levels(shapes).filter(|_| is_residual && halves.decoder) {
        // Both halves have the same multiples.
        Some((encoder, _)) => {
            let dim_mult: Vec<u32> = encoder.iter().map(|channels| channels / base_dim).collect();
            (channels[0] / dim_mult[0].max(1), dim_mult)
        }
        None => (base_dim, channels.iter().map(|channels| channels / base_dim).collect()),
    };
    let temperal_downsample = changes_of_time(shapes, halves, channels.len(), is_residual);
    let network = Wan {
        base_dim,
        decoder_base_dim,
        dim_mult,
        num_res_blocks,
        temperal_downsample,
        is_residual,
        is_video: shapes.reach_over_frames(),
        patch_size: if is_residual { shapes.image_patch() } else { 1 },
        upscale: if is_residual { 1 } else { shapes.upscale() },
    };
    Ok(AutoencoderConfig::new(Network::Wan(network), shapes.latent_channels()?))
}

/// Returns the channels of the decoder's levels, highest resolution first, and the number of
/// resnets in an encoder level.
fn decoder_levels(shapes: &Shapes<'_>) -> Option<(Vec<u32>, u32)> {
    let channels = shapes.levels("decoder.up_blocks")?.into_iter().rev().collect();
    Some((channels, shapes.count("decoder.up_blocks.0.resnets").saturating_sub(1)))
}

/// Returns the channels of the encoder's levels, and the number of resnets in a level. Its blocks
/// are numbered throughout: resnets, with downsamplers between the levels. Residual levels are
/// numbered by themselves.
fn encoder_levels(shapes: &Shapes<'_>) -> Option<(Vec<u32>, u32)> {
    let blocks = "encoder.down_blocks";
    let count = shapes.count("encoder.down_blocks.0.resnets");
    if count > 0 {
        return Some((shapes.levels(blocks)?, count));
    }
    shapes.numbered_levels(blocks, "resample.")
}

/// Returns, for each size change between `levels` levels, true if weights change time there.
/// Highest resolution first.
///
/// The shortcuts of residual levels depend on these changes, although images never use the weights.
/// So the result is empty, which is no valid network, if such weights are missing everywhere or one
/// half lacks those of the other: then only a config.json tells.
fn changes_of_time(shapes: &Shapes<'_>, halves: Halves, levels: usize, is_residual: bool) -> Vec<bool> {
    if !is_residual {
        return changes_of_half(shapes, halves, levels);
    }
    let one = |half: Halves| changes_of_half(shapes, half, levels);
    let encoder = halves.encoder.then(|| one(Halves { encoder: true, decoder: false }));
    let decoder = halves.decoder.then(|| one(Halves { encoder: false, decoder: true }));
    let agree = encoder.is_none() || decoder.is_none() || encoder == decoder;
    encoder.or(decoder).filter(|changes| agree && changes.contains(&true)).unwrap_or_default()
}

/// Returns what one half tells, see [`changes_of_time`]: the decoder if there is one.
fn changes_of_half(shapes: &Shapes<'_>, halves: Halves, levels: usize) -> Vec<bool> {
    let changes = u32::try_from(levels.saturating_sub(1)).unwrap_or(u32::MAX);
    if halves.decoder {
        let is_change =
            |rest: &str| rest.starts_with("upsamplers.0.time_conv.") || rest.starts_with("upsampler.time_conv.");
        let changed = shapes.numbers("decoder.up_blocks", &is_change);
        return (0..changes).rev().map(|level| changed.contains(&level)).collect();
    }
    let blocks = "encoder.down_blocks";
    let of = |part: &str| -> Set<u32> {
        shapes.numbers(blocks, &|rest| rest.trim_start_matches("downsampler.").starts_with(part))
    };
    let changed = of("time_conv.");
    of("resample.").items().iter().map(|number| changed.contains(number)).collect()
}

/// Returns the channels at full resolution, by the tensors there: of both halves, or only of the
/// encoder.
fn base_dim(shapes: &Shapes<'_>, encoder_only: bool) -> Option<u32> {
    let encoder = [("encoder.conv_in.weight", 0), ("encoder.conv_in.bias", 0)];
    let other = if encoder_only {
        [("encoder.down_blocks.0.resnets.0.norm1.gamma", 0), ("encoder.down_blocks.0.resnets.0.conv1.weight", 1)]
    } else {
        [("decoder.norm_out.gamma", 0), ("decoder.conv_out.weight", 1)]
    };
    let extents = encoder.into_iter().chain(other).filter_map(|(name, axis)| shapes.extent(name, axis));
    most_common(extents).filter(|base| *base > 0)
}
