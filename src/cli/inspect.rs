//! `wgvae inspect`.

use serde_json::{Value, json};
use wgvae::{AutoencoderConfig, Bytes, Checkpoint, Error, LatentScale, Result};

use super::InspectArgs;

/// Reads the headers of a model's files.
pub(super) async fn run(args: &InspectArgs) -> Result<String> {
    let checkpoint = args.model.open().await?;
    let problems = problems(&checkpoint)?;
    Ok(if args.json { super::to_json(&facts(&checkpoint, &problems)) } else { text(&checkpoint, &problems) })
}

/// What stands in the way of a decode.
#[derive(Debug, Default)]
struct Problems {
    /// Tensors that are not there.
    missing: Vec<String>,
    /// A tensor of a wrong shape or type.
    unusable: Option<String>,
}

fn problems(checkpoint: &Checkpoint) -> Result<Problems> {
    match wgvae::check_decoder(checkpoint) {
        Ok(()) => Ok(Problems::default()),
        Err(Error::MissingTensors { tensors, .. }) => Ok(Problems { missing: tensors, unusable: None }),
        Err(error @ Error::Tensor { .. }) => Ok(Problems { missing: Vec::new(), unusable: Some(error.to_string()) }),
        Err(other) => Err(other),
    }
}

fn facts(checkpoint: &Checkpoint, problems: &Problems) -> Value {
    let config = checkpoint.config();
    let parameters = checkpoint.parameters();
    let types: serde_json::Map<String, Value> =
        checkpoint.element_types().into_iter().map(|(dtype, count)| (dtype.to_string(), json!(count))).collect();
    let files: Vec<Value> = checkpoint.files().map(|(name, bytes)| json!({ "name": name, "bytes": bytes })).collect();
    json!({
        "model": checkpoint.name(),
        "files": files,
        "layout": checkpoint.layout().to_string(),
        "scale": scale_json(checkpoint.scale()),
        "config": config_json(config),
        "tensors": checkpoint.names().count(),
        "element_types": types,
        "parameters": { "encoder": parameters.encoder, "decoder": parameters.decoder, "total": parameters.total },
        "encoder": checkpoint.has_encoder(),
        "missing": problems.missing,
        "unusable": problems.unusable,
        "can_decode": problems.missing.is_empty() && problems.unusable.is_none(),
    })
}

fn scale_json(scale: &LatentScale) -> Value {
    match scale {
        LatentScale::Known { from } => json!({ "known": true, "from": from }),
        LatentScale::Unknown { candidates } => json!({ "known": false, "candidates": candidates }),
    }
}

fn config_json(config: &AutoencoderConfig) -> Value {
    json!({
        "out_channels": config.out_channels,
        "latent_channels": config.latent_channels,
        "spatial_factor": config.spatial_factor(),
        "block_out_channels": config.block_out_channels,
        "layers_per_block": config.layers_per_block,
        "norm_num_groups": config.norm_num_groups,
        "mid_block_add_attention": config.mid_block_add_attention,
        "use_post_quant_conv": config.use_post_quant_conv,
        "scaling_factor": config.scaling_factor,
        "shift_factor": config.shift_factor,
        "latents_mean": config.latents_mean,
        "latents_std": config.latents_std,
        "force_upcast": config.force_upcast,
        "sample_size": config.sample_size,
    })
}

fn text(checkpoint: &Checkpoint, problems: &Problems) -> String {
    let config = checkpoint.config();
    let parameters = checkpoint.parameters();
    let yes = |flag: bool| if flag { "yes" } else { "no" };
    let types: Vec<String> =
        checkpoint.element_types().iter().map(|(dtype, count)| format!("{count} of {dtype}")).collect();
    let mut rows = vec![("model", checkpoint.name().to_owned())];
    rows.extend(checkpoint.files().map(|(name, bytes)| ("file", format!("{name}, {}", Bytes(bytes)))));
    rows.extend([
        ("names", format!("{} spelling", checkpoint.layout())),
        ("latents", format!("{} channels, {} pixels a side each", config.latent_channels, config.spatial_factor())),
        ("scale of latents", scale_text(checkpoint.scale(), config)),
        ("levels", format!("{:?} channels, {} resnets each", config.block_out_channels, config.layers_per_block + 1)),
        ("norm groups", config.norm_num_groups.to_string()),
        ("attention in the middle", yes(config.mid_block_add_attention).to_owned()),
        ("post_quant_conv", yes(config.use_post_quant_conv).to_owned()),
        ("tensors", types.join(", ")),
        (
            "parameters",
            format!("{} (decoder {}, encoder {})", parameters.total, parameters.decoder, parameters.encoder),
        ),
        ("missing for a decode", missing_text(problems)),
    ]);
    let mut text = String::new();
    for (name, value) in rows {
        text.push_str(&format!("{name:<25}{value}\n"));
    }
    text
}

fn scale_text(scale: &LatentScale, config: &AutoencoderConfig) -> String {
    match scale {
        LatentScale::Known { from } => {
            let mean = if config.latents_mean.is_some() { ", with mean and deviation of each channel" } else { "" };
            format!("factor {}, shift {}{mean} (from {from})", config.scaling_factor, config.shift_factor)
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

fn missing_text(problems: &Problems) -> String {
    match (&problems.unusable, problems.missing.as_slice()) {
        (Some(unusable), _) => unusable.clone(),
        (None, []) => "nothing".to_owned(),
        (None, missing) => format!("{} tensors: {}", missing.len(), missing.join(", ")),
    }
}
