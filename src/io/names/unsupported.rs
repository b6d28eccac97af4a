//! Detection of VAEs that this crate does not support, by tensors that only they have, so that
//! errors can name them.

use std::collections::BTreeMap;

use self::Sign::{All, Contains, Fits, Shape, Starts};

/// Evidence for a kind of VAE.
enum Sign {
    /// All tensors of these names exist.
    All(&'static [&'static str]),
    /// The name of some tensor starts with this.
    Starts(&'static str),
    /// The name of some tensor contains this.
    Contains(&'static str),
    /// The tensor of this name has this shape.
    Shape(&'static str, &'static [u64]),
    /// The tensors fit.
    Fits(fn(&BTreeMap<&str, &[u64]>) -> bool),
}

/// Evidence, the name of the kind, and a sentence on why it is not supported or what to use. The
/// first match wins, because many names of one kind occur in others.
const KINDS: &[(Sign, &str, &str)] = &[
    (Contains("_blocks.0.convs."), "the VAE of EasyAnimate", "use diffusers' AutoencoderKLMagvit"),
    (
        Fits(is_wan22),
        "the VAE of Wan 2.2 5B",
        "its shortcuts over time are missing here; use diffusers' AutoencoderKLWan",
    ),
    (All(&["decoder.22.bias"]), "TAEHV, a tiny video autoencoder", TAEHV),
    (
        Shape("taesd_encoder.0.weight", &[32, 3, 3, 3]),
        "the encoder of TAESANA, a tiny autoencoder of DC-AE's latents",
        TAEHV,
    ),
    (
        Shape("taesd_decoder.1.weight", &[256, 64, 3, 3]),
        "taeqi2_1, a tiny autoencoder of Qwen-Image 2.1",
        "use Qwen-Image 2.1's own VAE",
    ),
    (Contains("to_qkv_multiscale"), DC_AE, LINEAR),
    (Starts("encoder.project_in"), DC_AE, LINEAR),
    (Starts("encoder.stages."), DC_AE, LINEAR),
    (Starts("decoder.stages."), DC_AE, LINEAR),
    (Starts("student.dconv_encoder."), "Mage-VAE", "its decoder is a diffusion model of one step"),
    (Starts("decoder.conv_in_x_t."), "the diffusion decoder of LTX-2.5", "it is a diffusion model itself"),
    (Starts("decoder_unet."), "a ConsistencyDecoderVAE", "its decoder is a diffusion model; use SD 1.5's VAE"),
    (Starts("quantize."), "a VQ model", CODEBOOK),
    (Starts("vquantizer."), "stage A of Stable Cascade", CODEBOOK),
    (
        Starts("decoder.condition_encoder."),
        "an AsymmetricAutoencoderKL",
        "its decoder reads a mask; use diffusers' class",
    ),
    (Contains(".temporal_res_block."), SVD, ALL_FRAMES),
    (Contains(".time_stack."), SVD, ALL_FRAMES),
    (Starts("decoder.mid.block_1.mix_factor"), SVD, ALL_FRAMES),
    (Starts("decoder.time_conv_out."), SVD, ALL_FRAMES),
    (
        Starts("decoder.transformer_blocks."),
        "the VAE of MiniMax-H3",
        "its decoder is a transformer; use diffusers' class",
    ),
    (Starts("encoder.encoder.layer."), "an AutoencoderRAE", "its halves are transformers; use diffusers' class"),
    (Starts("decoder.up_blocks.3.conv."), HUNYUAN_IMAGE, GROUPS),
    (Starts("encoder.down_blocks.2.conv."), HUNYUAN_IMAGE, GROUPS),
    (Shape("decoder.up.0.upsample.conv.weight", &[4096, 1024, 3, 3]), HUNYUAN_IMAGE, GROUPS),
    (Shape("encoder.down.0.downsample.conv.weight", &[64, 128, 3, 3]), HUNYUAN_IMAGE, GROUPS),
    (Fits(is_hunyuan_image3), "the VAE of HunyuanImage 3", "its attention covers all frames"),
    (Starts("decoder.block_in."), MOCHI, NOBODY),
    (Contains("blocks.2.blocks.3.stack.5."), MOCHI, NOBODY),
    (Contains(".conv_s."), COSMOS, "its wavelets and attention over time are missing here; use diffusers' class"),
    (
        All(&["decoder.unpatcher3d.wavelets"]),
        COSMOS,
        "its wavelets and attention over time are missing here; use diffusers' class",
    ),
    (
        Starts("decoder.mid.block_1.norm1.conv_y."),
        "a KVAE of Kandinsky",
        "its norms read the latents; use diffusers' class",
    ),
    (Contains(".norm_layer."), "the VAE of CogVideoX", CHUNKS),
    (Contains(".temp_convs."), "the VAE of Allegro", "use diffusers' AutoencoderKLAllegro"),
    (Contains(".norm1.norm."), "VidTok", "use diffusers' AutoencoderVidTok"),
    (All(&["latents_mean", "latents_std"]), LTX, DELAYED),
    (Starts("per_channel_statistics."), LTX, DELAYED),
    (Starts("decoder.up_blocks.0.res_blocks."), LTX, DELAYED),
    (
        All(&["decoder.mid_block.resnets.0.conv1.conv.weight", "decoder.mid_block.resnets.0.norm1.gamma"]),
        HUNYUAN15,
        GROWING,
    ),
    (All(&["decoder.mid.block_1.conv1.conv.weight", "decoder.mid.block_1.norm1.gamma"]), HUNYUAN15, GROWING),
    (
        All(&["decoder.mid_block.resnets.0.conv1.conv.weight", "decoder.mid_block.resnets.0.norm1.weight"]),
        HUNYUAN,
        CHUNKS,
    ),
    (All(&["decoder.mid.block_1.conv1.conv.weight", "decoder.mid.block_1.norm1.weight"]), HUNYUAN, CHUNKS),
    (Contains(".conv.conv."), VIDEO, "use diffusers' class for it"),
];

const DC_AE: &str = "DC-AE (AutoencoderDC)";
const SVD: &str = "the temporal decoder of Stable Video Diffusion";
const HUNYUAN_IMAGE: &str = "the VAE of HunyuanImage 2.1";
const HUNYUAN15: &str = "the VAE of HunyuanVideo 1.5";
const HUNYUAN: &str = "the VAE of HunyuanVideo";
const MOCHI: &str = "the VAE of Mochi";
const COSMOS: &str = "the VAE of Cosmos 1";
const LTX: &str = "the VAE of LTX-Video or LTX-2";
const VIDEO: &str = "a video VAE (its convolutions are 3-D)";

const TAEHV: &str = "its blocks remember earlier frames; use the model's own VAE";
const LINEAR: &str = "its linear attention is missing here; use diffusers' AutoencoderDC";
const CODEBOOK: &str = "its latents are entries of a codebook; use diffusers' VQModel";
const ALL_FRAMES: &str = "it mixes all frames of a clip; use diffusers' AutoencoderKLTemporalDecoder";
const GROUPS: &str = "its shortcuts over groups of channels are missing here; use diffusers' AutoencoderKLHunyuanImage";
const NOBODY: &str = "use diffusers' AutoencoderKLMochi";
const CHUNKS: &str = "its norms cover several frames, so its result depends on how a clip is cut; use diffusers' class";
const DELAYED: &str =
    "its filters look at later frames; use diffusers' AutoencoderKLLTX2Video or AutoencoderKLLTXVideo";
const GROWING: &str = "its attention covers all earlier frames; use diffusers' AutoencoderKLHunyuanVideo15";

/// Checks that the tensors `inside` the VAE (name without prefix -> shape) are not of a known,
/// unsupported kind. The error is the message that names the kind.
pub(super) fn check(inside: &BTreeMap<&str, &[u64]>) -> Result<(), String> {
    let fits = |sign: &Sign| match sign {
        All(names) => names.iter().all(|name| inside.contains_key(name)),
        Starts(start) => inside.keys().any(|name| name.starts_with(start)),
        Contains(part) => inside.keys().any(|name| name.contains(part)),
        Shape(name, shape) => inside.get(name) == Some(shape),
        Fits(fits) => fits(inside),
    };
    let kind = KINDS.iter().find(|(sign, ..)| fits(sign)).map(|(_, kind, why)| (*kind, *why));
    match kind.or_else(|| is_other_video(inside).then_some((VIDEO, "use diffusers' class for it"))) {
        None => Ok(()),
        Some((kind, why)) => Err(format!(
            "not supported: looks like {kind}: {why}. AutoencoderKL, AutoencoderTiny and the VAEs of FLUX.2, Wan 2.1, Qwen-Image, Qwen-Image 2.1 and SeedVR are supported"
        )),
    }
}

/// True if the first layer of the decoder takes 32 channels and has time, without the names of a
/// causal convolution.
fn is_hunyuan_image3(inside: &BTreeMap<&str, &[u64]>) -> bool {
    matches!(inside.get("decoder.conv_in.weight"), Some([_, 32, 3, 3, 3]))
}

/// True if levels are nested, and filters reach over three frames. Those of Qwen-Image 2.1 do not.
fn is_wan22(inside: &BTreeMap<&str, &[u64]>) -> bool {
    const NESTED: [&str; 4] = [
        "decoder.upsamples.0.upsamples.",
        "encoder.downsamples.0.downsamples.",
        "decoder.up_blocks.0.upsampler.",
        "encoder.down_blocks.0.downsampler.",
    ];
    let nested = inside.keys().any(|name| NESTED.iter().any(|start| name.starts_with(start)));
    nested && inside.values().any(|shape| matches!(shape, [_, _, 3, 3, 3]))
}

/// True if most resnets with `AutoencoderKL`'s names have 3-D convolutions, and no tensor belongs
/// to `SeedVR` or Wan only.
fn is_other_video(inside: &BTreeMap<&str, &[u64]>) -> bool {
    let filters: Vec<_> =
        inside.iter().filter(|(name, _)| name.contains(".resnets.") && name.ends_with(".conv1.weight")).collect();
    let in_time = filters.iter().filter(|(_, shape)| shape.len() == 5).count();
    let seedvr = inside.iter().any(|(name, shape)| {
        name.contains(".upscale_conv.") || (name.ends_with(".downsamplers.0.conv.weight") && shape.len() == 5)
    });
    let wan = inside.keys().any(|name| name.ends_with(".gamma"));
    in_time * 2 > filters.len() && !seedvr && !wan
}
