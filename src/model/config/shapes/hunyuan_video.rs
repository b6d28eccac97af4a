//! Derivation of networks like `AutoencoderKLHunyuanVideo15`.

use super::votes::{Needed, Shapes, vote};
use crate::model::config::{AutoencoderConfig, Halves, HunyuanVideo, Network};

/// Derives the config of the network that `shapes` show.
pub(super) fn derive(shapes: &Shapes<'_>, halves: Halves) -> Result<AutoencoderConfig, Needed> {
    let (blocks, needed) = if halves.decoder {
        ("decoder.up_blocks", "decoder.up_blocks.0.resnets.0.conv1.weight")
    } else {
        ("encoder.down_blocks", "encoder.down_blocks.0.resnets.0.conv1.weight")
    };
    let mut channels = shapes.levels(blocks).ok_or(needed)?;
    let resnets = shapes.count(&format!("{blocks}.0.resnets"));
    if halves.decoder {
        channels.reverse();
    }
    let network = HunyuanVideo {
        time_changes: time_changes(shapes, &channels),
        block_out_channels: channels,
        layers_per_block: if halves.decoder { resnets.saturating_sub(1) } else { resnets },
    };
    Ok(AutoencoderConfig::new(Network::HunyuanVideo(network), shapes.latent_channels()?))
}

/// Counts the size changes that also change time. The convolution of such a change has the channels
/// of eight pixels instead of four. `channels` are those of the levels, highest resolution first.
fn time_changes(shapes: &Shapes<'_>, channels: &[u32]) -> u32 {
    let rows = |conv: String| ["weight", "bias"].map(|part| shapes.extent(&format!("{conv}.{part}"), 0));
    let changes_time = |(level, pair): (usize, &[u32])| {
        let up = rows(format!("decoder.up_blocks.{}.upsamplers.0.conv", channels.len() - 2 - level));
        let down = rows(format!("encoder.down_blocks.{level}.downsamplers.0.conv"));
        let up = up.map(|rows| rows?.checked_div(pair[0]));
        let down = down.map(|rows| pair[1].checked_div(rows?));
        vote(&[up, down].concat()) == Some(8)
    };
    channels.windows(2).enumerate().filter(|pair| changes_time(*pair)).count().try_into().unwrap_or(u32::MAX)
}
