//! Detection of VAEs that this crate does not support, by tensors that only they have, so that
//! errors can name them.

use crate::model::config::unsupported::{self, Unsupported};
use crate::ordered::Map;

use super::sign::Sign::{self, All, Contains, Fits, Shape, Starts};

/// A kind of VAE that is not supported, and how its tensors show it.
struct Kind {
    /// Evidence: any of these is enough.
    signs: &'static [Sign],
    /// The kind that they show.
    is: &'static Unsupported,
}

/// The first kind that matches wins, because many names of one kind occur in others.
const KINDS: &[Kind] = &[
    Kind { signs: &[Contains("_blocks.0.convs.")], is: &unsupported::EASY_ANIMATE },
    Kind { signs: &[Fits(is_super)], is: &unsupported::TAEHV_SUPER },
    Kind { signs: &[Shape("decoder.1.weight", &[1024, 128, 3, 3])], is: &unsupported::TAELTX_WIDE },
    Kind { signs: &[Starts("student.dconv_encoder.")], is: &unsupported::MAGE },
    Kind { signs: &[Starts("decoder.conv_in_x_t.")], is: &unsupported::LTX_DIFFUSION },
    Kind { signs: &[Starts("decoder_unet.")], is: &unsupported::CONSISTENCY },
    Kind { signs: &[Starts("quantize.")], is: &unsupported::VQ },
    Kind { signs: &[Starts("vquantizer.")], is: &unsupported::CASCADE_A },
    Kind {
        // EfficientNet, also in a file with the previewer, and the previewer by itself.
        signs: &[Contains("backbone.1.0.block.0.1."), All(&["blocks.11.running_mean"])],
        is: &unsupported::CASCADE_C,
    },
    Kind { signs: &[Contains("lq_proj.latent_proj.")], is: &unsupported::PID },
    Kind {
        signs: &[
            Contains(".temporal_res_block."),
            Contains(".time_stack."),
            Starts("decoder.mid.block_1.mix_factor"),
            Starts("decoder.time_conv_out."),
        ],
        is: &unsupported::SVD,
    },
    Kind { signs: &[Starts("decoder.transformer_blocks.")], is: &unsupported::MINIMAX_H3 },
    Kind { signs: &[Starts("encoder.encoder.layer.")], is: &unsupported::RAE },
    Kind { signs: &[Fits(is_hunyuan_image3)], is: &unsupported::HUNYUAN_IMAGE3 },
    Kind {
        signs: &[
            Starts("decoder.block_in."),
            Contains("blocks.2.blocks.3.stack.5."),
            Contains("layers.4.layers.1.attn_block."),
        ],
        is: &unsupported::MOCHI,
    },
    Kind { signs: &[Contains(".conv_s."), All(&["decoder.unpatcher3d.wavelets"])], is: &unsupported::COSMOS },
    Kind { signs: &[Starts("decoder.mid.block_1.norm1.conv_y.")], is: &unsupported::KANDINSKY },
    Kind { signs: &[Contains(".norm_layer.")], is: &unsupported::COG_VIDEO_X },
    Kind { signs: &[Contains(".temp_convs.")], is: &unsupported::ALLEGRO },
    Kind { signs: &[Contains(".norm1.norm.")], is: &unsupported::VID_TOK },
    Kind {
        // All versions but LTX-2's have one of them: timesteps, or norms before shortcuts.
        signs: &[Contains("time_embedder."), Contains("scale_shift_table"), Contains(".norm3.")],
        is: &unsupported::LTX_VIDEO,
    },
    Kind {
        signs: &[
            All(&["decoder.mid_block.resnets.0.conv1.conv.weight", "decoder.mid_block.resnets.0.norm1.weight"]),
            All(&["decoder.mid.block_1.conv1.conv.weight", "decoder.mid.block_1.norm1.weight"]),
        ],
        is: &unsupported::HUNYUAN_VIDEO,
    },
    Kind { signs: &[Fits(is_other_causal), Fits(is_other_video)], is: &unsupported::OTHER_VIDEO },
];

/// Checks that the tensors `inside` the VAE (name without prefix -> shape) are not of a known,
/// unsupported kind. The error is the message that names the kind.
pub(super) fn check(inside: &Map<&str, &[u64]>) -> Result<(), String> {
    match KINDS.iter().find(|kind| kind.signs.iter().any(|sign| sign.fits(inside))) {
        None => Ok(()),
        Some(Kind { is, .. }) => Err(format!(
            "not supported: looks like {is}. AutoencoderKL, AutoencoderTiny and the VAEs of FLUX.2, Wan, Qwen-Image, Qwen-Image 2.1, HunyuanImage 2.1, HunyuanVideo 1.5, LTX-2, Sana and SeedVR are supported"
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
