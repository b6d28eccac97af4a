//! The tensor names of each network, in each code base that writes such files.

use crate::ordered::Map;

use super::Layout;
use super::dc;
use super::sign::Sign::{self, Fits, Starts};

/// The tensor names that one code base gives to one kind of network.
pub(super) struct Spelling {
    pub(super) layout: Layout,
    /// Name of the network in errors.
    pub(super) network: &'static str,
    /// Evidence for this spelling: any of these is enough.
    pub(super) signs: &'static [Sign],
    /// Starts of names that belong to the encoder, and to the decoder.
    pub(super) halves: [&'static [&'static str]; 2],
    /// Pairs of a pattern and the name used here; see `pattern`.
    pub(super) table: &'static [(&'static str, &'static str)],
}

/// Halves with usual names, and those with a convolution on either side of the latents.
const HALVES: [&[&str]; 2] = [&["encoder."], &["decoder."]];
const QUANTIZED_HALVES: [&[&str]; 2] = [&["encoder.", "quant_conv."], &["decoder.", "post_quant_conv."]];

/// All spellings. The first with a matching sign wins, because names of one occur in others.
pub(super) const SPELLINGS: &[Spelling] = &[
    Spelling {
        layout: Layout::Wan,
        network: "Wan's or Qwen-Image's",
        signs: &[Starts("decoder.middle."), Starts("encoder.middle.")],
        halves: [&["encoder.", "conv1."], &["decoder.", "conv2."]],
        table: WAN,
    },
    Spelling {
        layout: Layout::DcAe,
        network: "DC-AE's",
        signs: &[Starts("decoder.stages."), Starts("encoder.stages.")],
        halves: HALVES,
        table: dc::ORIGINAL,
    },
    Spelling {
        layout: Layout::Diffusers,
        network: "an AutoencoderDC's",
        signs: &[Fits(dc::ends_with_norms)],
        halves: HALVES,
        table: dc::DIFFUSERS,
    },
    Spelling {
        layout: Layout::Diffusers,
        network: "an AutoencoderKLHunyuanVideo15's",
        signs: &[
            Starts("decoder.mid_block.attentions.0.proj_out."),
            Starts("encoder.mid_block.attentions.0.proj_out."),
        ],
        halves: HALVES,
        table: HUNYUAN_VIDEO,
    },
    Spelling {
        layout: Layout::Ldm,
        network: "an AutoencoderKLHunyuanVideo15's",
        signs: &[Starts("decoder.mid.attn_1.norm.gamma"), Starts("encoder.mid.attn_1.norm.gamma")],
        halves: HALVES,
        table: HUNYUAN_VIDEO_LDM,
    },
    Spelling {
        layout: Layout::Diffusers,
        network: "an AutoencoderKLWan's",
        signs: &[
            Starts("decoder.mid_block.attentions.0.to_qkv."),
            Starts("encoder.mid_block.attentions.0.to_qkv."),
            Starts("decoder.mid_block.resnets.0.norm1.gamma"),
            Starts("encoder.mid_block.resnets.0.norm1.gamma"),
        ],
        halves: QUANTIZED_HALVES,
        table: WAN_DIFFUSERS,
    },
    Spelling {
        layout: Layout::Ltx,
        network: "LTX-2's",
        signs: &[Starts("decoder.up_blocks.0.res_blocks."), Starts("encoder.down_blocks.0.res_blocks.")],
        halves: HALVES,
        table: LTX,
    },
    Spelling {
        layout: Layout::Diffusers,
        network: "an AutoencoderKLLTX2Video's",
        signs: &[Starts("decoder.mid_block.resnets.0.conv1.conv."), Starts("encoder.mid_block.resnets.0.conv1.conv.")],
        halves: HALVES,
        table: LTX2_DIFFUSERS,
    },
    Spelling {
        layout: Layout::Taesd,
        network: "TAESD's",
        signs: &[Starts("taesd_decoder."), Starts("taesd_encoder.")],
        halves: [&["taesd_encoder."], &["taesd_decoder."]],
        table: TAESD,
    },
    Spelling {
        layout: Layout::Taesd,
        network: "TAESD's",
        // The first blocks of both halves: of TAESD, taeqi2_1 and TAEHV.
        signs: &[
            Starts("decoder.3.conv."),
            Starts("encoder.1.conv."),
            Starts("encoder.3.conv."),
            Starts("encoder.4.conv."),
        ],
        halves: HALVES,
        table: TAESD_HALVES,
    },
    Spelling {
        layout: Layout::Diffusers,
        network: "an AutoencoderTiny",
        signs: &[Starts("decoder.layers."), Starts("encoder.layers.")],
        halves: HALVES,
        table: TINY,
    },
    Spelling {
        layout: Layout::Diffusers,
        network: "an AutoencoderKLHunyuanImage",
        signs: &[Starts("decoder.up_blocks.0.norm1."), Starts("encoder.down_blocks.0.norm1.")],
        halves: HALVES,
        table: HUNYUAN_IMAGE,
    },
    Spelling {
        layout: Layout::Ldm,
        network: "an AutoencoderKLHunyuanImage",
        signs: &[Starts("decoder.up.0.upsample."), Fits(moves_pixels)],
        halves: HALVES,
        table: HUNYUAN_IMAGE_LDM,
    },
    Spelling {
        layout: Layout::Diffusers,
        network: "an AutoencoderKL",
        signs: &[Starts("decoder.up_blocks."), Starts("encoder.down_blocks.")],
        halves: QUANTIZED_HALVES,
        table: KL,
    },
    Spelling {
        layout: Layout::Ldm,
        network: "an AutoencoderKL",
        signs: &[Starts("decoder.up."), Starts("encoder.down.")],
        halves: QUANTIZED_HALVES,
        table: LDM,
    },
];

/// Names of diffusers' `AutoencoderKL` and `AutoencoderKLFlux2`, with both spellings of attention
/// that exist in files, and of `SeedVR`.
const KL: &[(&str, &str)] = &[
    ("@.;.!", "@.;.!"),
    ("@.conv_norm_out.!", "@.conv_norm_out.!"),
    ("@.mid_block.resnets.#.%.!", "@.mid_block.resnets.#.%.!"),
    ("@.mid_block.attentions.#.,.!", "@.mid_block.attentions.#.,.!"),
    ("@.mid_block.attentions.#.to_out.0.!", "@.mid_block.attentions.#.to_out.0.!"),
    ("encoder.down_blocks.#.resnets.#.%.!", "encoder.down_blocks.#.resnets.#.%.!"),
    ("encoder.down_blocks.#.downsamplers.0.conv.!", "encoder.down_blocks.#.downsamplers.0.conv.!"),
    ("decoder.up_blocks.#.resnets.#.%.!", "decoder.up_blocks.#.resnets.#.%.!"),
    ("decoder.up_blocks.#.upsamplers.0.conv.!", "decoder.up_blocks.#.upsamplers.0.conv.!"),
    ("decoder.up_blocks.#.upsamplers.0.upscale_conv.!", "decoder.up_blocks.#.upsamplers.0.upscale_conv.!"),
    ("quant_conv.!", "quant_conv.!"),
    ("post_quant_conv.!", "post_quant_conv.!"),
    ("bn.running_mean", "bn.running_mean"),
    ("bn.running_var", "bn.running_var"),
];

/// Names of the same network in the original LDM code. FLUX's `ae.safetensors`, A1111 and `ComfyUI`
/// use them, too.
const LDM: &[(&str, &str)] = &[
    ("@.;.!", "@.;.!"),
    ("@.norm_out.!", "@.conv_norm_out.!"),
    ("@.mid.block_1.%.!", "@.mid_block.resnets.0.%.!"),
    ("@.mid.block_2.%.!", "@.mid_block.resnets.1.%.!"),
    ("@.mid.attn_1.'.!", "@.mid_block.attentions.0.'.!"),
    ("encoder.down.#.block.#.%.!", "encoder.down_blocks.#.resnets.#.%.!"),
    ("encoder.down.#.downsample.conv.!", "encoder.down_blocks.#.downsamplers.0.conv.!"),
    ("decoder.up.^.block.#.%.!", "decoder.up_blocks.^.resnets.#.%.!"),
    ("decoder.up.^.upsample.conv.!", "decoder.up_blocks.^.upsamplers.0.conv.!"),
    ("quant_conv.!", "quant_conv.!"),
    ("post_quant_conv.!", "post_quant_conv.!"),
    // BFL's code of FLUX.2 puts these inside encoder and decoder.
    ("encoder.quant_conv.!", "quant_conv.!"),
    ("decoder.post_quant_conv.!", "post_quant_conv.!"),
    ("bn.running_mean", "bn.running_mean"),
    ("bn.running_var", "bn.running_var"),
];

/// Names of diffusers' `AutoencoderKLHunyuanImage`.
const HUNYUAN_IMAGE: &[(&str, &str)] = &[
    ("@.;.!", "@.;.!"),
    ("@.norm_out.!", "@.norm_out.!"),
    ("@.mid_block.resnets.#.%.!", "@.mid_block.resnets.#.%.!"),
    ("@.mid_block.attentions.#.+.!", "@.mid_block.attentions.#.+.!"),
    ("encoder.down_blocks.#.%.!", "encoder.down_blocks.#.%.!"),
    ("encoder.down_blocks.#.conv.!", "encoder.down_blocks.#.conv.!"),
    ("decoder.up_blocks.#.%.!", "decoder.up_blocks.#.%.!"),
    ("decoder.up_blocks.#.conv.!", "decoder.up_blocks.#.conv.!"),
];

/// Names of the same network in its own code, which `ComfyUI` uses, too. The decoder's levels are
/// in the order in which they run, unlike those of LDM.
const HUNYUAN_IMAGE_LDM: &[(&str, &str)] = &[
    ("@.;.!", "@.;.!"),
    ("@.norm_out.!", "@.norm_out.!"),
    ("@.mid.block_1.%.!", "@.mid_block.resnets.0.%.!"),
    ("@.mid.block_2.%.!", "@.mid_block.resnets.1.%.!"),
    ("@.mid.attn_1.+.!", "@.mid_block.attentions.0.+.!"),
    ("encoder.down.<.block.>.%.!", "encoder.down_blocks.#.%.!"),
    ("encoder.down.<.>.conv.!", "encoder.down_blocks.#.conv.!"),
    ("decoder.up.<.block.>.%.!", "decoder.up_blocks.#.%.!"),
    ("decoder.up.<.>.conv.!", "decoder.up_blocks.#.conv.!"),
];

/// Names of diffusers' `AutoencoderTiny`, with the branches of TAEF2 and the frames of TAEHV.
const TINY: &[(&str, &str)] = &[
    ("@.layers.#.!", "@.layers.#.!"),
    ("@.layers.#.conv.!", "@.layers.#.conv.!"),
    ("@.layers.#.conv.#.!", "@.layers.#.conv.#.!"),
    ("@.layers.#.pool.#.!", "@.layers.#.pool.#.!"),
];

/// Names of the same networks in TAESD's own code. There, the decoder's first layer is the one that
/// limits latents.
const TAESD: &[(&str, &str)] = &[
    ("taesd_encoder.#.!", "encoder.layers.#.!"),
    ("taesd_encoder.#.conv.#.!", "encoder.layers.#.conv.#.!"),
    ("taesd_encoder.#.pool.#.!", "encoder.layers.#.pool.#.!"),
    ("taesd_decoder.-.!", "decoder.layers.-.!"),
    ("taesd_decoder.-.conv.#.!", "decoder.layers.-.conv.#.!"),
    ("taesd_decoder.-.pool.#.!", "decoder.layers.-.pool.#.!"),
];

/// Names of TAESD's own class and of TAEHV's, with both halves in one file.
const TAESD_HALVES: &[(&str, &str)] = &[
    ("encoder.#.!", "encoder.layers.#.!"),
    ("encoder.#.conv.!", "encoder.layers.#.conv.!"),
    ("encoder.#.conv.#.!", "encoder.layers.#.conv.#.!"),
    ("encoder.#.pool.#.!", "encoder.layers.#.pool.#.!"),
    ("decoder.-.!", "decoder.layers.-.!"),
    ("decoder.-.conv.!", "decoder.layers.-.conv.!"),
    ("decoder.-.conv.#.!", "decoder.layers.-.conv.#.!"),
    ("decoder.-.pool.#.!", "decoder.layers.-.pool.#.!"),
];

/// Names of diffusers' `AutoencoderKLWan` and `AutoencoderKLQwenImage`.
const WAN_DIFFUSERS: &[(&str, &str)] = &[
    ("@.;.!", "@.;.!"),
    ("@.norm_out.gamma", "@.norm_out.gamma"),
    ("@.mid_block.resnets.#.%.?", "@.mid_block.resnets.#.%.?"),
    ("@.mid_block.attentions.#.norm.gamma", "@.mid_block.attentions.#.norm.gamma"),
    ("@.mid_block.attentions.#.to_qkv.!", "@.mid_block.attentions.#.to_qkv.!"),
    ("@.mid_block.attentions.#.proj.!", "@.mid_block.attentions.#.proj.!"),
    ("encoder.down_blocks.#.%.?", "encoder.down_blocks.#.%.?"),
    ("encoder.down_blocks.#.resample.1.!", "encoder.down_blocks.#.resample.1.!"),
    ("encoder.down_blocks.#.time_conv.!", "encoder.down_blocks.#.time_conv.!"),
    ("encoder.down_blocks.#.resnets.#.%.?", "encoder.down_blocks.#.resnets.#.%.?"),
    ("encoder.down_blocks.#.downsampler.resample.1.!", "encoder.down_blocks.#.downsampler.resample.1.!"),
    ("encoder.down_blocks.#.downsampler.time_conv.!", "encoder.down_blocks.#.downsampler.time_conv.!"),
    ("decoder.up_blocks.#.upsampler.resample.1.!", "decoder.up_blocks.#.upsampler.resample.1.!"),
    ("decoder.up_blocks.#.upsampler.time_conv.!", "decoder.up_blocks.#.upsampler.time_conv.!"),
    ("decoder.up_blocks.#.resnets.#.%.?", "decoder.up_blocks.#.resnets.#.%.?"),
    ("decoder.up_blocks.#.upsamplers.0.resample.1.!", "decoder.up_blocks.#.upsamplers.0.resample.1.!"),
    ("decoder.up_blocks.#.upsamplers.0.time_conv.!", "decoder.up_blocks.#.upsamplers.0.time_conv.!"),
    ("quant_conv.!", "quant_conv.!"),
    ("post_quant_conv.!", "post_quant_conv.!"),
];

/// Names of the same networks in Wan's own code, which `ComfyUI` uses, too.
const WAN: &[(&str, &str)] = &[
    ("@.conv1.!", "@.conv_in.!"),
    ("@.head.0.gamma", "@.norm_out.gamma"),
    ("@.head.2.!", "@.conv_out.!"),
    ("@.middle.0.residual.$.?", "@.mid_block.resnets.0.$.?"),
    ("@.middle.1.norm.gamma", "@.mid_block.attentions.0.norm.gamma"),
    ("@.middle.1.to_qkv.!", "@.mid_block.attentions.0.to_qkv.!"),
    ("@.middle.1.proj.!", "@.mid_block.attentions.0.proj.!"),
    ("@.middle.2.residual.$.?", "@.mid_block.resnets.1.$.?"),
    ("encoder.downsamples.#.residual.$.?", "encoder.down_blocks.#.$.?"),
    ("encoder.downsamples.#.shortcut.!", "encoder.down_blocks.#.conv_shortcut.!"),
    ("encoder.downsamples.#.resample.1.!", "encoder.down_blocks.#.resample.1.!"),
    ("encoder.downsamples.#.time_conv.!", "encoder.down_blocks.#.time_conv.!"),
    ("encoder.downsamples.#.downsamples.#.residual.$.?", "encoder.down_blocks.#.resnets.#.$.?"),
    ("encoder.downsamples.#.downsamples.#.shortcut.!", "encoder.down_blocks.#.resnets.#.conv_shortcut.!"),
    ("encoder.downsamples.#.downsamples.*.resample.1.!", "encoder.down_blocks.#.downsampler.resample.1.!"),
    ("encoder.downsamples.#.downsamples.*.time_conv.!", "encoder.down_blocks.#.downsampler.time_conv.!"),
    ("decoder.upsamples.#.upsamples.#.residual.$.?", "decoder.up_blocks.#.resnets.#.$.?"),
    ("decoder.upsamples.#.upsamples.#.shortcut.!", "decoder.up_blocks.#.resnets.#.conv_shortcut.!"),
    ("decoder.upsamples.#.upsamples.*.resample.1.!", "decoder.up_blocks.#.upsampler.resample.1.!"),
    ("decoder.upsamples.#.upsamples.*.time_conv.!", "decoder.up_blocks.#.upsampler.time_conv.!"),
    ("decoder.upsamples.&.residual.$.?", "decoder.up_blocks.&.$.?"),
    ("decoder.upsamples.&.shortcut.!", "decoder.up_blocks.&.conv_shortcut.!"),
    ("decoder.upsamples.~.resample.1.!", "decoder.up_blocks.~.upsamplers.0.resample.1.!"),
    ("decoder.upsamples.~.time_conv.!", "decoder.up_blocks.~.upsamplers.0.time_conv.!"),
    ("conv1.!", "quant_conv.!"),
    ("conv2.!", "post_quant_conv.!"),
];

/// Names of diffusers' `AutoencoderKLHunyuanVideo15`. Here, the module `conv` inside each causal
/// convolution is left out.
const HUNYUAN_VIDEO: &[(&str, &str)] = &[
    ("@.;.conv.!", "@.;.!"),
    ("@.norm_out.gamma", "@.norm_out.gamma"),
    ("@.mid_block.resnets.#.%.gamma", "@.mid_block.resnets.#.%.gamma"),
    ("@.mid_block.resnets.#.%.conv.!", "@.mid_block.resnets.#.%.!"),
    ("@.mid_block.attentions.#.norm.gamma", "@.mid_block.attentions.#.norm.gamma"),
    ("@.mid_block.attentions.#.proj_out.!", "@.mid_block.attentions.#.proj_out.!"),
    ("@.mid_block.attentions.#.+.!", "@.mid_block.attentions.#.+.!"),
    ("encoder.down_blocks.#.resnets.#.%.gamma", "encoder.down_blocks.#.resnets.#.%.gamma"),
    ("encoder.down_blocks.#.resnets.#.%.conv.!", "encoder.down_blocks.#.resnets.#.%.!"),
    ("encoder.down_blocks.#.downsamplers.0.conv.conv.!", "encoder.down_blocks.#.downsamplers.0.conv.!"),
    ("decoder.up_blocks.#.resnets.#.%.gamma", "decoder.up_blocks.#.resnets.#.%.gamma"),
    ("decoder.up_blocks.#.resnets.#.%.conv.!", "decoder.up_blocks.#.resnets.#.%.!"),
    ("decoder.up_blocks.#.upsamplers.0.conv.conv.!", "decoder.up_blocks.#.upsamplers.0.conv.!"),
];

/// Names of the same network in its own code, which `ComfyUI` uses, too. The decoder's levels are
/// in the order in which they run.
const HUNYUAN_VIDEO_LDM: &[(&str, &str)] = &[
    ("@.;.conv.!", "@.;.!"),
    ("@.norm_out.gamma", "@.norm_out.gamma"),
    ("@.mid.block_1.%.gamma", "@.mid_block.resnets.0.%.gamma"),
    ("@.mid.block_1.%.conv.!", "@.mid_block.resnets.0.%.!"),
    ("@.mid.block_2.%.gamma", "@.mid_block.resnets.1.%.gamma"),
    ("@.mid.block_2.%.conv.!", "@.mid_block.resnets.1.%.!"),
    ("@.mid.attn_1.norm.gamma", "@.mid_block.attentions.0.norm.gamma"),
    ("@.mid.attn_1.proj_out.!", "@.mid_block.attentions.0.proj_out.!"),
    ("@.mid.attn_1.+.!", "@.mid_block.attentions.0.+.!"),
    ("encoder.down.#.block.#.%.gamma", "encoder.down_blocks.#.resnets.#.%.gamma"),
    ("encoder.down.#.block.#.%.conv.!", "encoder.down_blocks.#.resnets.#.%.!"),
    ("encoder.down.#.downsample.conv.conv.!", "encoder.down_blocks.#.downsamplers.0.conv.!"),
    ("decoder.up.#.block.#.%.gamma", "decoder.up_blocks.#.resnets.#.%.gamma"),
    ("decoder.up.#.block.#.%.conv.!", "decoder.up_blocks.#.resnets.#.%.!"),
    ("decoder.up.#.upsample.conv.conv.!", "decoder.up_blocks.#.upsamplers.0.conv.!"),
];

/// Names of diffusers' `AutoencoderKLLTX2Video`. Here, the module `conv` inside each convolution is
/// left out.
const LTX2_DIFFUSERS: &[(&str, &str)] = &[
    ("@.;.conv.!", "@.;.!"),
    ("@.mid_block.resnets.#.%.conv.!", "@.mid_block.resnets.#.%.!"),
    ("encoder.down_blocks.#.resnets.#.%.conv.!", "encoder.down_blocks.#.resnets.#.%.!"),
    ("encoder.down_blocks.#.downsamplers.0.conv.conv.!", "encoder.down_blocks.#.downsamplers.0.conv.!"),
    ("decoder.up_blocks.#.resnets.#.%.conv.!", "decoder.up_blocks.#.resnets.#.%.!"),
    ("decoder.up_blocks.#.upsamplers.0.conv.conv.!", "decoder.up_blocks.#.upsamplers.0.conv.!"),
    ("latents_mean", "latents_mean"),
    ("latents_std", "latents_std"),
];

/// Names of the same network in LTX's own code, which `ComfyUI` uses, too.
const LTX: &[(&str, &str)] = &[
    ("@.;.conv.!", "@.;.!"),
    ("encoder.down_blocks.=.res_blocks.#.%.conv.!", "encoder.=.resnets.#.%.!"),
    ("encoder.down_blocks./.conv.conv.!", "encoder.down_blocks./.downsamplers.0.conv.!"),
    ("decoder.up_blocks.=.res_blocks.#.%.conv.!", "decoder.=.resnets.#.%.!"),
    ("decoder.up_blocks./.conv.conv.!", "decoder.up_blocks./.upsamplers.0.conv.!"),
    ("per_channel_statistics.mean-of-means", "latents_mean"),
    ("per_channel_statistics.std-of-means", "latents_std"),
];

/// True if most of the encoder's downsamplers change the number of channels: their convolutions
/// make those of a quarter of the pixels. In LDM they keep it.
fn moves_pixels(inside: &Map<&str, &[u64]>) -> bool {
    let filters = inside.iter().filter(|(name, _)| name.ends_with(".downsample.conv.weight"));
    let (changing, keeping) = filters.fold((0, 0), |(changing, keeping), (_, shape)| match shape {
        [made, read, ..] if made != read => (changing + 1, keeping),
        _ => (changing, keeping + 1),
    });
    changing > keeping
}
