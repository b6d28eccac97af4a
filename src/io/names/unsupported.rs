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

/// Pairs of evidence and the name of the kind. The first match wins, because many names of one kind
/// occur in others.
const KINDS: &[(Sign, &str)] = &[
    (Fits(is_wan22), "the VAE of Wan 2.2 5B"),
    (All(&["decoder.22.bias"]), "TAEHV, a tiny video autoencoder"),
    (Shape("taesd_encoder.0.weight", &[32, 3, 3, 3]), "the encoder of TAESANA, a tiny autoencoder of DC-AE's latents"),
    (Contains("to_qkv_multiscale"), "DC-AE (AutoencoderDC)"),
    (Starts("encoder.project_in"), "DC-AE (AutoencoderDC)"),
    (Starts("encoder.stages."), "DC-AE (AutoencoderDC)"),
    (Starts("decoder.stages."), "DC-AE (AutoencoderDC)"),
    (Starts("quantize."), "a VQ model"),
    (Starts("decoder.condition_encoder."), "an AsymmetricAutoencoderKL"),
    (Contains(".temporal_res_block."), "the temporal decoder of Stable Video Diffusion"),
    (Contains(".time_stack."), "the temporal decoder of Stable Video Diffusion"),
    (Starts("decoder.time_conv_out."), "the temporal decoder of Stable Video Diffusion"),
    // Hunyuan Video, LTX, Cosmos and others.
    (Contains(".conv.conv."), "a video VAE (its convolutions are 3-D)"),
];

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
    let kind = KINDS.iter().find(|(sign, _)| fits(sign)).map(|(_, kind)| *kind);
    match kind.or_else(|| is_other_video(inside).then_some("a video VAE (its convolutions are 3-D)")) {
        None => Ok(()),
        Some(kind) => Err(format!(
            "not supported: looks like {kind}; AutoencoderKL, AutoencoderTiny and the VAEs of FLUX.2, Wan 2.1, Qwen-Image, Qwen-Image 2.1 and SeedVR are"
        )),
    }
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
