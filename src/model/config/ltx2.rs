//! Parameters of LTX-2's network.

use serde::Serialize;

/// A change of size, of time, or of both: by half, or to twice as much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SizeChange {
    /// True if height and width change.
    pub space: bool,
    /// True if the number of frames changes.
    pub time: bool,
}

impl SizeChange {
    /// A change of height and width.
    pub(crate) const SPACE: Self = Self { space: true, time: false };
    /// A change of the number of frames.
    pub(crate) const TIME: Self = Self { space: false, time: true };
    /// A change of all three.
    pub(crate) const BOTH: Self = Self { space: true, time: true };

    /// Returns the number of frames on one side for a frame on the other.
    pub(crate) fn frames(self) -> u32 {
        if self.time { 2 } else { 1 }
    }

    /// Returns the number of pixels on one side for a pixel on the other, over all frames.
    pub(crate) fn places(self) -> u32 {
        if self.space { 4 * self.frames() } else { self.frames() }
    }
}

/// Parameters of an `AutoencoderKLLTX2Video`. Levels of the encoder are in its order, highest
/// resolution first, and levels of the decoder in its own, lowest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ltx2 {
    /// Channels after the size change of each level of the encoder.
    pub block_out_channels: Vec<u32>,
    /// Number of resnets in each level of the encoder, and in its middle block.
    pub layers_per_block: Vec<u32>,
    /// Size change of each level of the encoder.
    pub downsample: Vec<SizeChange>,
    /// Channels before the size change of each level of the decoder.
    pub decoder_block_out_channels: Vec<u32>,
    /// Number of resnets in the decoder's middle block, and in each of its levels.
    pub decoder_layers_per_block: Vec<u32>,
    /// Size change of each level of the decoder.
    pub upsample: Vec<SizeChange>,
    /// Factor by which the channels become fewer at each size change of the decoder.
    pub upsample_factor: Vec<u32>,
    /// True for each size change of the decoder with a shortcut around it.
    pub upsample_residual: Vec<bool>,
    /// Side of the squares of image pixels that one pixel of the highest level holds in its
    /// channels, or 1.
    pub patch_size: u32,
    /// True if the decoder mirrors its tensors at their borders, instead of adding zeros.
    pub decoder_reflects: bool,
}

/// A level of the decoder of an [`Ltx2`].
#[derive(Debug, Clone, Copy)]
pub struct Ltx2Level {
    /// Channels before its size change.
    pub(crate) channels: u32,
    /// Its size change.
    pub(crate) change: SizeChange,
    /// Factor by which the channels become fewer.
    pub(crate) factor: u32,
    /// True if a shortcut leads around the size change.
    pub(crate) residual: bool,
}

impl Ltx2 {
    /// Returns the network of LTX-2.
    pub(crate) fn published() -> Self {
        Self {
            block_out_channels: vec![256, 512, 1024, 2048],
            layers_per_block: vec![4, 6, 6, 2, 2],
            downsample: vec![SizeChange::SPACE, SizeChange::TIME, SizeChange::BOTH, SizeChange::BOTH],
            decoder_block_out_channels: vec![1024, 512, 256],
            decoder_layers_per_block: vec![5; 4],
            upsample: vec![SizeChange::BOTH; 3],
            upsample_factor: vec![2; 3],
            upsample_residual: vec![true; 3],
            patch_size: 4,
            decoder_reflects: true,
        }
    }

    /// Returns the levels of the decoder, lowest resolution first.
    pub(crate) fn decoder_levels(&self) -> Vec<Ltx2Level> {
        let level = |index: usize| Ltx2Level {
            channels: self.decoder_block_out_channels[index],
            change: self.upsample[index],
            factor: self.upsample_factor[index],
            residual: self.upsample_residual[index],
        };
        (0..self.upsample.len()).map(level).collect()
    }

    /// Takes over the encoder of `other`.
    pub(crate) fn take_encoder_of(&mut self, other: &Self) {
        self.block_out_channels.clone_from(&other.block_out_channels);
        self.layers_per_block.clone_from(&other.layers_per_block);
        self.downsample.clone_from(&other.downsample);
    }

    /// Takes over the decoder of `other`.
    pub(crate) fn take_decoder_of(&mut self, other: &Self) {
        let encoder = self.clone();
        self.clone_from(other);
        self.take_encoder_of(&encoder);
        self.patch_size = encoder.patch_size;
    }
}
