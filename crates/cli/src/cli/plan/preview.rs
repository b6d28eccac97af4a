//! `wgvae plan --preview`: memory of a small picture of latents.

use serde_json::json;
use wgvae::config::{AutoencoderConfig, Network};
use wgvae::preview::{families, preview_size};
use wgvae::{Bytes, Error, LatentSpace, Result, Size};

use crate::cli::{PlanArgs, of_flag, to_json};

/// Returns the family whose linear map makes the preview, if there is one. Tiny models and models
/// in files decode it.
pub(super) fn mapped_family<'a>(args: &'a PlanArgs, config: &AutoencoderConfig) -> Option<&'a str> {
    let decodes = args.preview.is_none() || args.model.is_some() || matches!(config.network, Network::Tiny(_));
    args.family.as_deref().filter(|family| !decodes && families().any(|known| known == *family))
}

/// Shows what the linear map of `family` takes for latents of size `latents`.
///
/// # Errors
/// For a memory budget or an adapter, and for a preview without room for one latent.
pub(super) fn show(args: &PlanArgs, family: &str, latents: Size) -> Result<String> {
    if args.memory_budget.is_some() || !args.budgets.is_empty() {
        let expected = format!("no memory budget: the linear map of {family} takes no device memory");
        return Err(Error::input("--preview", expected, "one"));
    }
    if args.adapter.is_some() {
        let expected = format!("no --adapter: the linear map of {family} needs no device");
        return Err(Error::input("--preview", expected, "one"));
    }
    let side = args.preview.unwrap_or(u32::MAX);
    let size = preview_size(latents, family, side).map_err(|error| of_flag(error, "--preview"))?;
    let picture = Bytes(size.pixels() * 4);
    Ok(if args.json {
        to_json(&json!({
            "preview": { "linear_map_of": family, "size": size },
            "predicted_peak_bytes": 0,
            "picture_bytes": picture,
        }))
    } else {
        format!(
            "preview of {size} pixels by the linear map of {family}: no weights, no device memory, {picture} of host memory for the picture alone\n"
        )
    })
}

/// Returns the size of the latents that a decode starts from: fewer for a preview.
///
/// # Errors
/// For a preview without room for one latent.
pub(super) fn decoded_size(args: &PlanArgs, config: &AutoencoderConfig, latents: Size) -> Result<Size> {
    let Some(side) = args.preview else { return Ok(latents) };
    config.reduced_size(latents, LatentSpace::Model, side).map_err(|error| of_flag(error, "--preview"))
}
