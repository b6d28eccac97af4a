//! Recognises VAEs that are not an `AutoencoderKL` by tensors that only they have, to refuse them by name.

use std::collections::BTreeMap;

use self::Sign::{All, Contains, Starts};

/// What gives a kind of VAE away.
enum Sign {
    /// Tensors of these names are all there.
    All(&'static [&'static str]),
    /// The name of some tensor starts with this.
    Starts(&'static str),
    /// The name of some tensor contains this.
    Contains(&'static str),
}

/// Tell-tale -> what it is. The first row that fits wins: many names of one kind occur in others too.
const KINDS: &[(Sign, &str)] = &[
    (All(&["decoder.up_blocks.2.upsamplers.0.upscale_conv.weight"]), "SeedVR's video VAE"),
    (All(&["decoder.upsamples.0.upsamples.0.residual.2.weight"]), "the VAE of Wan 2.2 or Qwen-Image 2.1"),
    (All(&["decoder.middle.0.residual.0.gamma"]), "the VAE of Wan 2.1 or Qwen-Image (original names)"),
    (Starts("decoder.up_blocks.0.upsampler."), "the VAE of Wan 2.2 (diffusers names)"),
    (All(&["decoder.mid_block.attentions.0.to_qkv.weight"]), "the VAE of Wan or Qwen-Image (diffusers names)"),
    (All(&["decoder.22.bias"]), "TAEHV, a tiny video autoencoder"),
    (Starts("taesd_"), "TAESD, a tiny autoencoder (ComfyUI names)"),
    (Starts("decoder.layers."), "TAESD, a tiny autoencoder (diffusers names)"),
    (Starts("encoder.layers."), "TAESD, a tiny autoencoder (diffusers names)"),
    (All(&["1.weight", "19.weight"]), "the decoder of TAESD, a tiny autoencoder"),
    (All(&["0.weight", "14.weight"]), "the encoder of TAESD, a tiny autoencoder"),
    (Contains("to_qkv_multiscale"), "DC-AE (AutoencoderDC)"),
    (Starts("encoder.project_in"), "DC-AE (AutoencoderDC)"),
    (Starts("encoder.stages."), "DC-AE (AutoencoderDC)"),
    (Starts("bn.running_mean"), "the VAE of FLUX.2 (AutoencoderKLFlux2)"),
    (Starts("quantize."), "a VQ model"),
    (Starts("decoder.condition_encoder."), "an AsymmetricAutoencoderKL"),
    (Contains(".temporal_res_block."), "the temporal decoder of Stable Video Diffusion"),
    (Contains(".time_stack."), "the temporal decoder of Stable Video Diffusion"),
    (Starts("decoder.time_conv_out."), "the temporal decoder of Stable Video Diffusion"),
];

/// Complains if the tensors `inside` the VAE (name without prefix -> shape) are not of a kind this crate decodes.
pub(super) fn check(inside: &BTreeMap<&str, &[u64]>) -> Result<(), String> {
    let fits = |sign: &Sign| match sign {
        All(names) => names.iter().all(|name| inside.contains_key(name)),
        Starts(start) => inside.keys().any(|name| name.starts_with(start)),
        Contains(part) => inside.keys().any(|name| name.contains(part)),
    };
    if let Some((_, kind)) = KINDS.iter().find(|(sign, _)| fits(sign)) {
        return Err(format!("not supported: looks like {kind}; only AutoencoderKL is"));
    }
    // Hunyuan Video, LTX, Cosmos and others.
    match inside.get("decoder.conv_in.weight") {
        Some(shape) if shape.len() == 5 => {
            Err("not supported: looks like a video VAE (its convolutions are 3-D)".to_owned())
        }
        _ => Ok(()),
    }
}
