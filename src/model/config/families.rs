//! Published models as rows of a table. Numbers come from vae/config.json of each repository, or
//! from its code if there is none (TAEF2, `SeedVR`).

use super::{AutoencoderConfig, Kl, Network, OwnLatents, Packing, SeedVr, Tiny, Wan};
use crate::error::{Error, Result};

/// A published model: its network and the scale of its latents.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// Name for `--family`.
    pub name: &'static str,
    config: fn() -> AutoencoderConfig,
}

/// All known families. A row that varies another lists only the differences.
pub const FAMILIES: &[Family] = &[
    Family { name: "sd15", config: sd15 },
    Family { name: "sd21", config: || AutoencoderConfig { sample_size: Some(768), ..sd15() } },
    Family { name: "sdxl", config: sdxl },
    Family { name: "playground", config: playground },
    Family { name: "sd_x4_upscaler", config: sd_x4_upscaler },
    Family { name: "sd3", config: sd3 },
    Family { name: "flux1", config: flux1 },
    // It has the same weights as FLUX.1.
    Family { name: "z_image", config: flux1 },
    // CogView3-Plus has them, too.
    Family { name: "cogview4", config: cogview4 },
    Family { name: "flux2", config: flux2 },
    Family { name: "flux2_small_decoder", config: flux2_small_decoder },
    // They have the same weights as FLUX.2.
    Family { name: "ideogram4", config: || AutoencoderConfig { packing: Packing::ByPlace, ..flux2() } },
    Family { name: "fibo2", config: || AutoencoderConfig { packing: Packing::Unpacked, ..flux2() } },
    Family { name: "taesd", config: || tiny(&sd15()) },
    Family { name: "taesdxl", config: || tiny(&sdxl()) },
    Family { name: "taesd3", config: || tiny(&sd3()) },
    Family { name: "taef1", config: || tiny(&flux1()) },
    Family { name: "taef2", config: taef2 },
    Family { name: "qwen_image", config: wan21 },
    Family { name: "wan21", config: wan21 },
    Family { name: "qwen_image_layered", config: || rgba(wan21()) },
    // It has Qwen-Image-Layered's network, and one factor in place of statistics.
    Family { name: "ming_image", config: ming_image },
    Family { name: "seedvr2", config: seedvr2 },
];

impl Family {
    /// Returns the family of this name.
    ///
    /// # Errors
    /// [`Error::Input`] for an unknown name, with a list of the known ones.
    pub fn find(name: &str) -> Result<&'static Self> {
        FAMILIES.iter().find(|family| family.name == name).ok_or_else(|| {
            Error::input(
                "family",
                format!("one of {}", FAMILIES.iter().map(|family| family.name).collect::<Vec<_>>().join(", ")),
                format!("\"{name}\""),
            )
        })
    }

    /// Returns the config of this family.
    pub fn config(&self) -> AutoencoderConfig {
        (self.config)()
    }
}

/// Returns the network of SD 1.x, which most others vary.
fn kl() -> Kl {
    Kl {
        block_out_channels: vec![128, 256, 512, 512],
        decoder_block_out_channels: None,
        layers_per_block: 2,
        norm_num_groups: 32,
        mid_block_add_attention: true,
        use_quant_conv: true,
        use_post_quant_conv: true,
    }
}

/// Returns the config of Stable Diffusion 1.x.
fn sd15() -> AutoencoderConfig {
    AutoencoderConfig {
        scaling_factor: 0.18215,
        force_upcast: true,
        sample_size: Some(512),
        ..AutoencoderConfig::new(Network::Kl(kl()), 4)
    }
}

/// Returns the config of SDXL: the network of SD 1.x with other weights.
fn sdxl() -> AutoencoderConfig {
    AutoencoderConfig { scaling_factor: 0.13025, sample_size: Some(1024), ..sd15() }
}

/// Returns the config of Playground 2.5: SDXL's network with other weights, and statistics per
/// channel.
fn playground() -> AutoencoderConfig {
    AutoencoderConfig {
        scaling_factor: 0.5,
        latents_mean: Some(vec![-1.6574, 1.886, -1.383, 2.5155]),
        latents_std: Some(vec![8.4927, 5.9022, 6.5498, 5.2299]),
        ..sdxl()
    }
}

fn sd_x4_upscaler() -> AutoencoderConfig {
    AutoencoderConfig {
        network: Network::Kl(Kl { block_out_channels: vec![128, 256, 512], ..kl() }),
        scaling_factor: 0.08333,
        sample_size: Some(256),
        ..sd15()
    }
}

/// Returns the config of SD 3 and 3.5, with 16 latent channels.
fn sd3() -> AutoencoderConfig {
    AutoencoderConfig {
        network: Network::Kl(Kl { use_quant_conv: false, use_post_quant_conv: false, ..kl() }),
        latent_channels: 16,
        scaling_factor: 1.5305,
        shift_factor: Some(0.0609),
        sample_size: Some(1024),
        ..sd15()
    }
}

/// Returns the config of FLUX.1: the network of SD 3 with other weights.
fn flux1() -> AutoencoderConfig {
    AutoencoderConfig { scaling_factor: 0.3611, shift_factor: Some(0.1159), ..sd3() }
}

fn cogview4() -> AutoencoderConfig {
    let network = Kl {
        block_out_channels: vec![128, 512, 1024, 1024],
        layers_per_block: 3,
        mid_block_add_attention: false,
        use_quant_conv: false,
        use_post_quant_conv: false,
        ..kl()
    };
    AutoencoderConfig { network: Network::Kl(network), scaling_factor: 1.0, shift_factor: Some(0.0), ..sd3() }
}

/// Returns the config of FLUX.2. Its diffusion model sees patches of 2x2 latents, normalised by a
/// batch norm among the weights.
fn flux2() -> AutoencoderConfig {
    AutoencoderConfig {
        patch: 2,
        batch_norm_eps: Some(1e-4),
        force_upcast: true,
        sample_size: Some(1024),
        ..AutoencoderConfig::new(Network::Kl(kl()), 32)
    }
}

fn flux2_small_decoder() -> AutoencoderConfig {
    let decoder_block_out_channels = Some(vec![96, 192, 384, 384]);
    AutoencoderConfig { network: Network::Kl(Kl { decoder_block_out_channels, ..kl() }), ..flux2() }
}

/// Returns the network of TAESD.
fn tiny_network() -> Tiny {
    Tiny {
        encoder_block_out_channels: vec![64; 4],
        decoder_block_out_channels: vec![64; 4],
        num_encoder_blocks: vec![1, 3, 3, 3],
        num_decoder_blocks: vec![3, 3, 3, 1],
        use_midblock_gn: false,
    }
}

/// Returns the config of a tiny autoencoder that replaces the VAE of `config`. It works on the
/// diffusion model's latents, so these need no scale.
fn tiny(config: &AutoencoderConfig) -> AutoencoderConfig {
    AutoencoderConfig {
        own_latents: OwnLatents::stand_in_for(config),
        shift_factor: Some(0.0),
        ..AutoencoderConfig::new(Network::Tiny(tiny_network()), config.latent_channels)
    }
}

/// Returns the config of TAEF2. It has FLUX.2's patches, but not its batch norm: latents stay
/// normalised.
fn taef2() -> AutoencoderConfig {
    let network = Network::Tiny(Tiny { use_midblock_gn: true, ..tiny_network() });
    AutoencoderConfig { patch: 2, shift_factor: Some(0.0), ..AutoencoderConfig::new(network, 32) }
}

/// Returns the config of Wan 2.1. Qwen-Image has the same network and statistics, with other
/// weights.
fn wan21() -> AutoencoderConfig {
    let network = Wan {
        base_dim: 96,
        dim_mult: vec![1, 2, 4, 4],
        num_res_blocks: 2,
        temperal_downsample: vec![false, true, true],
    };
    AutoencoderConfig {
        latents_mean: Some(WAN_MEAN.to_vec()),
        latents_std: Some(WAN_STD.to_vec()),
        sample_size: Some(WAN_TILE),
        ..AutoencoderConfig::new(Network::Wan(network), 16)
    }
}

/// Returns `config` for images with opacity.
fn rgba(config: AutoencoderConfig) -> AutoencoderConfig {
    AutoencoderConfig { in_channels: 4, out_channels: 4, ..config }
}

fn ming_image() -> AutoencoderConfig {
    AutoencoderConfig { scaling_factor: 8.0064, latents_mean: None, latents_std: None, ..rgba(wan21()) }
}

/// Mean of each latent channel of Wan 2.1, which is the default of its class.
pub(super) const WAN_MEAN: &[f64] = &[
    -0.7571, -0.7089, -0.9113, 0.1075, -0.1745, 0.9653, -0.1517, 1.5508, 0.4134, -0.0715, 0.5517, -0.3632, -0.1922,
    -0.9497, 0.2503, -0.2921,
];

/// Standard deviation of each latent channel of Wan 2.1, which is the default of its class.
pub(super) const WAN_STD: &[f64] = &[
    2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743, 3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253,
    2.8251, 1.916,
];

/// Side in pixels of diffusers' tiles for Wan, which its config.json does not contain. A quarter of
/// each tile overlaps, as in other models.
pub(super) const WAN_TILE: u32 = 256;

fn seedvr2() -> AutoencoderConfig {
    let network = SeedVr {
        block_out_channels: vec![128, 256, 512, 512],
        layers_per_block: 2,
        norm_num_groups: 32,
        temporal_scale_num: 2,
    };
    AutoencoderConfig { scaling_factor: 0.9152, ..AutoencoderConfig::new(Network::SeedVr(network), 16) }
}
