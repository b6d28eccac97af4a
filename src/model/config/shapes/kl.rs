//! Derivation of networks like `AutoencoderKL`, of HunyuanImage 2.1's, whose blocks are numbered
//! throughout, and of `SeedVR`'s, which has the names of `AutoencoderKL`.

use super::votes::{Needed, Shapes, most_common};
use crate::model::config::{AutoencoderConfig, Halves, Kl, Network, PaddingMode, SeedVr};

/// Number of groups of every norm. Shapes do not show it; every published model has 32.
const NORM_NUM_GROUPS: u32 = 32;

/// Derives the config of the network that `shapes` show.
pub(super) fn derive(shapes: &Shapes<'_>, halves: Halves) -> Result<AutoencoderConfig, Needed> {
    let latent_channels = shapes.latent_channels()?;
    let has_shortcuts = shapes.any(&|name| name.contains("coder.norm_out."));
    let encoder = if halves.encoder { Some(encoder_levels(shapes, has_shortcuts)?) } else { None };
    let decoder = if halves.decoder { Some(decoder_levels(shapes, has_shortcuts)?) } else { None };
    // The decoder has one resnet more.
    let decoder = decoder.map(|(channels, resnets)| (channels, resnets.saturating_sub(1)));
    let (block_out_channels, layers_per_block) =
        encoder.as_ref().or(decoder.as_ref()).ok_or("decoder.conv_in.weight")?.clone();
    let decoder_layers = decoder.as_ref().map(|(_, layers)| *layers).filter(|layers| *layers != layers_per_block);
    let decoder = decoder.map(|(channels, _)| channels);
    let network = if is_video(shapes) && !has_shortcuts {
        let temporal_scale_num = temporal_scale_num(shapes, &block_out_channels);
        Network::SeedVr(SeedVr {
            block_out_channels,
            layers_per_block,
            norm_num_groups: NORM_NUM_GROUPS,
            temporal_scale_num,
        })
    } else {
        Network::Kl(Kl {
            decoder_block_out_channels: decoder.filter(|channels| *channels != block_out_channels),
            block_out_channels,
            layers_per_block,
            decoder_layers_per_block: decoder_layers,
            norm_num_groups: NORM_NUM_GROUPS,
            mid_block_add_attention: shapes.any(&|name| name.contains(".mid_block.attentions.")),
            use_quant_conv: shapes.any(&|name| name.starts_with("quant_conv.")),
            use_post_quant_conv: shapes.any(&|name| name.starts_with("post_quant_conv.")),
            has_shortcuts,
            padding_mode: PaddingMode::Zeros,
        })
    };
    Ok(AutoencoderConfig { force_upcast: !has_shortcuts, ..AutoencoderConfig::new(network, latent_channels) })
}

/// Returns the channels of the encoder's levels, highest resolution first, and the number of
/// resnets in a level.
fn encoder_levels(shapes: &Shapes<'_>, numbered: bool) -> Result<(Vec<u32>, u32), Needed> {
    levels(shapes, "encoder.down_blocks", numbered).ok_or(if numbered {
        "encoder.down_blocks.0.conv1.weight"
    } else {
        "encoder.down_blocks.0.resnets.0.conv1.weight"
    })
}

/// Returns the channels of the decoder's levels, highest resolution first, and the number of
/// resnets in a level. `up_blocks.0` has the lowest resolution.
fn decoder_levels(shapes: &Shapes<'_>, numbered: bool) -> Result<(Vec<u32>, u32), Needed> {
    let levels = levels(shapes, "decoder.up_blocks", numbered).ok_or(if numbered {
        "decoder.up_blocks.0.conv1.weight"
    } else {
        "decoder.up_blocks.0.resnets.0.conv1.weight"
    });
    levels.map(|(channels, resnets)| (channels.into_iter().rev().collect(), resnets))
}

fn levels(shapes: &Shapes<'_>, blocks: &str, numbered: bool) -> Option<(Vec<u32>, u32)> {
    if numbered {
        return shapes.numbered_levels(blocks, "conv.");
    }
    let channels = shapes.levels(blocks)?;
    let resnets = (0..channels.len()).map(|level| shapes.count(&format!("{blocks}.{level}.resnets")));
    Some((channels, most_common(resnets)?))
}

/// True if convolutions have a time axis.
fn is_video(shapes: &Shapes<'_>) -> bool {
    shapes.most_common_rank(&|name| name.ends_with(".conv1.weight")) == Some(5)
}

/// Counts the size changes that also change time. Their `upscale_conv` has eight times the channels
/// instead of four, and their downsampler three taps in time.
fn temporal_scale_num(shapes: &Shapes<'_>, channels: &[u32]) -> u32 {
    let levels = channels.len().max(2);
    let is_temporal = |(level, channels): (usize, &u32)| {
        let up = |part: &str| {
            let name = format!("decoder.up_blocks.{level}.upsamplers.0.upscale_conv.{part}");
            let extent = shapes.extent(&name, 0)?;
            [4, 8].into_iter().find(|times| channels.checked_mul(*times) == Some(extent))
        };
        let down = || {
            let level = (levels - 2).checked_sub(level)?;
            let name = format!("encoder.down_blocks.{level}.downsamplers.0.conv.weight");
            Some(if shapes.extent(&name, 2)? == 3 { 8 } else { 4 })
        };
        most_common([up("weight"), up("bias"), down()].into_iter().flatten()) == Some(8)
    };
    let changes = channels.iter().rev().enumerate().take(channels.len().saturating_sub(1));
    changes.filter(|level| is_temporal(*level)).count().try_into().unwrap_or(u32::MAX)
}
