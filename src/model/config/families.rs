//! Published models as rows of a table. Numbers come from vae/config.json of each repository, or
//! from its code if there is none (TAEF2, `SeedVR`).

use super::latents::H3_CHANNELS;
use super::{
    AutoencoderConfig, Dc, HunyuanVideo, Kl, Ltx2, Network, OwnLatents, Packing, PaddingMode, SeedVr, SizeChange,
    Starts, Tiny, Wan,
};
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
    Family { name: "taeqi2_1", config: || TAEQI.config() },
    Family { name: "taesana", config: || TAESANA.config() },
    Family { name: "taehv", config: || TAEHV.config() },
    Family { name: "taecvx", config: taecvx },
    Family { name: "taew2_1", config: || TAEW21.config() },
    // It has the same shapes, but takes the VAE's own latents.
    Family { name: "lighttaew2_1", config: || TAEW21.light() },
    Family { name: "taew2_2", config: || TAEW22.config() },
    Family { name: "lighttaew2_2", config: || TAEW22.light() },
    Family { name: "taehv1_5", config: || TAEHV15.config() },
    Family { name: "taeh3", config: || TAEH3.config() },
    Family { name: "taeltx_2", config: || TAELTX.config() },
    Family { name: "taeltx2_3", config: || TAELTX.config() },
    Family { name: "qwen_image", config: wan21 },
    Family { name: "wan21", config: wan21 },
    Family { name: "wan21_upscale2x", config: || varied(|wan| wan.upscale = 2) },
    // LightX2V's, with a quarter of the widths.
    Family { name: "lightvaew2_1", config: || varied(|wan| (wan.base_dim, wan.decoder_base_dim) = (24, 24)) },
    Family { name: "qwen_image_layered", config: || rgba(wan21()) },
    // It has Qwen-Image-Layered's network, and one factor in place of statistics.
    Family { name: "ming_image", config: ming_image },
    Family { name: "qwen_image21", config: qwen_image21 },
    Family { name: "wan22", config: wan22 },
    Family { name: "hunyuan_image", config: hunyuan_image },
    Family { name: "hunyuan_video15", config: hunyuan_video },
    Family { name: "sana", config: || dc(Dc::published()) },
    Family { name: "dc_ae_lite", config: || dc(Dc::lite()) },
    Family { name: "dc_ae_f32c32_in", config: || dc_of_levels(6, 32, 0.3189) },
    Family { name: "dc_ae_f32c32_mix", config: || dc_of_levels(6, 32, 0.4552) },
    Family { name: "dc_ae_f64c128_in", config: || dc_of_levels(7, 128, 0.2889) },
    Family { name: "dc_ae_f64c128_mix", config: || dc_of_levels(7, 128, 0.4538) },
    Family { name: "dc_ae_f128c512_in", config: || dc_of_levels(8, 512, 0.4883) },
    Family { name: "dc_ae_f128c512_mix", config: || dc_of_levels(8, 512, 0.362) },
    Family { name: "seedvr2", config: seedvr2 },
    Family { name: "ltx2", config: ltx2 },
    // LTX-2.5's is the same.
    Family { name: "ltx2_3", config: ltx2_3 },
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
        decoder_layers_per_block: None,
        norm_num_groups: 32,
        mid_block_add_attention: true,
        use_quant_conv: true,
        use_post_quant_conv: true,
        has_shortcuts: false,
        padding_mode: PaddingMode::Zeros,
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
pub(super) fn tiny_network() -> Tiny {
    Tiny {
        encoder_block_out_channels: vec![64; 4],
        decoder_block_out_channels: vec![64; 4],
        num_encoder_blocks: vec![1, 3, 3, 3],
        num_decoder_blocks: vec![3, 3, 3, 1],
        use_midblock_gn: false,
        patch_size: 1,
        temporal_downsample: Vec::new(),
        grow_frames: Vec::new(),
        starts: Starts::First,
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

/// A tiny autoencoder without a class in diffusers. Latents of the diffusion model have no scale.
struct Relative {
    own_latents: OwnLatents,
    latent_channels: u32,
    image_channels: u32,
    patch_size: u32,
    encoder: (&'static [u32], &'static [u32]),
    decoder: (&'static [u32], &'static [u32]),
    temporal_downsample: &'static [bool],
    grow_frames: &'static [u32],
    starts: Starts,
}

/// The tiny autoencoder of Qwen-Image 2.1.
const TAEQI: Relative = Relative {
    own_latents: OwnLatents::Normalised { mean: QWEN_IMAGE21_MEAN, std: QWEN_IMAGE21_STD },
    latent_channels: 64,
    image_channels: 4,
    patch_size: 2,
    encoder: (&[64, 64, 128, 256], &[1, 3, 3, 3]),
    decoder: (&[256, 128, 64, 64], &[3, 3, 3, 1]),
    temporal_downsample: &[],
    grow_frames: &[],
    starts: Starts::First,
};

/// The tiny autoencoder of DC-AE, for Sana.
const TAESANA: Relative = Relative {
    own_latents: OwnLatents::StandIn { scaling_factor: 0.41407, shift_factor: 0.0 },
    latent_channels: 32,
    image_channels: 3,
    patch_size: 1,
    encoder: (&[0, 32, 64, 64, 64, 64], &[0, 0, 1, 3, 3, 3]),
    decoder: (&[256, 128, 64, 64, 64, 64], &[3, 3, 3, 3, 3, 1]),
    ..TAEQI
};

/// The tiny autoencoder of `HunyuanVideo`. Others for video vary it.
const TAEHV: Relative = Relative {
    own_latents: OwnLatents::StandIn { scaling_factor: 0.476_986, shift_factor: 0.0 },
    latent_channels: 16,
    encoder: (&[64, 64, 64, 64], &[0, 3, 3, 3]),
    decoder: (&[256, 128, 64, 64], &[3, 3, 3, 0]),
    temporal_downsample: &[true, true, false],
    grow_frames: &[1, 2, 2],
    ..TAESANA
};

/// The tiny autoencoder of `HunyuanVideo` 1.5.
const TAEHV15: Relative = Relative {
    own_latents: OwnLatents::StandIn { scaling_factor: 1.03682, shift_factor: 0.0 },
    latent_channels: 32,
    patch_size: 2,
    ..TAEHV
};

/// The tiny autoencoder of Wan 2.1 and Qwen-Image.
const TAEW21: Relative = Relative { own_latents: OwnLatents::Normalised { mean: WAN_MEAN, std: WAN_STD }, ..TAEHV };

/// The tiny autoencoder of Wan 2.2's 5B model.
const TAEW22: Relative = Relative {
    own_latents: OwnLatents::Normalised { mean: WAN22_MEAN, std: WAN22_STD },
    latent_channels: 48,
    ..TAEHV15
};

/// The tiny autoencoder of `MiniMax-H3`.
const TAEH3: Relative = Relative {
    own_latents: OwnLatents::Unknown,
    latent_channels: H3_CHANNELS,
    patch_size: 2,
    starts: Starts::EveryFifth,
    ..TAEHV
};

/// The tiny autoencoders of LTX-2 and LTX-2.3. The scale of the VAE's own latents is among that
/// VAE's weights.
const TAELTX: Relative = Relative {
    own_latents: OwnLatents::Unknown,
    latent_channels: 128,
    patch_size: 4,
    temporal_downsample: &[true, true, true],
    grow_frames: &[2, 2, 2],
    ..TAEHV
};

/// Returns the config of `CogVideoX`'s tiny autoencoder. It takes the VAE's own latents: upstream's
/// example divides the diffusion model's by its factor. That is 0.7 in the 5B models.
fn taecvx() -> AutoencoderConfig {
    let network = Relative { own_latents: OwnLatents::OfNetwork, starts: Starts::FirstIfOdd, ..TAEHV };
    AutoencoderConfig { scaling_factor: 0.7, ..network.config() }
}

impl Relative {
    fn config(&self) -> AutoencoderConfig {
        let network = Tiny {
            encoder_block_out_channels: self.encoder.0.to_vec(),
            decoder_block_out_channels: self.decoder.0.to_vec(),
            num_encoder_blocks: self.encoder.1.to_vec(),
            num_decoder_blocks: self.decoder.1.to_vec(),
            use_midblock_gn: false,
            patch_size: self.patch_size,
            temporal_downsample: self.temporal_downsample.to_vec(),
            grow_frames: self.grow_frames.to_vec(),
            starts: self.starts,
        };
        AutoencoderConfig {
            in_channels: self.image_channels,
            out_channels: self.image_channels,
            own_latents: self.own_latents,
            shift_factor: Some(0.0),
            ..AutoencoderConfig::new(Network::Tiny(network), self.latent_channels)
        }
    }

    /// Returns the config of `LightX2V`'s training of this network. It takes the VAE's own latents,
    /// and the diffusion model takes `(own - mean) / std` of each channel.
    fn light(&self) -> AutoencoderConfig {
        let config = self.config();
        let OwnLatents::Normalised { mean, std } = self.own_latents else { return config };
        AutoencoderConfig {
            own_latents: OwnLatents::OfNetwork,
            latents_mean: Some(mean.to_vec()),
            latents_std: Some(std.to_vec()),
            ..config
        }
    }
}

/// Returns the config of Wan 2.1. Qwen-Image has the same network and statistics, with other
/// weights.
pub(super) fn wan21() -> AutoencoderConfig {
    let network = Wan {
        base_dim: 96,
        decoder_base_dim: 96,
        dim_mult: vec![1, 2, 4, 4],
        num_res_blocks: 2,
        temperal_downsample: vec![false, true, true],
        is_residual: false,
        is_video: true,
        patch_size: 1,
        upscale: 1,
    };
    AutoencoderConfig {
        latents_mean: Some(WAN_MEAN.to_vec()),
        latents_std: Some(WAN_STD.to_vec()),
        sample_size: Some(WAN_TILE),
        ..AutoencoderConfig::new(Network::Wan(network), 16)
    }
}

/// Returns the config of Wan 2.1 with a network that `vary` changes.
fn varied(vary: fn(&mut Wan)) -> AutoencoderConfig {
    let mut config = wan21();
    if let Network::Wan(wan) = &mut config.network {
        vary(wan);
    }
    config
}

/// Returns the config of the 5B model of Wan 2.2. Its other models have the VAE of Wan 2.1.
fn wan22() -> AutoencoderConfig {
    let network = Wan {
        base_dim: 160,
        decoder_base_dim: 256,
        dim_mult: vec![1, 2, 4, 4],
        num_res_blocks: 2,
        temperal_downsample: vec![false, true, true],
        is_residual: true,
        is_video: true,
        patch_size: 2,
        upscale: 1,
    };
    AutoencoderConfig {
        latents_mean: Some(WAN22_MEAN.to_vec()),
        latents_std: Some(WAN22_STD.to_vec()),
        sample_size: Some(WAN_TILE),
        ..AutoencoderConfig::new(Network::Wan(network), 48)
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
const WAN_MEAN: &[f64] = &[
    -0.7571, -0.7089, -0.9113, 0.1075, -0.1745, 0.9653, -0.1517, 1.5508, 0.4134, -0.0715, 0.5517, -0.3632, -0.1922,
    -0.9497, 0.2503, -0.2921,
];

/// Standard deviation of each latent channel of Wan 2.1, which is the default of its class.
const WAN_STD: &[f64] = &[
    2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743, 3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253,
    2.8251, 1.916,
];

/// Mean of each latent channel of Wan 2.2's 5B model.
const WAN22_MEAN: &[f64] = &[
    -0.2289, -0.0052, -0.1323, -0.2339, -0.2799, 0.0174, 0.1838, 0.1557, -0.1382, 0.0542, 0.2813, 0.0891, 0.157,
    -0.0098, 0.0375, -0.1825, -0.2246, -0.1207, -0.0698, 0.5109, 0.2665, -0.2108, -0.2158, 0.2502, -0.2055, -0.0322,
    0.1109, 0.1567, -0.0729, 0.0899, -0.2799, -0.123, -0.0313, -0.1649, 0.0117, 0.0723, -0.2839, -0.2083, -0.052,
    0.3748, 0.0152, 0.1957, 0.1433, -0.2944, 0.3573, -0.0548, -0.1681, -0.0667,
];

/// Standard deviation of each latent channel of Wan 2.2's 5B model.
const WAN22_STD: &[f64] = &[
    0.4765, 1.0364, 0.4514, 1.1677, 0.5313, 0.499, 0.4818, 0.5013, 0.8158, 1.0344, 0.5894, 1.0901, 0.6885, 0.6165,
    0.8454, 0.4978, 0.5759, 0.3523, 0.7135, 0.6804, 0.5833, 1.4146, 0.8986, 0.5659, 0.7069, 0.5338, 0.4889, 0.4917,
    0.4069, 0.4999, 0.6866, 0.4093, 0.5709, 0.6065, 0.6415, 0.4944, 0.5726, 1.2042, 0.5458, 1.6887, 0.3971, 1.06,
    0.3943, 0.5537, 0.5444, 0.4089, 0.7468, 0.7744,
];

/// Side in pixels of diffusers' tiles for Wan, which its config.json does not contain. A quarter of
/// each tile overlaps, as in other models.
const WAN_TILE: u32 = 256;

/// Returns the config of Qwen-Image 2.1.
pub(super) fn qwen_image21() -> AutoencoderConfig {
    let network = Wan {
        base_dim: 96,
        decoder_base_dim: 144,
        dim_mult: vec![1, 2, 4, 8, 8],
        num_res_blocks: 2,
        temperal_downsample: vec![false, true, true, true],
        is_residual: true,
        is_video: false,
        patch_size: 1,
        upscale: 1,
    };
    AutoencoderConfig {
        latents_mean: Some(QWEN_IMAGE21_MEAN.to_vec()),
        latents_std: Some(QWEN_IMAGE21_STD.to_vec()),
        sample_size: Some(WAN_TILE),
        ..rgba(AutoencoderConfig::new(Network::Wan(network), 64))
    }
}

/// Mean of each latent channel of Qwen-Image 2.1, which is the default of its class.
#[expect(clippy::approx_constant, reason = "a published number")]
const QWEN_IMAGE21_MEAN: &[f64] = &[
    0.5126, 0.7721, -0.0631, 1.3506, -0.7855, -2.1025, -0.3458, 1.3722, 1.8873, -1.7177, -0.651, 0.2732, 0.7562,
    -0.6163, -1.0277, 3.8363, 2.021, 0.0472, 0.932, 2.0087, 2.4954, -0.1391, -1.4249, 1.8464, -0.5236, 1.2826, 3.7046,
    -1.3035, 2.7286, -1.4518, -1.9036, -1.9955, -0.0342, -1.0265, -0.7636, 3.0555, 0.0746, -3.0751, -0.1076, 1.7376,
    -1.0914, -1.9435, -0.2784, -1.368, 0.4809, -0.4433, 0.3764, 0.5729, -2.0595, 1.096, -1.326, -2.0211, -5.0179,
    0.5275, 4.0162, 1.8505, 0.3026, 1.9373, 1.4937, 0.2632, 0.5547, -1.7121, -0.1562, 0.0304,
];

/// Standard deviation of each latent channel of Qwen-Image 2.1, which is the default of its class.
const QWEN_IMAGE21_STD: &[f64] = &[
    3.2001, 3.2936, 3.4321, 3.0091, 3.1061, 4.0379, 4.0705, 3.791, 3.0785, 3.65, 3.9308, 3.0904, 2.8778, 3.7675, 3.732,
    5.0756, 3.2864, 4.0397, 3.1317, 4.0443, 2.9249, 3.9454, 3.0988, 4.2489, 3.4896, 3.8513, 3.9323, 3.4719, 3.7498,
    4.283, 3.5694, 4.2467, 3.9037, 3.2947, 5.077, 3.5075, 3.27, 3.4767, 2.8063, 5.1125, 3.5327, 4.7833, 3.1286, 4.1819,
    3.8527, 3.8312, 3.5605, 4.3875, 3.9624, 4.0168, 3.5643, 4.055, 5.5614, 4.2963, 4.408, 3.4959, 3.8747, 3.7608,
    3.5735, 3.149, 3.7662, 3.6746, 3.4563, 3.8161,
];

/// Returns the config of HunyuanImage 2.1.
pub(super) fn hunyuan_image() -> AutoencoderConfig {
    let network = Kl {
        block_out_channels: vec![128, 256, 512, 512, 1024, 1024],
        use_quant_conv: false,
        use_post_quant_conv: false,
        has_shortcuts: true,
        ..kl()
    };
    AutoencoderConfig {
        scaling_factor: 0.75289,
        sample_size: Some(384),
        ..AutoencoderConfig::new(Network::Kl(network), 64)
    }
}

/// Returns the config of HunyuanVideo 1.5.
pub(super) fn hunyuan_video() -> AutoencoderConfig {
    let network =
        HunyuanVideo { block_out_channels: vec![128, 256, 512, 1024, 1024], layers_per_block: 2, time_changes: 2 };
    AutoencoderConfig {
        scaling_factor: 1.03682,
        // diffusers' class begins tiles at 256 pixels.
        sample_size: Some(256),
        ..AutoencoderConfig::new(Network::HunyuanVideo(network), 32)
    }
}

/// Returns the config of DC-AE for Sana, whose latents all of its decoders share.
pub(super) fn dc(network: Dc) -> AutoencoderConfig {
    AutoencoderConfig {
        scaling_factor: 0.41407,
        // diffusers' class begins tiles at 512 pixels.
        sample_size: Some(512),
        ..AutoencoderConfig::new(Network::Dc(network), 32)
    }
}

/// Returns the config of DC-AE's other models, which were trained on `ImageNet` or on a mixture.
fn dc_of_levels(levels: usize, latent_channels: u32, scaling_factor: f64) -> AutoencoderConfig {
    AutoencoderConfig { latent_channels, scaling_factor, ..dc(Dc::of_levels(levels)) }
}

fn seedvr2() -> AutoencoderConfig {
    let network = SeedVr {
        block_out_channels: vec![128, 256, 512, 512],
        layers_per_block: 2,
        norm_num_groups: 32,
        temporal_scale_num: 2,
    };
    AutoencoderConfig { scaling_factor: 0.9152, ..AutoencoderConfig::new(Network::SeedVr(network), 16) }
}

/// Returns the config of LTX-2. Its file has the statistics of its latents.
pub(super) fn ltx2() -> AutoencoderConfig {
    // diffusers' class begins tiles at 512 pixels.
    AutoencoderConfig { sample_size: Some(512), ..AutoencoderConfig::new(Network::Ltx2(Ltx2::published()), 128) }
}

/// Returns the config of LTX-2.3 and 2.5.
fn ltx2_3() -> AutoencoderConfig {
    let network = Ltx2 {
        block_out_channels: vec![256, 512, 1024, 1024],
        layers_per_block: vec![4, 6, 4, 2, 2],
        decoder_block_out_channels: vec![1024, 512, 512, 256],
        decoder_layers_per_block: vec![2, 2, 4, 6, 4],
        upsample: vec![SizeChange::BOTH, SizeChange::BOTH, SizeChange::TIME, SizeChange::SPACE],
        upsample_factor: vec![2, 1, 2, 2],
        upsample_residual: vec![false; 4],
        decoder_reflects: false,
        ..Ltx2::published()
    };
    AutoencoderConfig { network: Network::Ltx2(network), ..ltx2() }
}
