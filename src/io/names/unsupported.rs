//! Detection of VAEs that this crate does not support, by tensors that only they have, so that
//! errors can name them.

use crate::ordered::Map;

use super::sign::Sign::{self, All, Contains, Fits, Shape, Starts};

/// A kind of VAE that is not supported.
struct Kind {
    /// Evidence: any of these is enough.
    signs: &'static [Sign],
    /// Name for people.
    name: &'static str,
    /// Reason why it is not supported, and what reads it.
    why: &'static str,
}

/// The first kind that matches wins, because many names of one kind occur in others.
const KINDS: &[Kind] = &[
    Kind {
        signs: &[Contains("_blocks.0.convs.")],
        name: "the VAE of EasyAnimate",
        why: "use diffusers' AutoencoderKLMagvit",
    },
    Kind {
        signs: &[Fits(is_super)],
        name: "a TAEHV of the kind _super",
        why: "its depthwise filters of 7x7 are missing here; use the file without _super in its name",
    },
    Kind {
        signs: &[Shape("decoder.1.weight", &[1024, 128, 3, 3])],
        name: "taeltx2_3_wide",
        why: "its grouped filters are missing here; use LTX-2's own VAE",
    },
    Kind {
        signs: &[Starts("student.dconv_encoder.")],
        name: "Mage-VAE",
        why: "its decoder is a diffusion model of one step",
    },
    Kind {
        signs: &[Starts("decoder.conv_in_x_t.")],
        name: "the diffusion decoder of LTX-2.5",
        why: "it is a diffusion model itself; use diffusers' LTX2VideoDiffusionDecoderModel",
    },
    Kind {
        signs: &[Starts("decoder_unet.")],
        name: "a ConsistencyDecoderVAE",
        why: "its decoder is a diffusion model; use SD 1.5's VAE",
    },
    Kind {
        signs: &[Starts("quantize.")],
        name: "a VQ model",
        why: "its latents are entries of a codebook; use diffusers' VQModel",
    },
    Kind {
        signs: &[Starts("vquantizer.")],
        name: "stage A of Stable Cascade",
        why: "its latents are entries of a codebook; use diffusers' PaellaVQModel",
    },
    Kind {
        signs: &[Starts("decoder.condition_encoder.")],
        name: "an AsymmetricAutoencoderKL",
        why: "its decoder reads a mask; use diffusers' class",
    },
    Kind {
        signs: &[
            Contains(".temporal_res_block."),
            Contains(".time_stack."),
            Starts("decoder.mid.block_1.mix_factor"),
            Starts("decoder.time_conv_out."),
        ],
        name: "the temporal decoder of Stable Video Diffusion",
        why: "it mixes all frames of a clip; use diffusers' AutoencoderKLTemporalDecoder",
    },
    Kind {
        signs: &[Starts("decoder.transformer_blocks.")],
        name: "the VAE of MiniMax-H3",
        why: "its decoder is a transformer; use diffusers' AutoencoderKLMiniMaxH3",
    },
    Kind {
        signs: &[Starts("encoder.encoder.layer.")],
        name: "an AutoencoderRAE",
        why: "its halves are transformers; use diffusers' class",
    },
    Kind {
        signs: &[Fits(is_hunyuan_image3)],
        name: "the VAE of HunyuanImage 3",
        why: "its convolutions over time are missing here",
    },
    Kind {
        signs: &[Starts("decoder.block_in."), Contains("blocks.2.blocks.3.stack.5.")],
        name: "the VAE of Mochi",
        why: "use diffusers' AutoencoderKLMochi",
    },
    Kind {
        signs: &[Contains(".conv_s."), All(&["decoder.unpatcher3d.wavelets"])],
        name: "the VAE of Cosmos 1",
        why: "its wavelets and attention over time are missing here; use diffusers' AutoencoderKLCosmos",
    },
    Kind {
        signs: &[Starts("decoder.mid.block_1.norm1.conv_y.")],
        name: "a KVAE of Kandinsky",
        why: "its norms read the latents; use diffusers' class for it",
    },
    Kind {
        signs: &[Contains(".norm_layer.")],
        name: "the VAE of CogVideoX",
        why: "its result depends on how a clip is cut; use diffusers' AutoencoderKLCogVideoX",
    },
    Kind { signs: &[Contains(".temp_convs.")], name: "the VAE of Allegro", why: "use diffusers' AutoencoderKLAllegro" },
    Kind { signs: &[Contains(".norm1.norm.")], name: "VidTok", why: "use diffusers' AutoencoderVidTok" },
    Kind {
        // All versions but LTX-2's have one of them: timesteps, or norms before shortcuts.
        signs: &[Contains("time_embedder."), Contains("scale_shift_table"), Contains(".norm3.")],
        name: "the VAE of LTX-Video 0.9",
        why: "LTX-2's is supported; use diffusers' AutoencoderKLLTXVideo",
    },
    Kind {
        signs: &[
            All(&["decoder.mid_block.resnets.0.conv1.conv.weight", "decoder.mid_block.resnets.0.norm1.weight"]),
            All(&["decoder.mid.block_1.conv1.conv.weight", "decoder.mid.block_1.norm1.weight"]),
        ],
        name: "the VAE of HunyuanVideo",
        why: "its result depends on how a clip is cut; use diffusers' AutoencoderKLHunyuanVideo",
    },
    Kind {
        signs: &[Fits(is_other_causal), Fits(is_other_video)],
        name: "a video VAE (its convolutions are 3-D)",
        why: "use diffusers' class for it",
    },
];

/// Checks that the tensors `inside` the VAE (name without prefix -> shape) are not of a known,
/// unsupported kind. The error is the message that names the kind.
pub(super) fn check(inside: &Map<&str, &[u64]>) -> Result<(), String> {
    match KINDS.iter().find(|kind| kind.signs.iter().any(|sign| sign.fits(inside))) {
        None => Ok(()),
        Some(Kind { name, why, .. }) => Err(format!(
            "not supported: looks like {name}: {why}. AutoencoderKL, AutoencoderTiny and the VAEs of FLUX.2, Wan, Qwen-Image, Qwen-Image 2.1, HunyuanImage 2.1, HunyuanVideo 1.5, LTX-2, Sana and SeedVR are supported"
        )),
    }
}

/// True if the first layer of the decoder takes 32 channels and has time, or that of an encoder
/// with LDM's names has time. Causal convolutions have other names.
fn is_hunyuan_image3(inside: &Map<&str, &[u64]>) -> bool {
    let has_levels = || inside.keys().any(|name| name.starts_with("encoder.down."));
    matches!(inside.get("decoder.conv_in.weight"), Some([_, 32, 3, 3, 3]))
        || matches!(inside.get("encoder.conv_in.weight"), Some([_, _, 3, 3, 3])) && has_levels()
}

/// True if the first filter of the decoder's first block sees channels one by one.
fn is_super(inside: &Map<&str, &[u64]>) -> bool {
    matches!(inside.get("decoder.1.conv.0.weight"), Some([_, 1, 7, 7]))
}

/// True if a convolution is inside two others and changes no size, as it does in LTX-2 and
/// HunyuanVideo 1.5. In DC-AE's original names many are.
fn is_other_causal(inside: &Map<&str, &[u64]>) -> bool {
    let has_gamma = inside.keys().any(|name| name.ends_with(".gamma"));
    let changes_size = |name: &str| {
        name.contains("samplers.0.conv.conv.")
            || name.split('.').count() == 6
            || has_gamma && name.contains("sample.conv.conv.")
    };
    let is_dc =
        |name: &str| ["stages", "project_in", "project_out"].iter().any(|part| name.split('.').nth(1) == Some(part));
    inside.keys().any(|name| name.contains(".conv.conv.") && !changes_size(name) && !is_dc(name))
}

/// True if most resnets with `AutoencoderKL`'s names have 3-D convolutions, and no tensor belongs
/// to `SeedVR` or Wan only.
fn is_other_video(inside: &Map<&str, &[u64]>) -> bool {
    let filters: Vec<_> =
        inside.iter().filter(|(name, _)| name.contains(".resnets.") && name.ends_with(".conv1.weight")).collect();
    let in_time = filters.iter().filter(|(_, shape)| shape.len() == 5).count();
    let seedvr = inside.iter().any(|(name, shape)| {
        name.contains(".upscale_conv.") || (name.ends_with(".downsamplers.0.conv.weight") && shape.len() == 5)
    });
    let wan = inside.keys().any(|name| name.ends_with(".gamma"));
    in_time * 2 > filters.len() && !seedvr && !wan
}
