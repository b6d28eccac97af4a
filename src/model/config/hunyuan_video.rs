//! Parameters of HunyuanVideo 1.5's network.

use serde::Serialize;

/// Parameters of an `AutoencoderKLHunyuanVideo15`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HunyuanVideo {
    /// Channels of the levels, highest resolution first. The size changes between all levels.
    pub block_out_channels: Vec<u32>,
    /// Number of resnets in a level of the encoder. The decoder has one more.
    pub layers_per_block: u32,
    /// Number of size changes that also change time, counted from the lowest resolution.
    pub time_changes: u32,
}

impl HunyuanVideo {
    /// True if the size change after level `level` also changes time, counted from the highest
    /// resolution.
    pub(crate) fn changes_time(&self, level: usize) -> bool {
        level + 1 + self.time_changes as usize >= self.block_out_channels.len()
    }
}
