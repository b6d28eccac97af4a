//! Supported networks, each with its parameters. Field names are those of diffusers.

use serde::Serialize;

use super::dc::Dc;
use super::hunyuan_video::HunyuanVideo;
use super::ltx2::Ltx2;
use super::padding::PaddingMode;

use crate::model::graph::{Regroup, Resize};

/// A network, with everything that its graph depends on except the channels of image and latents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "network", rename_all = "snake_case")]
pub enum Network {
    /// `AutoencoderKL` and `AutoencoderKLFlux2`: SD, SDXL, SD3, FLUX, Z-Image, CogView4. Also
    /// `AutoencoderKLHunyuanImage`.
    Kl(Kl),
    /// `AutoencoderTiny`: TAESD and its relatives, also for video.
    Tiny(Tiny),
    /// `AutoencoderKLWan` and `AutoencoderKLQwenImage`: images and video, of Wan 2.2, too. Also
    /// `AutoencoderKLQwenImage21`: images.
    Wan(Wan),
    /// `SeedVR`'s VAE: images and video.
    #[serde(rename = "seedvr")]
    SeedVr(SeedVr),
    /// `AutoencoderKLLTX2Video`: images and video of LTX-2, 2.3 and 2.5.
    Ltx2(Ltx2),
    /// `AutoencoderKLHunyuanVideo15`: images and video of HunyuanVideo 1.5.
    HunyuanVideo(HunyuanVideo),
    /// `AutoencoderDC`: images of Sana.
    Dc(Dc),
}

/// Parameters of an `AutoencoderKL` or `AutoencoderKLHunyuanImage`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kl {
    /// Channels of the encoder's levels, highest resolution first. Also of the decoder's levels,
    /// unless it has its own.
    pub block_out_channels: Vec<u32>,
    /// Channels of the decoder's levels, highest resolution first, if they differ from the
    /// encoder's.
    pub decoder_block_out_channels: Option<Vec<u32>>,
    /// Number of resnets in a level of the encoder. The decoder has one more, unless it has its own
    /// number.
    pub layers_per_block: u32,
    /// Number of resnets in a level of the decoder without the last one, if it differs from the
    /// encoder's.
    pub decoder_layers_per_block: Option<u32>,
    /// Number of groups of every `GroupNorm`.
    pub norm_num_groups: u32,
    /// True if there is attention between the two resnets of the middle block.
    pub mid_block_add_attention: bool,
    /// True if a 1x1 convolution follows the encoder.
    pub use_quant_conv: bool,
    /// True if a 1x1 convolution precedes the decoder.
    pub use_post_quant_conv: bool,
    /// True if a shortcut without weights leads around each size change, and around the layers next
    /// to the latents, as in HunyuanImage 2.1. Sizes then change by moving pixels into channels.
    pub has_shortcuts: bool,
    /// Pixels that 3x3 convolutions see beyond the borders of their input.
    pub padding_mode: PaddingMode,
}

impl Kl {
    fn class(&self) -> &'static str {
        if self.has_shortcuts { "AutoencoderKLHunyuanImage" } else { "AutoencoderKL" }
    }

    /// Returns the channels of the decoder's levels, highest resolution first.
    pub fn decoder_channels(&self) -> &[u32] {
        self.decoder_block_out_channels.as_ref().unwrap_or(&self.block_out_channels)
    }

    /// Returns the number of resnets in a level of the decoder.
    pub fn decoder_resnets(&self) -> u32 {
        self.decoder_layers_per_block.unwrap_or(self.layers_per_block) + 1
    }
}

/// Parameters of an `AutoencoderTiny`, or of a relative without a class in diffusers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tiny {
    /// Channels of the encoder's levels, highest resolution first. The first is 0 if the first
    /// convolution halves the size, as in TAESANA.
    pub encoder_block_out_channels: Vec<u32>,
    /// Channels of the decoder's levels, lowest resolution first.
    pub decoder_block_out_channels: Vec<u32>,
    /// Number of blocks in each level of the encoder, highest resolution first.
    pub num_encoder_blocks: Vec<u32>,
    /// Number of blocks in each level of the decoder, lowest resolution first.
    pub num_decoder_blocks: Vec<u32>,
    /// True if the blocks of the lowest resolution begin with a branch that has a group norm, as in
    /// TAEF2.
    pub use_midblock_gn: bool,
    /// Side of the squares of image pixels that one pixel of the highest level holds in its
    /// channels, or 1. In `taeqi2_1` it is 2.
    pub patch_size: u32,
    /// True for each size change that also changes time, highest resolution first. Empty if the
    /// blocks remember no frames. TAEHV's blocks do.
    pub temporal_downsample: Vec<bool>,
    /// Number of frames that the weights of each size change of the decoder can make of a frame,
    /// lowest resolution first. If they are more than needed, the last ones are used.
    pub grow_frames: Vec<u32>,
    /// The latents of a clip that stand for one frame each.
    pub starts: Starts,
}

/// The starts of a clip: latents that stand for one frame each. A decode drops all their frames but
/// the last. Every other latent stands for as many frames as the network makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Starts {
    /// The first latent.
    First,
    /// The first latent of a clip with an odd number of latents, as in `CogVideoX`. A clip with an
    /// even number has no start.
    FirstIfOdd,
    /// Every fifth latent, from the first on, as in `MiniMax-H3`.
    EveryFifth,
}

impl Starts {
    /// The number of latents from one of [`Self::EveryFifth`] to the next.
    pub(crate) const CHUNK: u64 = 5;

    /// True if latent `index` of a clip of `count` latents is a start.
    pub(crate) fn contain(self, index: u64, count: u64) -> bool {
        match self {
            Self::First => index == 0,
            Self::FirstIfOdd => index == 0 && count % 2 == 1,
            Self::EveryFifth => index.is_multiple_of(Self::CHUNK),
        }
    }
}

impl Tiny {
    /// True if the blocks remember the frame before.
    pub fn is_video(&self) -> bool {
        !self.temporal_downsample.is_empty()
    }

    /// Returns the number of frames before size change `change` of the encoder, highest resolution
    /// first, for each frame after it.
    pub(crate) fn times(&self, change: usize) -> u32 {
        if self.temporal_downsample.get(change).copied().unwrap_or(false) { 2 } else { 1 }
    }

    /// Returns the number of frames of one latent.
    pub(crate) fn frames(&self) -> u32 {
        (0..self.temporal_downsample.len()).map(|change| self.times(change)).product()
    }

    /// Returns the number of size changes that also change time, for a video network.
    fn time_changes(&self) -> Option<usize> {
        let changes = self.temporal_downsample.iter().filter(|changes| **changes).count();
        self.is_video().then_some(changes)
    }

    /// True if the convolution to `level` of the encoder belongs to TAESANA's first layers: those
    /// before any block have a bias and a `ReLU`.
    pub(crate) fn is_in_stem(&self, level: usize) -> bool {
        self.encoder_block_out_channels[0] == 0 && self.num_encoder_blocks[..level].iter().all(|count| *count == 0)
    }

    /// True if the encoder's first convolution ends with a `ReLU`, as in all but the first of these
    /// networks.
    pub(crate) fn begins_with_relu(&self) -> bool {
        self.patch_size > 1 || self.is_video()
    }
}

/// Parameters of an `AutoencoderKLWan` or `AutoencoderKLQwenImage21`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wan {
    /// Number of channels that `dim_mult` multiplies in the encoder.
    pub base_dim: u32,
    /// Number of channels that `dim_mult` multiplies in the decoder. It differs from `base_dim`
    /// only if `is_residual`.
    pub decoder_base_dim: u32,
    /// Multiples that give the channels of the levels, highest resolution first.
    pub dim_mult: Vec<u32>,
    /// Number of resnets in a level of the encoder. The decoder has one more.
    pub num_res_blocks: u32,
    /// True for each size change of the encoder that also changes time, highest resolution first.
    /// The decoder uses the reverse order. Single images have no time.
    pub temperal_downsample: Vec<bool>,
    /// True if a shortcut without weights leads around each level, as in Qwen-Image 2.1 and Wan
    /// 2.2.
    pub is_residual: bool,
    /// True if the filters reach over three frames. In Qwen-Image 2.1 and Qwen2D-VAE, which are for
    /// images, they have no taps in time.
    pub is_video: bool,
    /// Side of the squares of image pixels that one pixel of the highest level holds in its
    /// channels, or 1. In Wan 2.2 it is 2.
    pub patch_size: u32,
    /// Side of the squares of pixels that the decoder makes of one pixel, or 1. In
    /// Wan2.1-VAE-upscale2x it is 2: a decode is twice as wide and high as an image that encodes to
    /// the same latents.
    pub upscale: u32,
}

impl Wan {
    /// Returns the channels of the encoder's levels, highest resolution first.
    pub fn channels(&self) -> Vec<u32> {
        self.dim_mult.iter().map(|multiple| multiple.saturating_mul(self.base_dim)).collect()
    }

    /// Returns the channels of the decoder's levels, highest resolution first.
    pub fn decoder_channels(&self) -> Vec<u32> {
        self.dim_mult.iter().map(|multiple| multiple.saturating_mul(self.decoder_base_dim)).collect()
    }

    /// Returns the shortcut around the encoder's level `level`, highest resolution first, in an
    /// image.
    pub(crate) fn down_shortcut(&self, level: usize) -> Regroup {
        let resize = if level + 1 < self.dim_mult.len() { Resize::Halve } else { Resize::Keep };
        self.shortcut(resize, level)
    }

    /// Returns the shortcut around the decoder's level that ends with size change `index`, counted
    /// from the highest resolution, in an image.
    pub(crate) fn up_shortcut(&self, index: usize) -> Regroup {
        self.shortcut(Resize::Double, index)
    }

    fn shortcut(&self, resize: Resize, index: usize) -> Regroup {
        let frames = self.frames_of(index);
        Regroup { resize, frames, missing: frames - 1, ..Regroup::COPY }
    }

    /// Returns the number of frames on one side of size change `index` for a frame on the other.
    fn frames_of(&self, index: usize) -> u32 {
        if self.changes_time(index) { 2 } else { 1 }
    }

    /// True if size change `index` also changes time, counted from the highest resolution.
    pub(crate) fn changes_time(&self, index: usize) -> bool {
        self.temperal_downsample.get(index).copied().unwrap_or(false)
    }
}

/// Parameters of a VAE like `SeedVR`'s.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeedVr {
    /// Channels of the levels, highest resolution first.
    pub block_out_channels: Vec<u32>,
    /// Number of resnets in a level of the encoder. The decoder has one more.
    pub layers_per_block: u32,
    /// Number of groups of every `GroupNorm`.
    pub norm_num_groups: u32,
    /// Number of size changes that also change time, counted from the lowest resolution. Single
    /// images have no time, but the weights for it exist.
    pub temporal_scale_num: u32,
}

/// The halves of a VAE that its files contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Halves {
    pub(crate) encoder: bool,
    pub(crate) decoder: bool,
}

/// Facts about a network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NetworkFacts {
    /// Name for people.
    pub(crate) name: &'static str,
    /// Number of resolutions of its tensors.
    pub(crate) levels: usize,
    /// True if the encoder keeps an odd last row or column when it halves the size, instead of
    /// dropping it.
    pub(crate) rounds_up: bool,
    /// True if the encoder's output has twice the channels of the latents: mean, then log variance.
    pub(crate) has_moments: bool,
    /// True if a decode ends with a clamp to -1..1, as in diffusers' Wan and Qwen-Image, and TAEHV.
    pub(crate) clamps: bool,
    /// Number of size changes that also change time. `None` for a network without time.
    pub(crate) time_changes: Option<usize>,
    /// True if the first latent of an encode stands for as many frames as any other. The last frame
    /// is repeated until the last latent has as many.
    pub(crate) fills_parts: bool,
    /// The latents of a clip that stand for one frame each.
    pub(crate) starts: Starts,
    /// True if attention sees all earlier frames of a clip, so that keys and values of each are
    /// kept.
    pub(crate) keeps_all: bool,
    /// Fewest latents along each side that the decoder takes: 2 if it mirrors its borders.
    pub(crate) least_latents: u32,
    /// Fewest latents along each side that the encoder can make.
    pub(crate) least_encoded: u32,
    /// True if the encoder takes only images that whole latents cover. diffusers' `AutoencoderDC`
    /// packs squares of pixels at each level, and fails where a row is left.
    pub(crate) whole_latents: bool,
    /// Side of the squares of image pixels that the network holds in channels. The encoder drops
    /// rows and columns that do not fill a square.
    pub(crate) image_patch: u32,
    /// Factor between the sides of a decode and of an image that encodes to the same latents.
    pub(crate) upscale: u32,
    /// Number of overlaps of diffusers' tiles that make a tile.
    pub(crate) overlaps: u32,
}

impl NetworkFacts {
    /// Returns the facts about a network for images that has moments and no peculiarity.
    fn of_image(name: &'static str, levels: usize) -> Self {
        Self {
            name,
            levels,
            rounds_up: false,
            has_moments: true,
            clamps: false,
            time_changes: None,
            fills_parts: false,
            starts: Starts::First,
            keeps_all: false,
            least_latents: 1,
            least_encoded: 1,
            whole_latents: false,
            image_patch: 1,
            upscale: 1,
            overlaps: 4,
        }
    }
}

impl Network {
    /// Returns the facts about this network that need no graph.
    pub(crate) fn facts(&self) -> NetworkFacts {
        let image = NetworkFacts::of_image;
        match self {
            Self::Kl(kl) => NetworkFacts {
                least_latents: kl.padding_mode.least(),
                least_encoded: kl.padding_mode.least(),
                ..image(kl.class(), kl.block_out_channels.len())
            },
            Self::Tiny(tiny) => NetworkFacts {
                rounds_up: true,
                has_moments: false,
                clamps: tiny.is_video(),
                time_changes: tiny.time_changes(),
                fills_parts: tiny.is_video() && tiny.starts != Starts::EveryFifth,
                starts: tiny.starts,
                image_patch: tiny.patch_size,
                ..image(
                    if tiny.is_video() { "TAEHV" } else { "AutoencoderTiny" },
                    tiny.num_decoder_blocks.len() + patch_levels(tiny.patch_size),
                )
            },
            Self::Wan(wan) => NetworkFacts {
                clamps: true,
                time_changes: wan
                    .is_video
                    .then(|| (1..wan.dim_mult.len()).filter(|level| wan.changes_time(level - 1)).count()),
                image_patch: wan.patch_size,
                upscale: wan.upscale,
                ..image(
                    if wan.is_video || !wan.is_residual { "AutoencoderKLWan" } else { "AutoencoderKLQwenImage21" },
                    wan.dim_mult.len() + patch_levels(wan.patch_size),
                )
            },
            Self::Ltx2(ltx2) => NetworkFacts {
                overlaps: 8,
                time_changes: Some(ltx2.upsample.iter().filter(|change| change.time).count()),
                least_latents: if ltx2.decoder_reflects { 2 } else { 1 },
                image_patch: ltx2.patch_size,
                ..image(
                    "AutoencoderKLLTX2Video",
                    1 + ltx2.upsample.iter().filter(|change| change.space).count() + patch_levels(ltx2.patch_size),
                )
            },
            Self::HunyuanVideo(hunyuan) => NetworkFacts {
                time_changes: Some(hunyuan.time_changes as usize),
                keeps_all: true,
                ..image("AutoencoderKLHunyuanVideo15", hunyuan.block_out_channels.len())
            },
            Self::Dc(dc) => NetworkFacts {
                has_moments: false,
                whole_latents: true,
                overlaps: 8,
                ..image("AutoencoderDC", dc.decoder.len())
            },
            Self::SeedVr(seedvr) => NetworkFacts {
                time_changes: Some(seedvr.temporal_scale_num as usize),
                ..image("SeedVR", seedvr.block_out_channels.len())
            },
        }
    }

    /// Returns the name for people.
    pub fn name(&self) -> &'static str {
        self.facts().name
    }

    /// Returns the parameters of an `AutoencoderKL`, if it is one.
    pub fn kl(&self) -> Option<&Kl> {
        match self {
            Self::Kl(kl) => Some(kl),
            _ => None,
        }
    }

    /// Returns the parameters of an `AutoencoderKL` for changes, if it is one.
    pub fn kl_mut(&mut self) -> Option<&mut Kl> {
        match self {
            Self::Kl(kl) => Some(kl),
            _ => None,
        }
    }

    /// Returns the network that files with only `halves` of it can show. The missing half is
    /// assumed to mirror the other, or in LTX-2 to be the published one.
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
                let layers = kl.decoder_layers_per_block.take();
                match layers.filter(|layers| halves.decoder && *layers != kl.layers_per_block) {
                    Some(layers) if halves.encoder => kl.decoder_layers_per_block = Some(layers),
                    Some(layers) => kl.layers_per_block = layers,
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
                tiny.grow_frames = (0..tiny.temporal_downsample.len()).rev().map(|change| tiny.times(change)).collect();
            }
            Self::Wan(wan) if !halves.encoder => wan.base_dim = wan.decoder_base_dim,
            Self::Wan(wan) if !halves.decoder => (wan.decoder_base_dim, wan.upscale) = (wan.base_dim, 1),
            Self::Ltx2(network) => {
                let known = Ltx2::published();
                if !halves.encoder {
                    network.take_encoder_of(&known);
                }
                if !halves.decoder {
                    network.take_decoder_of(&known);
                }
            }
            Self::Dc(network) if !halves.encoder => network.mirror_decoder(),
            Self::Dc(network) if !halves.decoder => network.mirror_encoder(),
            Self::Tiny(_) | Self::Wan(_) | Self::SeedVr(_) | Self::HunyuanVideo(_) | Self::Dc(_) => {}
        }
        self
    }
}

/// Returns the number of levels that patches of this side stand for.
fn patch_levels(side: u32) -> usize {
    side.checked_ilog2().unwrap_or(0) as usize
}

fn reversed(values: &[u32]) -> Vec<u32> {
    values.iter().rev().copied().collect()
}
