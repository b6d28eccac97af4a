//! Parameters of DC-AE's network.

use serde::Serialize;

use crate::model::graph::Activation;

/// The norm at the end of a `ResBlock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum DcNorm {
    /// RMS norm over the channels of each pixel.
    #[serde(rename = "rms_norm")]
    Rms,
    /// Batch norm. Its statistics do not depend on the picture, so it is a factor and a summand
    /// for each channel.
    #[serde(rename = "batch_norm")]
    Batch,
}

/// The kind of the blocks of a level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DcBlock {
    /// `ResBlock`: two 3x3 convolutions and a norm.
    Res {
        /// Function between the two convolutions.
        act_fn: Activation,
        /// Norm after them.
        norm: DcNorm,
    },
    /// `EfficientViTBlock`: linear attention, then a gated convolution.
    EfficientVit {
        /// Sides of the filters that make queries, keys and values of other scales.
        qkv_multiscales: Vec<u32>,
    },
}

/// A level of one resolution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DcLevel {
    /// Channels; 0 for a level without blocks.
    pub channels: u32,
    /// Number of blocks. The level of the highest resolution may have none: then the first
    /// convolution of an encoder, or the last of a decoder, also changes the size.
    pub layers: u32,
    /// Kind of the blocks.
    pub block: DcBlock,
}

impl DcLevel {
    /// A level without blocks.
    pub(crate) const EMPTY: Self = Self { channels: 0, layers: 0, block: DcBlock::SILU };
}

impl DcBlock {
    /// The usual `ResBlock`.
    pub(crate) const SILU: Self = Self::Res { act_fn: Activation::Silu, norm: DcNorm::Rms };
}

/// Parameters of an `AutoencoderDC`. Levels come with the highest resolution first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dc {
    /// Channels of a head of attention.
    pub attention_head_dim: u32,
    /// Levels of the encoder.
    pub encoder: Vec<DcLevel>,
    /// Levels of the decoder.
    pub decoder: Vec<DcLevel>,
    /// True if the encoder halves the size by moving pixels into channels, after a convolution.
    /// Otherwise by a convolution with stride 2.
    pub unshuffles: bool,
    /// True if the decoder doubles the size by moving channels to pixels, after a convolution.
    /// Otherwise by copies of pixels, before it.
    pub shuffles: bool,
    /// True if means of channels are added to the encoder's result.
    pub encoder_out_shortcut: bool,
    /// True if copies of the latents are added to the result of the decoder's first convolution.
    pub decoder_in_shortcut: bool,
    /// Function before the decoder's last convolution.
    pub decoder_conv_act_fn: Activation,
}

impl Dc {
    /// Returns the network for Sana.
    pub(crate) fn published() -> Self {
        let levels = |layers: [u32; 6]| {
            let kind = |index: usize| match index {
                0..3 => DcBlock::SILU,
                _ => DcBlock::EfficientVit { qkv_multiscales: vec![5] },
            };
            let level = |(index, channels)| DcLevel { channels, layers: layers[index], block: kind(index) };
            [128, 256, 512, 512, 1024, 1024].into_iter().enumerate().map(level).collect()
        };
        Self {
            attention_head_dim: 32,
            encoder: levels([2, 2, 2, 3, 3, 3]),
            decoder: levels([3; 6]),
            unshuffles: false,
            shuffles: false,
            encoder_out_shortcut: true,
            decoder_in_shortcut: true,
            decoder_conv_act_fn: Activation::Relu,
        }
    }

    /// Makes the encoder, which files lack, the mirror of the decoder.
    pub(in crate::model::config) fn mirror_decoder(&mut self) {
        self.encoder.clone_from(&self.decoder);
        (self.unshuffles, self.encoder_out_shortcut) = (self.shuffles, self.decoder_in_shortcut);
    }

    /// Makes the decoder, which files lack, the mirror of the encoder.
    pub(in crate::model::config) fn mirror_encoder(&mut self) {
        self.decoder.clone_from(&self.encoder);
        (self.shuffles, self.decoder_in_shortcut) = (self.unshuffles, self.encoder_out_shortcut);
    }

    /// Compares with `other` what weights show, by field: neither functions nor the shortcuts next
    /// to the latents.
    pub(super) fn compared(&self, other: &Self) -> [(&'static str, bool); 8] {
        [
            ("encoder_block_out_channels", self.encoder.len() == other.encoder.len()),
            ("encoder_layers_per_block", same_levels(&self.encoder, &other.encoder)),
            ("downsample_block_type", self.unshuffles == other.unshuffles),
            ("decoder_block_out_channels", self.decoder.len() == other.decoder.len()),
            ("decoder_norm_types", self.norms().eq(other.norms())),
            ("decoder_layers_per_block", same_levels(&self.decoder, &other.decoder)),
            ("upsample_block_type", self.shuffles == other.shuffles),
            // Only filters of other scales show it.
            ("attention_head_dim", !self.has_scales() || self.attention_head_dim == other.attention_head_dim),
        ]
    }

    /// Returns the norm of each of the decoder's levels of resnets.
    fn norms(&self) -> impl Iterator<Item = Option<DcNorm>> {
        self.decoder.iter().filter(|level| level.layers > 0).map(|level| match level.block {
            DcBlock::Res { norm, .. } => Some(norm),
            DcBlock::EfficientVit { .. } => None,
        })
    }

    /// True if attention has filters of other scales.
    fn has_scales(&self) -> bool {
        let scales = |level: &DcLevel| matches!(&level.block, DcBlock::EfficientVit { qkv_multiscales } if !qkv_multiscales.is_empty());
        self.encoder.iter().chain(&self.decoder).any(scales)
    }

    /// Returns the network of DC-AE-Lite: a decoder without attention for Sana's latents.
    pub(crate) fn lite() -> Self {
        let known = Self::published();
        let layers = [0, 3, 5, 4, 4, 4];
        let level = |(level, layers): (&DcLevel, u32)| match layers {
            0 => DcLevel::EMPTY,
            _ => DcLevel { layers, block: DcBlock::SILU, ..level.clone() },
        };
        Self {
            decoder: known.decoder.iter().zip(layers).map(level).collect(),
            shuffles: true,
            decoder_conv_act_fn: Activation::Silu,
            ..known
        }
    }

    /// Returns the network of `-in-1.0` and `-mix-1.0` with this number of levels, at most 8.
    ///
    /// Source: `get_ae_config` in diffusers' `scripts/convert_dcae_to_diffusers.py`.
    pub(crate) fn of_levels(count: usize) -> Self {
        let levels = |layers: [u32; 3], act_fn: Activation, norm: DcNorm| {
            let level = |(index, channels)| match (index, layers.get(index)) {
                (0, _) => DcLevel::EMPTY,
                (_, Some(&layers)) => DcLevel { channels, layers, block: DcBlock::Res { act_fn, norm } },
                _ => DcLevel { channels, layers: 2, block: DcBlock::EfficientVit { qkv_multiscales: Vec::new() } },
            };
            [128, 256, 512, 512, 1024, 1024, 2048, 2048].into_iter().take(count).enumerate().map(level).collect()
        };
        Self {
            encoder: levels([0, 4, 8], Activation::Silu, DcNorm::Rms),
            decoder: levels([0, 5, 10], Activation::Relu, DcNorm::Batch),
            unshuffles: true,
            shuffles: true,
            ..Self::published()
        }
    }

    /// Takes over the functions of a published decoder that has the same weights.
    pub(super) fn take_published_functions(&mut self) {
        let published = std::iter::once(Self::lite()).chain((6..=8).map(Self::of_levels));
        if let Some(known) = { published }.find(|known| same_levels(&known.decoder, &self.decoder)) {
            self.decoder = known.decoder;
            self.decoder_conv_act_fn = known.decoder_conv_act_fn;
        }
    }
}

/// True if two lists of levels differ at most in functions, which weights do not show.
fn same_levels(left: &[DcLevel], right: &[DcLevel]) -> bool {
    let without_function = |level: &DcLevel| match level.block {
        DcBlock::Res { norm, .. } => {
            DcLevel { block: DcBlock::Res { act_fn: Activation::Silu, norm }, ..level.clone() }
        }
        DcBlock::EfficientVit { .. } => level.clone(),
    };
    left.iter().map(without_function).eq(right.iter().map(without_function))
}
