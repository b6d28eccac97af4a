//! Derivation of DC-AE's network. Weights do not show its functions and the shortcuts next to the
//! latents.

use super::votes::{LEVELS, Needed, Shapes, most_common, vote};
use crate::model::config::{AutoencoderConfig, Dc, DcBlock, DcLevel, DcNorm, Halves, Network};
use crate::model::graph::Activation;

/// Ends of names that show a batch norm: as a checkpoint has it, and where a part of it is missing.
const BATCH_NORM: [&str; 3] = [".conv2.bias", ".norm.running_mean", ".norm.running_var"];

/// Derives the config of the network that `shapes` show.
pub(super) fn derive(shapes: &Shapes<'_>, halves: Halves) -> Result<AutoencoderConfig, Needed> {
    let known = Dc::published();
    let head = shapes.most_common_extent(1, &|name| name.ends_with("to_qkv_multiscale.0.proj_out.weight"));
    let mut network = Dc { attention_head_dim: head.unwrap_or(known.attention_head_dim), ..known };
    if halves.encoder {
        network.encoder = levels(shapes, "encoder.down_blocks").ok_or("encoder.down_blocks.1.0.conv1.weight")?;
        let pairs = network.encoder.iter().zip(network.encoder.iter().skip(1)).enumerate();
        network.unshuffles = moves_pixels(pairs.map(|(index, (level, next))| {
            let made = shapes.extent(&format!("encoder.down_blocks.{index}.{}.conv.weight", level.layers), 0);
            (made.map(|made| made.saturating_mul(4)), next.channels)
        }));
    }
    if halves.decoder {
        network.decoder = levels(shapes, "decoder.up_blocks").ok_or("decoder.up_blocks.1.1.conv1.weight")?;
        network.shuffles = moves_pixels(network.decoder.iter().enumerate().map(|(index, level)| {
            let made = shapes.extent(&format!("decoder.up_blocks.{index}.0.conv.weight"), 0);
            (made, level.channels.saturating_mul(4))
        }));
        network.take_published_functions();
    }
    let latents = vote(&[
        shapes.extent("encoder.conv_out.weight", 0),
        shapes.extent("encoder.conv_out.bias", 0),
        shapes.extent("decoder.conv_in.weight", 1),
    ]);
    let latents = latents.ok_or(if halves.decoder { "decoder.conv_in.weight" } else { "encoder.conv_out.weight" })?;
    Ok(AutoencoderConfig::new(Network::Dc(network).seen_in(halves), latents))
}

/// True if most filters have as many channels as they need to move pixels: pairs of both numbers.
fn moves_pixels(filters: impl Iterator<Item = (Option<u32>, u32)>) -> bool {
    let votes = filters.filter_map(|(found, wanted)| found.map(|found| u32::from(found == wanted)));
    most_common(votes) == Some(1)
}

/// Returns the levels of `list`, highest resolution first. The first may have no blocks, and then
/// no tensors.
fn levels(shapes: &Shapes<'_>, list: &str) -> Option<Vec<DcLevel>> {
    let numbers = shapes.numbers(list, &|_| true);
    let last = numbers.items().last().copied()?;
    let first = u32::from(!numbers.contains(&0));
    let mut levels: Vec<DcLevel> =
        (first..=last.min(LEVELS)).map(|index| level(shapes, &format!("{list}.{index}"))).collect::<Option<_>>()?;
    if first > 0 {
        levels.insert(0, DcLevel::EMPTY);
    }
    Some(levels)
}

/// Returns the level whose blocks are in `list`.
fn level(shapes: &Shapes<'_>, list: &str) -> Option<DcLevel> {
    let blocks = shapes.numbers(list, &|rest| !rest.starts_with("conv."));
    let layers = u32::try_from(blocks.items().len()).unwrap_or(u32::MAX);
    let prefix = format!("{list}.");
    // Filters and vectors whose first extent is the number of the level's channels.
    let shows = |name: &str| {
        let module =
            |part: &&str| name.ends_with(&format!(".{part}.weight")) || name.ends_with(&format!(".{part}.bias"));
        name.starts_with(&prefix)
            && ["conv1", "conv2", "norm", "attn.to_out", "attn.norm_out", "conv_point"].iter().any(module)
    };
    let scale = |scale: u32| {
        let ending = format!(".attn.to_qkv_multiscale.{scale}.proj_in.weight");
        shapes.most_common_extent(2, &|name| name.starts_with(&prefix) && name.ends_with(&ending))
    };
    let block = if shapes.any(&|name| name.starts_with(&prefix) && name.contains(".attn.")) {
        DcBlock::EfficientVit { qkv_multiscales: (0..LEVELS).map_while(scale).collect() }
    } else if shapes.any(&|name| name.starts_with(&prefix) && BATCH_NORM.iter().any(|end| name.ends_with(end))) {
        DcBlock::Res { act_fn: Activation::Silu, norm: DcNorm::Batch }
    } else {
        DcBlock::SILU
    };
    Some(DcLevel { channels: shapes.most_common_first_extent(&shows)?, layers, block })
}
