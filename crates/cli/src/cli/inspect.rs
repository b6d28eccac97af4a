//! `wgvae inspect`.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wgvae::config::{AutoencoderConfig, DcBlock, DcLevel, DcNorm, Network, OwnLatents};
use wgvae::files::LatentScale;
use wgvae::model::blocks::Part;
use wgvae::model::networks::{tensors_of_decoder, tensors_of_encoder};
use wgvae::{Bytes, Checkpoint, Direction, Error, LatentSpace, Named, Result};

use super::{InspectArgs, ModelArgs, VariantArg, hub};

/// Reads the headers of a model's files.
pub(super) async fn run(args: &InspectArgs) -> Result<String> {
    let ModelArgs { model, variant, family, border } = &args.model;
    let local = match hub::find(model, VariantArg::variant(*variant))? {
        Some(found) if found.files().iter().any(|file| !file.kept) => {
            let text =
                if args.json { super::to_json(&hub::json_of(model, &found)) } else { hub::text_of(model, &found) };
            return Ok(text);
        }
        Some(found) => hub::download(model, found)?,
        None => model.clone(),
    };
    let checkpoint = border.set(super::open_local(local, family.as_deref(), *variant).await?)?;
    let images = both(&checkpoint, false)?;
    let clips = if checkpoint.config().has_time() { Some(both(&checkpoint, true)?) } else { None };
    Ok(if args.json {
        super::to_json(&facts(&checkpoint, &images, clips.as_ref()))
    } else {
        text(&checkpoint, &images, clips.as_ref())
    })
}

/// Problems that prevent a decode or an encode.
#[derive(Debug, Default)]
struct Problems {
    /// Names of missing tensors.
    missing: Vec<String>,
    /// Error for a tensor that has a wrong shape or type, or is unknown.
    unusable: Option<String>,
}

impl Problems {
    fn none(&self) -> bool {
        self.missing.is_empty() && self.unusable.is_none()
    }
}

/// Returns the problems of a decode and of an encode, of images or of `clips`.
fn both(checkpoint: &Checkpoint, clips: bool) -> Result<[Problems; 2]> {
    Ok([problems(checkpoint, Direction::Decode, clips)?, problems(checkpoint, Direction::Encode, clips)?])
}

fn problems(checkpoint: &Checkpoint, direction: Direction, clips: bool) -> Result<Problems> {
    let parts: &[Part] = if clips { &[Part::First, Part::Next] } else { &[Part::Image] };
    let check = |tensors: fn(&AutoencoderConfig, Part) -> BTreeMap<String, Vec<u64>>| {
        let all: BTreeMap<_, _> = parts.iter().flat_map(|part| tensors(checkpoint.config(), *part)).collect();
        checkpoint.check(all.iter().map(|(name, shape)| (name.as_str(), shape.as_slice())))
    };
    let checked = match direction {
        Direction::Decode => check(tensors_of_decoder),
        Direction::Encode => checkpoint.check_encoder_names().and_then(|()| check(tensors_of_encoder)),
    };
    match checked {
        Ok(()) => Ok(Problems::default()),
        Err(Error::MissingTensors { tensors, .. }) => Ok(Problems { missing: tensors, unusable: None }),
        Err(error @ (Error::Tensor { .. } | Error::Format { .. })) => {
            Ok(Problems { missing: Vec::new(), unusable: Some(error.to_string()) })
        }
        Err(other) => Err(other),
    }
}

fn facts(checkpoint: &Checkpoint, [decode, encode]: &[Problems; 2], clips: Option<&[Problems; 2]>) -> Value {
    let mut facts = checkpoint.facts();
    facts["missing"] = json!(decode.missing);
    facts["unusable"] = json!(decode.unusable);
    facts["can_decode"] = json!(decode.none());
    facts["missing_to_encode"] = json!(encode.missing);
    facts["unusable_to_encode"] = json!(encode.unusable);
    facts["can_encode"] = json!(encode.none());
    if let Some([decode, encode]) = clips {
        facts["clips"] = json!({
            "missing_to_decode": decode.missing,
            "unusable_to_decode": decode.unusable,
            "can_decode": decode.none(),
            "missing_to_encode": encode.missing,
            "unusable_to_encode": encode.unusable,
            "can_encode": encode.none(),
        });
    }
    facts
}

fn text(checkpoint: &Checkpoint, [decode, encode]: &[Problems; 2], clips: Option<&[Problems; 2]>) -> String {
    let config = checkpoint.config();
    let parameters = checkpoint.parameters();
    let types: Vec<String> =
        checkpoint.element_types().iter().map(|(dtype, count)| format!("{count} of {dtype}")).collect();
    let mut rows = vec![("model", checkpoint.name().to_owned())];
    rows.extend(checkpoint.files().map(|(name, bytes)| ("file", format!("{name}, {}", Bytes(bytes)))));
    rows.extend([
        ("names", format!("{} spelling", checkpoint.layout())),
        ("network", config.network.name().to_owned()),
        ("latents", latents_text(config)),
    ]);
    rows.extend(image_text(config).map(|text| ("images", text)));
    rows.extend([("scale of latents", scale_text(checkpoint.scale(), config))]);
    rows.extend(own_text(config).map(|text| ("the VAE's own latents", text)));
    rows.extend(network_rows(&config.network));
    rows.extend([
        ("tensors", types.join(", ")),
        (
            "parameters",
            format!("{} (decoder {}, encoder {})", parameters.total, parameters.decoder, parameters.encoder),
        ),
        ("missing for a decode", missing_text(checkpoint.has_decoder(), "decoder", decode)),
        ("missing for an encode", missing_text(checkpoint.has_encoder(), "encoder", encode)),
    ]);
    if let Some([decode, encode]) = clips {
        rows.extend([
            ("video: missing to decode", missing_text(checkpoint.has_decoder(), "decoder", decode)),
            ("video: missing to encode", missing_text(checkpoint.has_encoder(), "encoder", encode)),
        ]);
    }
    let width = rows.iter().map(|(name, _)| name.len() + 2).fold(26, usize::max);
    rows.iter().map(|(name, value)| format!("{name:<width$}{value}\n")).collect()
}

/// Describes the images, if they are not red, green and blue.
fn image_text(config: &AutoencoderConfig) -> Option<String> {
    (config.in_channels.max(config.out_channels) == 4).then(|| "4 channels: red, green, blue and opacity".to_owned())
}

fn latents_text(config: &AutoencoderConfig) -> String {
    let describe = |unscaled| {
        let (encoded, decoded) = (config.latent_factor(unscaled), config.decoded_factor(unscaled));
        let decoded = if decoded == encoded { String::new() } else { format!(", {decoded} in a decode") };
        format!("{} channels, {encoded} pixels a side each{decoded}", config.channels(unscaled))
    };
    if config.patch == 1 {
        describe(LatentSpace::Vae)
    } else {
        format!("{} (the VAE's own: {})", describe(LatentSpace::Model), describe(LatentSpace::Vae))
    }
}

/// Describes the VAE's own latents, for a network that does not take them as they are.
fn own_text(config: &AutoencoderConfig) -> Option<String> {
    match config.own_latents {
        OwnLatents::OfNetwork => None,
        OwnLatents::StandIn { scaling_factor, shift_factor } => Some(format!(
            "the latents of the VAE it stands in for, with factor {scaling_factor} and shift {shift_factor}"
        )),
        OwnLatents::Normalised { .. } => {
            Some("the latents of the VAE it stands in for, with a mean and a deviation for each channel".to_owned())
        }
        OwnLatents::Unknown => config.check_own_latents().err().map(|error| format!("unknown: {error}")),
    }
}

/// Returns the rows that only one kind of network has.
fn network_rows(network: &Network) -> Vec<(&'static str, String)> {
    let yes = |flag: bool| if flag { "yes" } else { "no" }.to_owned();
    match network {
        Network::Kl(kl) => vec![
            ("levels of the encoder", levels_text(&kl.block_out_channels, kl.layers_per_block)),
            ("levels of the decoder", levels_text(kl.decoder_channels(), kl.decoder_resnets())),
            ("norm groups", kl.norm_num_groups.to_string()),
            ("attention in the middle", yes(kl.mid_block_add_attention)),
            ("quant_conv", yes(kl.use_quant_conv)),
            ("post_quant_conv", yes(kl.use_post_quant_conv)),
            ("beyond the borders", kl.padding_mode.name().to_owned()),
        ],
        Network::Tiny(tiny) => vec![
            ("channels of the encoder", format!("{:?}", tiny.encoder_block_out_channels)),
            ("channels of the decoder", format!("{:?}", tiny.decoder_block_out_channels)),
            ("blocks of the encoder", format!("{:?}", tiny.num_encoder_blocks)),
            ("blocks of the decoder", format!("{:?}", tiny.num_decoder_blocks)),
            ("norms in the middle", yes(tiny.use_midblock_gn)),
            ("pixels in channels", format!("{0}x{0}", tiny.patch_size)),
            ("blocks remember a frame", yes(tiny.is_video())),
        ],
        Network::Wan(wan) => vec![
            ("levels of the encoder", levels_text(&wan.channels(), wan.num_res_blocks)),
            ("levels of the decoder", levels_text(&wan.decoder_channels(), wan.num_res_blocks + 1)),
            ("shortcuts around levels", yes(wan.is_residual)),
            ("filters over frames", yes(wan.is_video)),
            ("pixels in channels", format!("{0}x{0}", wan.patch_size)),
        ],
        Network::Ltx2(ltx2) => vec![
            ("channels of the encoder", format!("{:?}", ltx2.block_out_channels)),
            ("channels of the decoder", format!("{:?}", ltx2.decoder_block_out_channels)),
            ("resnets of the encoder", format!("{:?}", ltx2.layers_per_block)),
            ("resnets of the decoder", format!("{:?}", ltx2.decoder_layers_per_block)),
            ("shortcuts around size changes", yes(ltx2.upsample_residual.contains(&true))),
            ("mirrored borders", yes(ltx2.decoder_reflects)),
            ("pixels in channels", format!("{0}x{0}", ltx2.patch_size)),
        ],
        Network::HunyuanVideo(hunyuan) => vec![
            ("levels of the encoder", levels_text(&hunyuan.block_out_channels, hunyuan.layers_per_block)),
            ("levels of the decoder", levels_text(&hunyuan.block_out_channels, hunyuan.layers_per_block + 1)),
            ("size changes over time", hunyuan.time_changes.to_string()),
        ],
        Network::Dc(dc) => vec![
            ("levels of the encoder", dc_levels_text(&dc.encoder)),
            ("levels of the decoder", dc_levels_text(&dc.decoder)),
            ("channels of a head", dc.attention_head_dim.to_string()),
            (
                "sizes change by moving pixels",
                format!("{} (encoder), {} (decoder)", yes(dc.unshuffles), yes(dc.shuffles)),
            ),
            (
                "shortcuts next to the latents",
                format!("{} (encoder), {} (decoder)", yes(dc.encoder_out_shortcut), yes(dc.decoder_in_shortcut)),
            ),
        ],
        Network::SeedVr(seedvr) => vec![
            ("levels of the encoder", levels_text(&seedvr.block_out_channels, seedvr.layers_per_block)),
            ("levels of the decoder", levels_text(&seedvr.block_out_channels, seedvr.layers_per_block + 1)),
            ("norm groups", seedvr.norm_num_groups.to_string()),
        ],
    }
}

fn dc_levels_text(levels: &[DcLevel]) -> String {
    let text = |level: &DcLevel| {
        let (kind, norm) = match &level.block {
            _ if level.layers == 0 => return "none".to_owned(),
            DcBlock::Res { norm: DcNorm::Batch, .. } => ("ResBlock", " with batch norms"),
            DcBlock::Res { norm: DcNorm::Rms, .. } => ("ResBlock", ""),
            DcBlock::EfficientVit { .. } => ("EfficientViTBlock", ""),
        };
        format!("{} x {kind} of {}{norm}", level.layers, level.channels)
    };
    levels.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn levels_text(channels: &[u32], resnets: u32) -> String {
    format!("{channels:?} channels, {resnets} resnets each")
}

fn scale_text(scale: &LatentScale, config: &AutoencoderConfig) -> String {
    match scale {
        LatentScale::Known { from } => {
            let mean = match (&config.latents_mean, config.batch_norm_eps) {
                (_, Some(_)) => ", with mean and deviation of each channel by the batch norm among the weights",
                (Some(_), None) => ", with mean and deviation of each channel",
                (None, None) => "",
            };
            format!("factor {}, shift {}{mean} (from {from})", config.scaling_factor, config.shift())
        }
        LatentScale::Unknown { candidates } if candidates.is_empty() => {
            "unknown: no published model has these shapes; put its config.json beside the weights or use --unscaled"
                .to_owned()
        }
        LatentScale::Unknown { candidates } => {
            format!("unknown: name it with --family, one of {}", candidates.join(", "))
        }
    }
}

fn missing_text(has_half: bool, half: &str, problems: &Problems) -> String {
    match (&problems.unusable, problems.missing.as_slice()) {
        (Some(unusable), _) => unusable.clone(),
        (None, []) => "nothing".to_owned(),
        (None, _) if !has_half => format!("the {half}: there is none in this model"),
        (None, missing) => format!("{} tensors: {}", missing.len(), missing.join(", ")),
    }
}
