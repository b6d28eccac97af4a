//! Readers of config.json, one for each class of diffusers. Absent fields get the defaults of the
//! class.

use super::families::{dc, hunyuan_image, hunyuan_video, ltx2, qwen_image21, tiny_network, wan21};
use super::fields::{Fields, show};
use super::{
    AutoencoderConfig, Dc, DcBlock, DcLevel, DcNorm, Kl, Ltx2, Network, OwnLatents, PaddingMode, SizeChange, Tiny, Wan,
    invalid, single,
};
use crate::error::{Error, Result};
use crate::model::graph::Activation;

/// Reads the fields of one class.
type Reader = fn(&Fields<'_>) -> Result<AutoencoderConfig>;

/// Supported classes, by `_class_name`.
pub(super) const CLASSES: &[(&str, Reader)] = &[
    ("AutoencoderKL", autoencoder_kl),
    ("AsymmetricAutoencoderKL", asymmetric_autoencoder_kl),
    ("AutoencoderKLFlux2", autoencoder_kl_flux2),
    ("AutoencoderKLHunyuanImage", autoencoder_kl_hunyuan_image),
    ("AutoencoderTiny", autoencoder_tiny),
    ("AutoencoderKLQwenImage", autoencoder_kl_qwen_image),
    ("AutoencoderKLQwenImage21", autoencoder_kl_qwen_image21),
    ("AutoencoderKLWan", autoencoder_kl_wan),
    ("AutoencoderKLLTX2Video", autoencoder_kl_ltx2_video),
    ("AutoencoderKLHunyuanVideo15", autoencoder_kl_hunyuan_video15),
    ("AutoencoderDC", autoencoder_dc),
];

fn autoencoder_kl(fields: &Fields<'_>) -> Result<AutoencoderConfig> {
    let network = kl(fields, &[64], 1)?;
    Ok(AutoencoderConfig {
        scaling_factor: fields.number("scaling_factor")?.unwrap_or(0.18215),
        shift_factor: fields.number("shift_factor")?,
        latents_mean: fields.numbers("latents_mean")?,
        latents_std: fields.numbers("latents_std")?,
        force_upcast: fields.flag("force_upcast")?.unwrap_or(true),
        sample_size: Some(fields.first_whole("sample_size")?.unwrap_or(32)),
        ..rgb(fields, Network::Kl(network), "latent_channels", 4)?
    })
}

/// Reads the fields of the class whose halves have widths of their own. Its decoder works without
/// a mask.
fn asymmetric_autoencoder_kl(fields: &Fields<'_>) -> Result<AutoencoderConfig> {
    let list = |field| Ok::<_, Error>(fields.wholes(field)?.unwrap_or_else(|| vec![64]));
    let layers = |field| Ok::<_, Error>(fields.whole(field)?.unwrap_or(1));
    let (encoder, decoder) = (list("down_block_out_channels")?, list("up_block_out_channels")?);
    fields.all_are("down_block_types", "DownEncoderBlock2D", encoder.len())?;
    fields.all_are("up_block_types", "UpDecoderBlock2D", decoder.len())?;
    fields.all_are("act_fn", "silu", 1)?;
    let (layers_per_block, of_decoder) = (layers("layers_per_down_block")?, layers("layers_per_up_block")?);
    let network = Kl {
        decoder_block_out_channels: (decoder != encoder).then_some(decoder),
        block_out_channels: encoder,
        layers_per_block,
        decoder_layers_per_block: (of_decoder != layers_per_block).then_some(of_decoder),
        norm_num_groups: fields.whole("norm_num_groups")?.unwrap_or(32),
        mid_block_add_attention: true,
        use_quant_conv: true,
        use_post_quant_conv: true,
        has_shortcuts: false,
        padding_mode: PaddingMode::Zeros,
    };
    Ok(AutoencoderConfig {
        scaling_factor: fields.number("scaling_factor")?.unwrap_or(0.18215),
        sample_size: Some(fields.first_whole("sample_size")?.unwrap_or(32)),
        ..rgb(fields, Network::Kl(network), "latent_channels", 4)?
    })
}

fn autoencoder_kl_flux2(fields: &Fields<'_>) -> Result<AutoencoderConfig> {
    let network = kl(fields, &[128, 256, 512, 512], 2)?;
    let patch = fields.wholes("patch_size")?.unwrap_or_else(|| vec![2, 2]);
    let &[rows, columns] = patch.as_slice() else {
        return Err(invalid("patch_size", "two whole numbers", format!("{patch:?}")));
    };
    if rows != columns {
        return Err(invalid("patch_size", "squares", format!("{patch:?}")));
    }
    Ok(AutoencoderConfig {
        patch: rows,
        batch_norm_eps: Some(fields.number("batch_norm_eps")?.unwrap_or(1e-4)),
        force_upcast: fields.flag("force_upcast")?.unwrap_or(true),
        sample_size: Some(fields.first_whole("sample_size")?.unwrap_or(1024)),
        ..rgb(fields, Network::Kl(network), "latent_channels", 32)?
    })
}

/// Reads the fields of HunyuanImage 2.1's class, which has no defaults for its numbers.
fn autoencoder_kl_hunyuan_image(fields: &Fields<'_>) -> Result<AutoencoderConfig> {
    const NEEDED: &[&str] = &[
        "in_channels",
        "out_channels",
        "latent_channels",
        "block_out_channels",
        "layers_per_block",
        "spatial_compression_ratio",
        "sample_size",
        "scaling_factor",
    ];
    for field in NEEDED {
        if fields.get(field).is_none() {
            return Err(invalid(field, "a value, because the class has no default", "none"));
        }
    }
    // With other values, diffusers builds resnets that it cannot run.
    fields.only("downsample_match_channel", "true")?;
    fields.only("upsample_match_channel", "true")?;
    let mut config = hunyuan_image();
    if let Network::Kl(kl) = &mut config.network {
        kl.block_out_channels = fields.wholes("block_out_channels")?.unwrap_or_default();
        kl.layers_per_block = fields.whole("layers_per_block")?.unwrap_or_default();
    }
    config = AutoencoderConfig {
        scaling_factor: fields.number("scaling_factor")?.unwrap_or_default(),
        sample_size: fields.whole("sample_size")?,
        ..rgb(fields, config.network, "latent_channels", 0)?
    };
    // Sizes change between all levels.
    config.validate()?;
    fields.only("spatial_compression_ratio", &config.spatial_factor().to_string())?;
    Ok(config)
}

/// Reads the fields of HunyuanVideo 1.5's class.
fn autoencoder_kl_hunyuan_video15(fields: &Fields<'_>) -> Result<AutoencoderConfig> {
    // With other values, diffusers builds levels whose channels do not meet.
    fields.only("downsample_match_channel", "true")?;
    fields.only("upsample_match_channel", "true")?;
    let mut config = hunyuan_video();
    let Network::HunyuanVideo(hunyuan) = &mut config.network else { return Ok(config) };
    if let Some(channels) = fields.wholes("block_out_channels")? {
        hunyuan.block_out_channels = channels;
    }
    hunyuan.layers_per_block = fields.whole("layers_per_block")?.unwrap_or(hunyuan.layers_per_block);
    let ratio = fields.whole("temporal_compression_ratio")?.unwrap_or(4);
    if !ratio.is_power_of_two() {
        return Err(invalid("temporal_compression_ratio", "a power of two", ratio));
    }
    hunyuan.time_changes = ratio.ilog2();
    config = AutoencoderConfig {
        scaling_factor: fields.number("scaling_factor")?.unwrap_or(config.scaling_factor),
        sample_size: config.sample_size,
        ..rgb(fields, config.network, "latent_channels", 32)?
    };
    // Sizes change between all levels.
    config.validate()?;
    let (factor, stated) = (config.spatial_factor(), fields.whole("spatial_compression_ratio")?.unwrap_or(16));
    if stated != factor {
        return Err(invalid(
            "spatial_compression_ratio",
            format!("{factor}, as the size is halved between all levels"),
            stated,
        ));
    }
    Ok(config)
}

/// Reads the fields of DC-AE's class.
fn autoencoder_dc(fields: &Fields<'_>) -> Result<AutoencoderConfig> {
    let conv_act_fn = fields.text("decoder_conv_act_fn")?;
    let network = Dc {
        attention_head_dim: fields.whole("attention_head_dim")?.unwrap_or(32),
        encoder: dc_levels(fields, "encoder", &[2, 2, 2, 3, 3, 3])?,
        decoder: dc_levels(fields, "decoder", &[3; 6])?,
        unshuffles: fields.is_first_of("downsample_block_type", ["pixel_unshuffle", "conv"])?,
        shuffles: fields.is_first_of("upsample_block_type", ["pixel_shuffle", "interpolate"])?,
        encoder_out_shortcut: fields.flag("encoder_out_shortcut")?.unwrap_or(true),
        decoder_in_shortcut: fields.flag("decoder_in_shortcut")?.unwrap_or(true),
        decoder_conv_act_fn: function("decoder_conv_act_fn", conv_act_fn.as_deref().unwrap_or("relu"))?,
    };
    let config = AutoencoderConfig {
        in_channels: fields.whole("in_channels")?.unwrap_or(3),
        latent_channels: fields.whole("latent_channels")?.unwrap_or(32),
        scaling_factor: fields.number("scaling_factor")?.unwrap_or(1.0),
        ..dc(network)
    };
    Ok(AutoencoderConfig { out_channels: config.in_channels, ..config })
}

/// Reads the levels of a half of DC-AE. Where the class takes one value for all levels, so does
/// this.
fn dc_levels(fields: &Fields<'_>, half: &str, default_layers: &[u32]) -> Result<Vec<DcLevel>> {
    let field = |what: &str| format!("{half}_{what}");
    let channels = fields.wholes(&field("block_out_channels"))?.unwrap_or_else(|| vec![128, 256, 512, 512, 1024, 1024]);
    let count = channels.len();
    let layers = fields.wholes(&field("layers_per_block"))?.unwrap_or_else(|| default_layers.to_vec());
    let types = fields.each_text(&field("block_types"), "ResBlock", count)?;
    let scales = fields.lists(&field("qkv_multiscales"))?;
    let scales = scales.unwrap_or_else(|| [vec![Vec::new(); 3], vec![vec![5]; 3]].concat());
    let (mut norms, mut functions) = (vec!["rms_norm".to_owned(); count], vec!["silu".to_owned(); count]);
    if half == "decoder" {
        norms = fields.each_text("decoder_norm_types", "rms_norm", count)?;
        functions = fields.each_text("decoder_act_fns", "silu", count)?;
    }
    for (what, found) in [("layers_per_block", layers.len()), ("qkv_multiscales", scales.len())] {
        if found != count {
            return Err(invalid(&field(what), format!("{count} values, one for each level"), found));
        }
    }
    let level = |index: usize| {
        let layers = layers[index];
        let block = match (types[index].as_str(), norms[index].as_str()) {
            ("ResBlock" | "EfficientViTBlock", _) if layers == 0 => return Ok(DcLevel::EMPTY),
            ("ResBlock", name) => {
                DcBlock::Res { act_fn: function("decoder_act_fns", &functions[index])?, norm: norm(name)? }
            }
            ("EfficientViTBlock", "rms_norm") => DcBlock::EfficientVit { qkv_multiscales: scales[index].clone() },
            ("EfficientViTBlock", other) => {
                return Err(invalid("decoder_norm_types", "\"rms_norm\" for an EfficientViTBlock", other));
            }
            (other, _) => return Err(invalid(&field("block_types"), "\"ResBlock\" or \"EfficientViTBlock\"", other)),
        };
        Ok(DcLevel { channels: channels[index], layers, block })
    };
    (0..count).map(level).collect()
}

/// Returns the norm of this name, at the end of a `ResBlock`.
fn norm(name: &str) -> Result<DcNorm> {
    match name {
        "rms_norm" => Ok(DcNorm::Rms),
        "batch_norm" => Ok(DcNorm::Batch),
        other => Err(invalid("decoder_norm_types", "\"rms_norm\" or \"batch_norm\"", other)),
    }
}

/// Returns the function of this name.
fn function(field: &str, name: &str) -> Result<Activation> {
    match name {
        "silu" => Ok(Activation::Silu),
        "relu" => Ok(Activation::Relu),
        other => Err(invalid(field, "\"silu\" or \"relu\"", other)),
    }
}

fn autoencoder_tiny(fields: &Fields<'_>) -> Result<AutoencoderConfig> {
    fields.all_are("act_fn", "relu", 1)?;
    fields.all_are("upsample_fn", "nearest", 1)?;
    fields.only("upsampling_scaling_factor", "2")?;
    let list =
        |field, default: &[u32]| -> Result<Vec<u32>> { Ok(fields.wholes(field)?.unwrap_or_else(|| default.to_vec())) };
    // The class connects levels of one width only.
    let widths = |field| {
        let channels = list(field, &[64; 4])?;
        match channels.iter().find(|count| **count != channels[0]) {
            Some(other) => Err(invalid(field, format!("{} channels in every level", channels[0]), other)),
            None => Ok(channels),
        }
    };
    let network = Tiny {
        encoder_block_out_channels: widths("encoder_block_out_channels")?,
        decoder_block_out_channels: widths("decoder_block_out_channels")?,
        num_encoder_blocks: list("num_encoder_blocks", &[1, 3, 3, 3])?,
        num_decoder_blocks: list("num_decoder_blocks", &[3, 3, 3, 1])?,
        ..tiny_network()
    };
    Ok(AutoencoderConfig {
        scaling_factor: fields.number("scaling_factor")?.unwrap_or(1.0),
        shift_factor: Some(fields.number("shift_factor")?.unwrap_or(0.0)),
        // It uses the diffusion model's latents, and no field tells which model that is.
        own_latents: OwnLatents::Unknown,
        force_upcast: fields.flag("force_upcast")?.unwrap_or(false),
        ..rgb(fields, Network::Tiny(network), "latent_channels", 4)?
    })
}

fn autoencoder_kl_qwen_image(fields: &Fields<'_>) -> Result<AutoencoderConfig> {
    // Of images and of decoded images. 4 for Qwen-Image-Layered: red, green, blue and opacity.
    let channels = fields.whole("input_channels")?.unwrap_or(3);
    let config = AutoencoderConfig { in_channels: channels, out_channels: channels, ..wan(fields, wan21())? };
    Ok(match (fields.number("scaling_factor")?, fields.get("latents_mean")) {
        // Ming-Image's kind: one factor in place of statistics.
        (Some(scaling_factor), None) => {
            AutoencoderConfig { scaling_factor, latents_mean: None, latents_std: None, ..config }
        }
        _ => config,
    })
}

/// Reads the fields of Qwen-Image 2.1, which is for images: `scale_factor_temporal` is not used.
fn autoencoder_kl_qwen_image21(fields: &Fields<'_>) -> Result<AutoencoderConfig> {
    fields.only("is_residual", "true")?;
    wan(fields, qwen_image21())
}

fn autoencoder_kl_wan(fields: &Fields<'_>) -> Result<AutoencoderConfig> {
    let mut config = wan21();
    if let Network::Wan(wan) = &mut config.network {
        wan.is_residual = fields.flag("is_residual")?.unwrap_or(false);
    }
    wan(fields, config)
}

/// Reads the fields of a network like Wan's. Absent ones are those of `family`.
fn wan(fields: &Fields<'_>, family: AutoencoderConfig) -> Result<AutoencoderConfig> {
    fields.only("attn_scales", "[]")?;
    let Network::Wan(known) = &family.network else { return Ok(family) };
    if !(known.is_residual && known.is_video) {
        fields.only("patch_size", "1")?;
    }
    let patch_size = fields.whole("patch_size")?.unwrap_or(known.patch_size);
    let base_dim = fields.whole("base_dim")?.unwrap_or(known.base_dim);
    // In Wan2.1-VAE-upscale2x, diffusers returns the four pixels that one becomes as channels.
    let channels = |field, known: u32| Ok::<u32, Error>(fields.whole(field)?.unwrap_or(known));
    let made = channels("out_channels", family.out_channels)?;
    let doubles = !known.is_residual && made == channels("in_channels", family.in_channels)?.saturating_mul(4);
    let upscale = if doubles { 2 } else { 1 };
    let absent = if known.is_video { base_dim } else { known.decoder_base_dim };
    let network = Wan {
        base_dim,
        decoder_base_dim: fields.whole_or("decoder_base_dim", base_dim, absent)?,
        dim_mult: fields.wholes("dim_mult")?.unwrap_or_else(|| known.dim_mult.clone()),
        num_res_blocks: fields.whole("num_res_blocks")?.unwrap_or(known.num_res_blocks),
        temperal_downsample: fields.flags("temperal_downsample")?.unwrap_or_else(|| known.temperal_downsample.clone()),
        is_residual: known.is_residual,
        is_video: known.is_video,
        patch_size,
        upscale,
    };
    Ok(AutoencoderConfig {
        in_channels: of_pixel(fields, "in_channels", patch_size)?.unwrap_or(family.in_channels),
        out_channels: of_pixel(fields, "out_channels", patch_size * upscale)?.unwrap_or(family.out_channels),
        latent_channels: fields.whole("z_dim")?.unwrap_or(family.latent_channels),
        latents_mean: fields.numbers("latents_mean")?.or(family.latents_mean),
        latents_std: fields.numbers("latents_std")?.or(family.latents_std),
        network: Network::Wan(network),
        ..family
    })
}

/// Reads a number of channels that hold squares of pixels. Returns the channels of one pixel.
fn of_pixel(fields: &Fields<'_>, field: &str, patch_size: u32) -> Result<Option<u32>> {
    let Some(channels) = fields.whole(field)? else { return Ok(None) };
    let square = patch_size.saturating_mul(patch_size);
    if square > 0 && channels.is_multiple_of(square) {
        return Ok(Some(channels / square));
    }
    Err(invalid("patch_size", format!("a side whose square divides {field} ({channels})"), patch_size))
}

/// Reads the fields of LTX-2's class. Its lists for the decoder's levels are in the encoder's
/// order, highest resolution first, except `upsample_type`.
fn autoencoder_kl_ltx2_video(fields: &Fields<'_>) -> Result<AutoencoderConfig> {
    fields.only("timestep_conditioning", "false")?;
    fields.only("patch_size_t", "1")?;
    fields.only("encoder_causal", "true")?;
    if fields.flag("decoder_causal")? != Some(false) {
        return Err(invalid("decoder_causal", "false", "true, which is the default of the class"));
    }
    fields.only("encoder_spatial_padding_mode", "\"zeros\"")?;
    if let Some(other) =
        fields.number("scaling_factor")?.filter(|factor| single(*factor).to_bits() != 1.0_f32.to_bits())
    {
        return Err(invalid("scaling_factor", "1", other));
    }
    let known = Ltx2::published();
    let wholes =
        |field, known: &[u32]| -> Result<Vec<u32>> { Ok(fields.wholes(field)?.unwrap_or_else(|| known.to_vec())) };
    let reversed = |values: Vec<u32>| values.into_iter().rev().collect::<Vec<u32>>();
    let block_out_channels = wholes("block_out_channels", &known.block_out_channels)?;
    let decoder = wholes("decoder_block_out_channels", &[256, 512, 1024])?;
    let (levels, decoder_levels) = (block_out_channels.len(), decoder.len());
    fields.all_are("down_block_types", "LTX2VideoDownBlock3D", levels)?;
    for (field, value, count) in [
        ("spatio_temporal_scaling", true, levels),
        ("decoder_spatio_temporal_scaling", true, decoder_levels),
        ("decoder_inject_noise", false, decoder_levels + 1),
    ] {
        if fields.each_flag(field, count)?.is_some_and(|found| found != vec![value; count]) {
            let found = fields.get(field).map_or(String::new(), show);
            return Err(invalid(field, format!("{count} times {value}"), found));
        }
    }
    let residual = fields.each_flag("upsample_residual", decoder_levels)?;
    let residual = residual.unwrap_or_else(|| known.upsample_residual.clone());
    let network = Ltx2 {
        layers_per_block: wholes("layers_per_block", &known.layers_per_block)?,
        downsample: size_changes(fields, "downsample_type")?.unwrap_or(known.downsample),
        decoder_layers_per_block: reversed(wholes("decoder_layers_per_block", &[5; 4])?),
        upsample: size_changes(fields, "upsample_type")?.unwrap_or(known.upsample),
        upsample_factor: reversed(wholes("upsample_factor", &[2; 3])?),
        upsample_residual: residual.into_iter().rev().collect(),
        patch_size: fields.whole("patch_size")?.unwrap_or(4),
        decoder_reflects: fields.reflects("decoder_spatial_padding_mode")?.unwrap_or(true),
        block_out_channels,
        decoder_block_out_channels: reversed(decoder),
    };
    Ok(AutoencoderConfig {
        in_channels: fields.whole("in_channels")?.unwrap_or(3),
        out_channels: fields.whole("out_channels")?.unwrap_or(3),
        latent_channels: fields.whole("latent_channels")?.unwrap_or(128),
        network: Network::Ltx2(network),
        ..ltx2()
    })
}

/// Reads a list of size changes.
fn size_changes(fields: &Fields<'_>, field: &str) -> Result<Option<Vec<SizeChange>>> {
    let Some(names) = fields.texts(field)? else { return Ok(None) };
    let change = |name: &String| match name.as_str() {
        "spatial" => Ok(SizeChange::SPACE),
        "temporal" => Ok(SizeChange::TIME),
        "spatiotemporal" => Ok(SizeChange::BOTH),
        other => Err(invalid(field, "\"spatial\", \"temporal\" or \"spatiotemporal\"", other)),
    };
    names.iter().map(change).collect::<Result<_>>().map(Some)
}

/// Reads the fields of a network like `AutoencoderKL`'s.
fn kl(fields: &Fields<'_>, default_channels: &[u32], default_layers: u32) -> Result<Kl> {
    fields.all_are("act_fn", "silu", 1)?;
    let block_out_channels = fields.wholes("block_out_channels")?.unwrap_or_else(|| default_channels.to_vec());
    fields.all_are("down_block_types", "DownEncoderBlock2D", block_out_channels.len())?;
    fields.all_are("up_block_types", "UpDecoderBlock2D", block_out_channels.len())?;
    Ok(Kl {
        block_out_channels,
        decoder_block_out_channels: fields.wholes("decoder_block_out_channels")?,
        layers_per_block: fields.whole("layers_per_block")?.unwrap_or(default_layers),
        decoder_layers_per_block: None,
        norm_num_groups: fields.whole("norm_num_groups")?.unwrap_or(32),
        mid_block_add_attention: fields.flag("mid_block_add_attention")?.unwrap_or(true),
        use_quant_conv: fields.flag("use_quant_conv")?.unwrap_or(true),
        use_post_quant_conv: fields.flag("use_post_quant_conv")?.unwrap_or(true),
        has_shortcuts: false,
        padding_mode: PaddingMode::Zeros,
    })
}

/// Reads the fields that all classes share: channels of image and latents.
fn rgb(fields: &Fields<'_>, network: Network, latents: &str, default: u32) -> Result<AutoencoderConfig> {
    Ok(AutoencoderConfig {
        in_channels: fields.whole("in_channels")?.unwrap_or(3),
        out_channels: fields.whole("out_channels")?.unwrap_or(3),
        ..AutoencoderConfig::new(network, fields.whole(latents)?.unwrap_or(default))
    })
}
