//! Published models as rows of a table. Numbers are from each repository's vae/config.json.

use super::AutoencoderConfig;
use crate::error::{Error, Result};

/// One published model: its network and the scale of its latents. Fields are those of [`AutoencoderConfig`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Family {
    /// Name to ask for it by.
    pub name: &'static str,
    /// Channels of the latents.
    pub latent_channels: u32,
    /// Channels of the decoder's levels, highest resolution first.
    pub block_out_channels: &'static [u32],
    /// Resnets in a level of the encoder; the decoder has one more.
    pub layers_per_block: u32,
    /// Whether there is attention in the middle.
    pub mid_block_add_attention: bool,
    /// Whether a 1x1 convolution comes before the decoder.
    pub use_post_quant_conv: bool,
    /// Factor of the latents.
    pub scaling_factor: f32,
    /// Offset of the latents.
    pub shift_factor: f32,
    /// Mean and standard deviation of each latent channel.
    pub latents_mean_std: Option<(&'static [f32], &'static [f32])>,
    /// Side in pixels of the images it was trained on, which decides the tiles of diffusers; `None` where it is not known.
    pub sample_size: Option<u32>,
}

/// Stable Diffusion 1.x, which most others vary.
const SD15: Family = Family {
    name: "sd15",
    latent_channels: 4,
    block_out_channels: &[128, 256, 512, 512],
    layers_per_block: 2,
    mid_block_add_attention: true,
    use_post_quant_conv: true,
    scaling_factor: 0.18215,
    shift_factor: 0.0,
    latents_mean_std: None,
    sample_size: Some(512),
};

/// SDXL: the network of SD 1.x with other weights.
const SDXL: Family = Family { name: "sdxl", scaling_factor: 0.13025, sample_size: Some(1024), ..SD15 };

/// SD 3 and 3.5: 16 latent channels.
const SD3: Family = Family {
    name: "sd3",
    latent_channels: 16,
    use_post_quant_conv: false,
    scaling_factor: 1.5305,
    shift_factor: 0.0609,
    sample_size: Some(1024),
    ..SD15
};

/// FLUX.1: the network of SD 3 with other weights.
const FLUX1: Family = Family { name: "flux1", scaling_factor: 0.3611, shift_factor: 0.1159, ..SD3 };

/// Every family known by name.
pub const FAMILIES: &[Family] = &[
    SD15,
    Family { name: "sd21", sample_size: Some(768), ..SD15 },
    SDXL,
    Family {
        name: "playground",
        scaling_factor: 0.5,
        latents_mean_std: Some((&[-1.6574, 1.886, -1.383, 2.5155], &[8.4927, 5.9022, 6.5498, 5.2299])),
        ..SDXL
    },
    Family {
        name: "sd_x4_upscaler",
        block_out_channels: &[128, 256, 512],
        scaling_factor: 0.08333,
        sample_size: None,
        ..SD15
    },
    SD3,
    FLUX1,
    // The same weights as FLUX.1's.
    Family { name: "z_image", ..FLUX1 },
    // CogView3-Plus too.
    Family {
        name: "cogview4",
        block_out_channels: &[128, 512, 1024, 1024],
        layers_per_block: 3,
        mid_block_add_attention: false,
        scaling_factor: 1.0,
        shift_factor: 0.0,
        ..SD3
    },
];

impl Family {
    /// The family of this name. An unknown name is an error that lists the known ones.
    pub fn find(name: &str) -> Result<&'static Self> {
        FAMILIES.iter().find(|family| family.name == name).ok_or_else(|| Error::Input {
            what: "family".to_owned(),
            expected: format!("one of {}", FAMILIES.iter().map(|family| family.name).collect::<Vec<_>>().join(", ")),
            found: format!("\"{name}\""),
        })
    }

    /// The family's config.
    pub fn config(&self) -> AutoencoderConfig {
        let mut config = AutoencoderConfig {
            out_channels: 3,
            latent_channels: self.latent_channels,
            block_out_channels: self.block_out_channels.to_vec(),
            layers_per_block: self.layers_per_block,
            norm_num_groups: 32,
            mid_block_add_attention: self.mid_block_add_attention,
            use_post_quant_conv: self.use_post_quant_conv,
            scaling_factor: 1.0,
            shift_factor: 0.0,
            latents_mean: None,
            latents_std: None,
            force_upcast: true,
            sample_size: None,
        };
        self.apply_scale(&mut config);
        config
    }

    /// Replaces in `config` what concerns the latents' scale, adds the sample size if there is none, and leaves the network.
    pub(crate) fn apply_scale(&self, config: &mut AutoencoderConfig) {
        config.scaling_factor = self.scaling_factor;
        config.shift_factor = self.shift_factor;
        config.latents_mean = self.latents_mean_std.map(|(mean, _)| mean.to_vec());
        config.latents_std = self.latents_mean_std.map(|(_, std)| std.to_vec());
        config.sample_size = config.sample_size.or(self.sample_size);
    }

    /// Whether latents of both families mean the same.
    pub(crate) fn same_scale(&self, other: &Self) -> bool {
        (self.scaling_factor, self.shift_factor, self.latents_mean_std)
            == (other.scaling_factor, other.shift_factor, other.latents_mean_std)
    }
}
