//! The networks there are, each with the numbers that make one of it. Field names are diffusers'.

use serde::Serialize;

/// A network, with all that its graph depends on beside the channels of image and latents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "network", rename_all = "snake_case")]
pub enum Network {
    /// `AutoencoderKL` and `AutoencoderKLFlux2`: SD, SDXL, SD3, FLUX, Z-Image, CogView4.
    Kl(Kl),
    /// `AutoencoderTiny`: TAESD and its kin.
    Tiny(Tiny),
    /// `AutoencoderKLWan` and `AutoencoderKLQwenImage`: images and video.
    Wan(Wan),
    /// `SeedVR`'s VAE: images and video.
    #[serde(rename = "seedvr")]
    SeedVr(SeedVr),
}

/// What distinguishes one `AutoencoderKL` from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kl {
    /// Channels of the encoder's levels, highest resolution first, and of the decoder's unless it
    /// has its own.
    pub block_out_channels: Vec<u32>,
    /// Channels of the decoder's levels, highest resolution first, where they are others.
    pub decoder_block_out_channels: Option<Vec<u32>>,
    /// Resnets in a level of the encoder; the decoder has one more.
    pub layers_per_block: u32,
    /// Groups of every `GroupNorm`.
    pub norm_num_groups: u32,
    /// Whether there is attention between the two resnets of the middle.
    pub mid_block_add_attention: bool,
    /// Whether a 1x1 convolution comes after the encoder.
    pub use_quant_conv: bool,
    /// Whether a 1x1 convolution comes before the decoder.
    pub use_post_quant_conv: bool,
}

impl Kl {
    /// Channels of the decoder's levels, highest resolution first.
    pub fn decoder_channels(&self) -> &[u32] {
        self.decoder_block_out_channels.as_ref().unwrap_or(&self.block_out_channels)
    }
}

/// What distinguishes one `AutoencoderTiny` from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tiny {
    /// Channels of the encoder's levels, highest resolution first: all the same, as diffusers wires
    /// them.
    pub encoder_block_out_channels: Vec<u32>,
    /// Channels of the decoder's levels, lowest resolution first: all the same.
    pub decoder_block_out_channels: Vec<u32>,
    /// Blocks in each level of the encoder, highest resolution first.
    pub num_encoder_blocks: Vec<u32>,
    /// Blocks in each level of the decoder, lowest resolution first.
    pub num_decoder_blocks: Vec<u32>,
    /// Whether the blocks of the lowest resolution begin with a branch that has a group norm, as
    /// TAEF2's do.
    pub use_midblock_gn: bool,
}

/// What distinguishes one `AutoencoderKLWan` from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wan {
    /// Channels that `dim_mult` counts in.
    pub base_dim: u32,
    /// Channels of the levels in multiples of `base_dim`, highest resolution first.
    pub dim_mult: Vec<u32>,
    /// Resnets in a level of the encoder; the decoder has one more.
    pub num_res_blocks: u32,
    /// Which of the encoder's changes of size change time, too, highest resolution first; the
    /// decoder's the other way round. Single images have no time.
    pub temperal_downsample: Vec<bool>,
}

impl Wan {
    /// Channels of the levels, highest resolution first.
    pub fn channels(&self) -> Vec<u32> {
        self.dim_mult.iter().map(|multiple| multiple.saturating_mul(self.base_dim)).collect()
    }

    /// Whether change of size `index` changes time, too, highest resolution first.
    pub(crate) fn changes_time(&self, index: usize) -> bool {
        self.temperal_downsample.get(index).copied().unwrap_or(false)
    }
}

/// What distinguishes one VAE like `SeedVR`'s from another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeedVr {
    /// Channels of the levels, highest resolution first.
    pub block_out_channels: Vec<u32>,
    /// Resnets in a level of the encoder; the decoder has one more.
    pub layers_per_block: u32,
    /// Groups of every `GroupNorm`.
    pub norm_num_groups: u32,
    /// How many of the changes of size change time, too: those of the lowest resolutions. Single
    /// images have none, but weights for it.
    pub temporal_scale_num: u32,
}

/// Which of a VAE's two halves there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Halves {
    pub(crate) encoder: bool,
    pub(crate) decoder: bool,
}

impl Network {
    /// What people call it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Kl(_) => "AutoencoderKL",
            Self::Tiny(_) => "AutoencoderTiny",
            Self::Wan(_) => "AutoencoderKLWan",
            Self::SeedVr(_) => "SeedVR",
        }
    }

    /// The numbers of an `AutoencoderKL`, if it is one.
    pub fn kl(&self) -> Option<&Kl> {
        match self {
            Self::Kl(kl) => Some(kl),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn kl_mut(&mut self) -> Option<&mut Kl> {
        match self {
            Self::Kl(kl) => Some(kl),
            _ => None,
        }
    }

    /// How many sizes its tensors have.
    pub(crate) fn levels(&self) -> usize {
        match self {
            Self::Kl(kl) => kl.block_out_channels.len(),
            Self::Tiny(tiny) => tiny.num_decoder_blocks.len(),
            Self::Wan(wan) => wan.dim_mult.len(),
            Self::SeedVr(seedvr) => seedvr.block_out_channels.len(),
        }
    }

    /// Whether an odd row or column counts as a whole one where the encoder halves the size,
    /// instead of being left out.
    pub(crate) fn rounds_up(&self) -> bool {
        matches!(self, Self::Tiny(_))
    }

    /// The network as far as files tell that have only `halves` of it: what they do not tell is as
    /// in the other half.
    pub(crate) fn seen_in(mut self, halves: Halves) -> Self {
        match &mut self {
            Self::Kl(kl) => {
                kl.use_quant_conv &= halves.encoder;
                kl.use_post_quant_conv &= halves.decoder;
                let decoder = kl.decoder_block_out_channels.take();
                match decoder.filter(|channels| halves.decoder && *channels != kl.block_out_channels) {
                    Some(channels) if halves.encoder => kl.decoder_block_out_channels = Some(channels),
                    Some(channels) => kl.block_out_channels = channels,
                    None => {}
                }
            }
            Self::Tiny(tiny) if !halves.encoder => {
                tiny.encoder_block_out_channels = reversed(&tiny.decoder_block_out_channels);
                tiny.num_encoder_blocks = reversed(&tiny.num_decoder_blocks);
            }
            Self::Tiny(tiny) if !halves.decoder => {
                tiny.decoder_block_out_channels = reversed(&tiny.encoder_block_out_channels);
                tiny.num_decoder_blocks = reversed(&tiny.num_encoder_blocks);
            }
            Self::Tiny(_) | Self::Wan(_) | Self::SeedVr(_) => {}
        }
        self
    }

    /// The first field in which two networks of one kind differ. Groups are none: weights do not
    /// tell them.
    pub(crate) fn difference(&self, other: &Self) -> Option<&'static str> {
        let same: &[_] = match (self, other) {
            (Self::Kl(left), Self::Kl(right)) => &[
                ("block_out_channels", left.block_out_channels == right.block_out_channels),
                ("decoder_block_out_channels", left.decoder_block_out_channels == right.decoder_block_out_channels),
                ("layers_per_block", left.layers_per_block == right.layers_per_block),
                ("mid_block_add_attention", left.mid_block_add_attention == right.mid_block_add_attention),
                ("use_quant_conv", left.use_quant_conv == right.use_quant_conv),
                ("use_post_quant_conv", left.use_post_quant_conv == right.use_post_quant_conv),
            ],
            (Self::Tiny(left), Self::Tiny(right)) => &[
                ("encoder_block_out_channels", left.encoder_block_out_channels == right.encoder_block_out_channels),
                ("decoder_block_out_channels", left.decoder_block_out_channels == right.decoder_block_out_channels),
                ("num_encoder_blocks", left.num_encoder_blocks == right.num_encoder_blocks),
                ("num_decoder_blocks", left.num_decoder_blocks == right.num_decoder_blocks),
                ("use_midblock_gn", left.use_midblock_gn == right.use_midblock_gn),
            ],
            (Self::Wan(left), Self::Wan(right)) => &[
                ("base_dim", left.base_dim == right.base_dim),
                ("dim_mult", left.dim_mult == right.dim_mult),
                ("num_res_blocks", left.num_res_blocks == right.num_res_blocks),
            ],
            (Self::SeedVr(left), Self::SeedVr(right)) => &[
                ("block_out_channels", left.block_out_channels == right.block_out_channels),
                ("layers_per_block", left.layers_per_block == right.layers_per_block),
                ("temporal_scale_num", left.temporal_scale_num == right.temporal_scale_num),
            ],
            _ => &[],
        };
        same.iter().find(|(_, same)| !same).map(|(field, _)| *field)
    }
}

fn reversed(values: &[u32]) -> Vec<u32> {
    values.iter().rev().copied().collect()
}
