//! Parameters of DC-AE's network.

use serde::Serialize;

use crate::model::graph::Activation;

/// The kind of the blocks of a level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DcBlock {
    /// `ResBlock`: two 3x3 convolutions and a norm.
    Res {
        /// Function between the two convolutions.
        act_fn: Activation,
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
                0..3 => DcBlock::Res { act_fn: Activation::Silu },
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

    /// Takes over the encoder of `other`.
    pub(crate) fn take_encoder_of(&mut self, other: &Self) {
        self.encoder.clone_from(&other.encoder);
        (self.unshuffles, self.encoder_out_shortcut) = (other.unshuffles, other.encoder_out_shortcut);
    }

    /// Takes over the decoder of `other`.
    pub(crate) fn take_decoder_of(&mut self, other: &Self) {
        self.decoder.clone_from(&other.decoder);
        (self.shuffles, self.decoder_in_shortcut) = (other.shuffles, other.decoder_in_shortcut);
        self.decoder_conv_act_fn = other.decoder_conv_act_fn;
    }

    /// Compares with `other` what weights show, by field: neither functions nor the shortcuts next
    /// to the latents.
    pub(super) fn compared(&self, other: &Self) -> [(&'static str, bool); 7] {
        [
            ("encoder_block_out_channels", self.encoder.len() == other.encoder.len()),
            ("encoder_layers_per_block", same_levels(&self.encoder, &other.encoder)),
            ("downsample_block_type", self.unshuffles == other.unshuffles),
            ("decoder_block_out_channels", self.decoder.len() == other.decoder.len()),
            ("decoder_layers_per_block", same_levels(&self.decoder, &other.decoder)),
            ("upsample_block_type", self.shuffles == other.shuffles),
            ("attention_head_dim", self.attention_head_dim == other.attention_head_dim),
        ]
    }

    /// Returns the network of DC-AE-Lite: a decoder without attention for Sana's latents.
    pub(crate) fn lite() -> Self {
        let known = Self::published();
        let layers = [0, 3, 5, 4, 4, 4];
        let level = |(level, layers): (&DcLevel, u32)| DcLevel {
            channels: if layers == 0 { 0 } else { level.channels },
            layers,
            block: DcBlock::Res { act_fn: Activation::Silu },
        };
        Self {
            decoder: known.decoder.iter().zip(layers).map(level).collect(),
            shuffles: true,
            decoder_conv_act_fn: Activation::Silu,
            ..known
        }
    }
}

/// True if the weights of two lists of levels have the same names and shapes.
fn same_levels(left: &[DcLevel], right: &[DcLevel]) -> bool {
    let without_function = |level: &DcLevel| match level.block {
        DcBlock::Res { .. } => DcLevel { block: DcBlock::Res { act_fn: Activation::Silu }, ..level.clone() },
        DcBlock::EfficientVit { .. } => level.clone(),
    };
    left.iter().map(without_function).eq(right.iter().map(without_function))
}
