//! What distinguishes one `AutoencoderKL` from another: the fields of diffusers' config.json, from that file, from a
//! published family, or from the shapes of the weights. Never guesses a scale: shapes alone cannot tell SD from SDXL.

mod families;
mod json;
mod shapes;

pub use self::families::{FAMILIES, Family};
pub use self::shapes::Derived;

use std::ops::RangeInclusive;

use crate::error::{Error, Result};
use crate::tensor::Size;

/// Sizes beyond which a config is taken for corrupt. The largest published values are 4, 1024, 3 and 64.
const LEVELS: RangeInclusive<u32> = 1..=8;
const CHANNELS: RangeInclusive<u32> = 1..=16_384;
const LAYERS: RangeInclusive<u32> = 1..=16;
const LATENT_CHANNELS: RangeInclusive<u32> = 1..=1024;
// Red, green, blue: what a picture is made of.
const OUT_CHANNELS: RangeInclusive<u32> = 3..=3;

/// The shape of a decoder and what its latents mean. Field names are diffusers'.
#[derive(Debug, Clone, PartialEq)]
pub struct AutoencoderConfig {
    /// Channels of the image, 3 for RGB.
    pub out_channels: u32,
    /// Channels of the latents.
    pub latent_channels: u32,
    /// Channels of the decoder's levels, highest resolution first (diffusers' `decoder_block_out_channels` where
    /// given).
    pub block_out_channels: Vec<u32>,
    /// Resnets in a level of the encoder; the decoder has one more.
    pub layers_per_block: u32,
    /// Groups of every `GroupNorm`.
    pub norm_num_groups: u32,
    /// Whether there is attention between the two resnets of the middle.
    pub mid_block_add_attention: bool,
    /// Whether a 1x1 convolution comes before the decoder.
    pub use_post_quant_conv: bool,
    /// Diffusion models see `(latents - shift_factor) * scaling_factor`.
    pub scaling_factor: f32,
    /// See `scaling_factor`. Zero where config.json says null.
    pub shift_factor: f32,
    /// Mean of each latent channel, where diffusion models see `(latents - mean) / std * scaling_factor`.
    pub latents_mean: Option<Vec<f32>>,
    /// Standard deviation of each latent channel; there if and only if `latents_mean` is.
    pub latents_std: Option<Vec<f32>>,
    /// Whether diffusers runs the whole model in f32 where its pipeline runs in f16: a hint that activations may
    /// overflow f16. True unless config.json denies it.
    pub force_upcast: bool,
    /// Side in pixels of the images it was trained on, from which diffusers takes the size of its tiles; `None` where neither
    /// the files nor a family say.
    pub sample_size: Option<u32>,
}

impl AutoencoderConfig {
    /// Parses diffusers' config.json. Absent fields have the defaults of diffusers' class; what this crate cannot
    /// decode is an error.
    pub fn from_json(json: &str) -> Result<Self> {
        let config = json::parse(json)?;
        config.validate()?;
        Ok(config)
    }

    /// Image pixels along one side of a latent pixel: a level doubles the size, except the last.
    pub fn spatial_factor(&self) -> u32 {
        1 << self.block_out_channels.len().saturating_sub(1).min(31)
    }

    /// Size in pixels of the image that latents of this size decode to.
    pub fn image_size(&self, latents: Size) -> Size {
        let pixels = |extent: u32| extent.saturating_mul(self.spatial_factor());
        Size { width: pixels(latents.width), height: pixels(latents.height) }
    }

    /// Checks that the fields make sense together.
    pub fn validate(&self) -> Result<()> {
        let levels = u32::try_from(self.block_out_channels.len()).unwrap_or(u32::MAX);
        check_range("block_out_channels", "levels", levels, &LEVELS)?;
        check_range("out_channels", "channels", self.out_channels, &OUT_CHANNELS)?;
        check_range("latent_channels", "channels", self.latent_channels, &LATENT_CHANNELS)?;
        check_range("layers_per_block", "resnets", self.layers_per_block, &LAYERS)?;
        check_range("norm_num_groups", "groups", self.norm_num_groups, &CHANNELS)?;
        for &channels in &self.block_out_channels {
            check_range("block_out_channels", "channels", channels, &CHANNELS)?;
            if channels % self.norm_num_groups != 0 {
                let expected = format!("multiples of norm_num_groups ({})", self.norm_num_groups);
                return Err(invalid("block_out_channels", expected, channels.to_string()));
            }
        }
        if !(self.scaling_factor.is_finite() && self.scaling_factor > 0.0) {
            return Err(invalid("scaling_factor", "a positive number".to_owned(), self.scaling_factor.to_string()));
        }
        if !self.shift_factor.is_finite() {
            return Err(invalid("shift_factor", "a finite number".to_owned(), self.shift_factor.to_string()));
        }
        self.validate_latents()
    }

    fn validate_latents(&self) -> Result<()> {
        if self.latents_mean.is_some() != self.latents_std.is_some() {
            let found = if self.latents_mean.is_some() { "only latents_mean" } else { "only latents_std" };
            return Err(invalid(
                "latents_mean",
                "latents_mean and latents_std, or neither".to_owned(),
                found.to_owned(),
            ));
        }
        for (field, values) in [("latents_mean", &self.latents_mean), ("latents_std", &self.latents_std)] {
            let Some(values) = values else { continue };
            if values.len() != self.latent_channels as usize {
                let expected = format!("{} numbers, one for each latent channel", self.latent_channels);
                return Err(invalid(field, expected, values.len().to_string()));
            }
            if let Some(bad) =
                values.iter().find(|value| !value.is_finite() || (field == "latents_std" && **value <= 0.0))
            {
                let expected = if field == "latents_std" { "positive numbers" } else { "finite numbers" };
                return Err(invalid(field, expected.to_owned(), bad.to_string()));
            }
        }
        Ok(())
    }

    /// The first field in which the networks (not the scales) of `self` and `other` differ.
    pub(crate) fn network_difference(&self, other: &Self) -> Option<&'static str> {
        let same = [
            ("out_channels", self.out_channels == other.out_channels),
            ("latent_channels", self.latent_channels == other.latent_channels),
            ("block_out_channels", self.block_out_channels == other.block_out_channels),
            ("layers_per_block", self.layers_per_block == other.layers_per_block),
            ("mid_block_add_attention", self.mid_block_add_attention == other.mid_block_add_attention),
            ("use_post_quant_conv", self.use_post_quant_conv == other.use_post_quant_conv),
        ];
        same.into_iter().find(|(_, same)| !same).map(|(field, _)| field)
    }
}

fn check_range(field: &str, what: &str, value: u32, range: &RangeInclusive<u32>) -> Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(invalid(field, format!("{} to {} {what}", range.start(), range.end()), value.to_string()))
}

fn invalid(field: &str, expected: String, found: String) -> Error {
    Error::Config { field: field.to_owned(), expected, found }
}
