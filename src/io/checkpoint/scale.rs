//! Which published model weights are, and so what their latents mean: by config, by evidence in the file, never by
//! guess.

use crate::error::{Error, Result};
use crate::model::config::{AutoencoderConfig, Derived};

/// Whether it is known what the latents mean (scale, shift, mean, deviation).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LatentScale {
    /// It is.
    Known {
        /// How: a file, a tensor, or the caller.
        from: String,
    },
    /// Several published models have these very shapes, or none has.
    Unknown {
        /// Names of the families it may be.
        candidates: Vec<&'static str>,
    },
}

/// Starts of `modelspec.architecture` in a file's metadata -> family.
const ARCHITECTURES: &[(&str, &str)] = &[
    ("stable-diffusion-xl", "sdxl"),
    ("stable-diffusion-v1", "sd15"),
    ("stable-diffusion-v2", "sd21"),
    ("stable-diffusion-3", "sd3"),
    ("stable-diffusion-v3", "sd3"),
    ("flux-1", "flux1"),
];

/// The family that `modelspec.architecture` in a file's metadata names.
pub(super) fn family_of_architecture(architecture: &str) -> Option<&'static str> {
    let architecture = architecture.to_ascii_lowercase();
    ARCHITECTURES.iter().find(|(start, _)| architecture.starts_with(start)).map(|(_, family)| *family)
}

/// `config` if it describes the network that the shapes show.
pub(super) fn fitting(config: AutoencoderConfig, derived: &Derived) -> Result<AutoencoderConfig> {
    match config.network_difference(derived.unscaled()) {
        None => Ok(config),
        Some(field) => Err(Error::Config {
            field: field.to_owned(),
            expected: format!("the network of the weights ({})", summary(derived.unscaled())),
            found: summary(&config),
        }),
    }
}

/// Config and scale of weights without config.json. `hint` holds only if its family has these shapes.
pub(super) fn decide(derived: &Derived, hint: Option<&str>) -> Result<(AutoencoderConfig, LatentScale)> {
    let mut config = derived.unscaled().clone();
    let groups = config.norm_num_groups;
    if let Some(channels) = config.block_out_channels.iter().find(|channels| !channels.is_multiple_of(groups)) {
        return Err(Error::Config {
            field: "norm_num_groups".to_owned(),
            expected: "a config.json that tells it: weights do not".to_owned(),
            found: format!("{channels} channels, which the usual {groups} groups do not divide"),
        });
    }
    config.validate()?;
    let candidates = derived.candidates();
    let hinted = candidates.iter().find(|family| Some(family.name) == hint).copied();
    let scale = match (hinted, derived.decided()) {
        (Some(family), _) => {
            family.apply_scale(&mut config);
            LatentScale::Known { from: format!("the file's other contents: family {}", family.name) }
        }
        (None, Some(family)) => {
            family.apply_scale(&mut config);
            LatentScale::Known { from: format!("the shapes: family {}", family.name) }
        }
        (None, None) => LatentScale::Unknown { candidates: candidates.iter().map(|family| family.name).collect() },
    };
    Ok((config, scale))
}

fn summary(config: &AutoencoderConfig) -> String {
    format!(
        "{} latent channels, levels {:?}, {} layers, attention {}, post_quant_conv {}, {} image channels",
        config.latent_channels,
        config.block_out_channels,
        config.layers_per_block,
        config.mid_block_add_attention,
        config.use_post_quant_conv,
        config.out_channels
    )
}
