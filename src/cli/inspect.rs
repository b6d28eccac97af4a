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
    let mut facts = checkpoint.facts();
    facts["missing"] = json!(problems.missing);
    facts["unusable"] = json!(problems.unusable);
    facts["can_decode"] = json!(problems.missing.is_empty() && problems.unusable.is_none());
    facts
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
