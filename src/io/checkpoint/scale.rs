//! Detection of the published model, and so of the scale of its latents. The config or the file's
//! contents decide; nothing is guessed.

use crate::error::{Error, Result};
use crate::model::config::{
    AutoencoderConfig, Derived, Difference, FAMILIES, Family, LatentSpace, Network, OwnLatents,
};

/// Knowledge about the scale of the latents (scale, shift, mean, deviation).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LatentScale {
    /// The scale is known.
    Known {
        /// Source of the knowledge: a file, a tensor, or the caller.
        from: String,
    },
    /// Several published models have exactly these shapes, or none has.
    Unknown {
        /// Names of the families that it may be.
        candidates: Vec<&'static str>,
    },
}

impl LatentScale {
    /// Checks that latents in `space` have a known meaning for the model of `config` in `file`.
    ///
    /// # Errors
    /// [`Error::Input`] that lists the families that it may be.
    pub(crate) fn check_space(&self, file: &str, config: &AutoencoderConfig, space: LatentSpace) -> Result<()> {
        if space == LatentSpace::Vae {
            return config.check_own_latents();
        }
        let Self::Unknown { candidates } = self else { return Ok(()) };
        let expected = if candidates.is_empty() {
            "a family or a config.json (no published model has these shapes)".to_owned()
        } else {
            format!("one of {} (all have these shapes, but other latents)", candidates.join(", "))
        };
        Err(Error::input(format!("family of {file}"), expected, "none given and no config.json that fits"))
    }
}

/// Pairs of the start of `modelspec.architecture` in a file's metadata and a family.
const ARCHITECTURES: &[(&str, &str)] = &[
    ("stable-diffusion-xl", "sdxl"),
    ("stable-diffusion-v1", "sd15"),
    ("stable-diffusion-v2", "sd21"),
    ("stable-diffusion-3", "sd3"),
    ("stable-diffusion-v3", "sd3"),
    ("flux-1", "flux1"),
];

/// Returns the family for `modelspec.architecture` of a file's metadata.
pub(super) fn family_of_architecture(architecture: &str) -> Option<&'static str> {
    let architecture = architecture.to_ascii_lowercase();
    ARCHITECTURES.iter().find(|(start, _)| architecture.starts_with(start)).map(|(_, family)| *family)
}

/// Makes the error for a config.json that describes another network than the weights.
pub(super) fn other_network(Difference { field, values }: Difference) -> Error {
    let (found, expected) = match values {
        Some([config, weights]) => (format!("{config} from config.json"), format!("{weights}, as the weights have")),
        None => ("another from config.json".to_owned(), "that of the weights".to_owned()),
    };
    Error::Config { field: field.to_owned(), expected, found }
}

/// Derives config and scale of weights without a config.json. `hint` counts only if its family has
/// these shapes.
pub(super) fn decide(derived: &Derived, hint: Option<&str>) -> Result<(AutoencoderConfig, LatentScale)> {
    let mut config = derived.unscaled().clone();
    check_groups(&config)?;
    check_functions(derived)?;
    config.validate()?;
    let candidates = derived.candidates();
    let hinted = candidates.iter().find(|family| Some(family.name) == hint);
    let (families, evidence) = match hinted {
        Some(family) => (std::slice::from_ref(family), "the file's other contents"),
        None => (derived.decided(), "the shapes"),
    };
    if candidates.is_empty() && config.has_stored_statistics() {
        return Ok((config, LatentScale::Known { from: "the statistics among the weights".to_owned() }));
    }
    let Some(family) = families.first() else {
        return Ok((config, LatentScale::Unknown { candidates: names(candidates) }));
    };
    config.take_scale_of(&family.config());
    if families.iter().any(|family| family.config().own_latents != config.own_latents) {
        config.own_latents = OwnLatents::Unknown;
    }
    Ok((config, LatentScale::Known { from: format!("{evidence}: family {}", names(families).join(" or ")) }))
}

/// Returns `config` with the latent scale of `family`, which must be of the same kind of network.
pub(super) fn with_scale_of(family: &Family, config: &AutoencoderConfig) -> Result<AutoencoderConfig> {
    // The statistics among the weights have one value for each latent channel.
    let is_alike = |other: &AutoencoderConfig| {
        other.latent_channels == config.latent_channels
            || (other.has_stored_statistics() && config.has_stored_statistics())
    };
    // Tiny autoencoders of one number of latent channels may be of several kinds.
    let kind = |config: &AutoencoderConfig| match &config.network {
        Network::Tiny(tiny) => (tiny.use_midblock_gn, tiny.patch_size),
        _ => (false, 1),
    };
    let own = kind(config);
    let fits = |family: &&Family| {
        let other = family.config();
        let same_images = other.out_channels == config.out_channels;
        other.network.name() == config.network.name() && same_images && is_alike(&other) && kind(&other) == own
    };
    if !fits(&family) {
        let describe = |config: &AutoencoderConfig| {
            let opacity = if config.out_channels == 4 { " and opacity" } else { "" };
            format!("{} with {} latent channels{opacity}", config.network.name(), config.latent_channels)
        };
        let others: Vec<&str> = FAMILIES.iter().filter(fits).map(|family| family.name).collect();
        let others = if others.is_empty() { String::new() } else { format!(": one of {}", others.join(", ")) };
        return Err(Error::input(
            format!("family \"{}\"", family.name),
            format!("a family of the weights' kind ({}){others}", describe(config)),
            describe(&family.config()),
        ));
    }
    let mut config = config.clone();
    config.take_scale_of(&family.config());
    Ok(config)
}

/// Checks the number of groups of the norms. Weights do not tell it; all published models have 32,
/// so 32 must divide the channels.
fn check_groups(config: &AutoencoderConfig) -> Result<()> {
    let (groups, channels) = match &config.network {
        Network::Kl(kl) => (kl.norm_num_groups, [kl.block_out_channels.as_slice(), kl.decoder_channels()].concat()),
        Network::SeedVr(seedvr) => (seedvr.norm_num_groups, seedvr.block_out_channels.clone()),
        Network::Tiny(_) | Network::Wan(_) | Network::Ltx2(_) | Network::HunyuanVideo(_) | Network::Dc(_) => {
            return Ok(());
        }
    };
    match channels.iter().find(|channels| !channels.is_multiple_of(groups)) {
        None => Ok(()),
        Some(channels) => Err(Error::Config {
            field: "norm_num_groups".to_owned(),
            // The page fetches a config.json if an error begins so: `needsConfig` in advice.js.
            expected: "a config.json with norm_num_groups, because weights do not contain it".to_owned(),
            found: format!("{channels} channels, which the usual {groups} groups do not divide"),
        }),
    }
}

/// Checks that the network is a published one if its weights do not show all of it. Those of DC-AE
/// show neither its functions nor the shortcuts next to the latents.
fn check_functions(derived: &Derived) -> Result<()> {
    if !matches!(derived.unscaled().network, Network::Dc(_)) || !derived.candidates().is_empty() {
        return Ok(());
    }
    Err(Error::Config {
        field: "decoder_act_fns".to_owned(),
        // The page fetches a config.json if an error begins so: `needsConfig` in advice.js.
        expected: "a config.json with decoder_act_fns and the like, because weights do not contain them".to_owned(),
        found: "the weights of no published DC-AE".to_owned(),
    })
}

fn names(families: &[&Family]) -> Vec<&'static str> {
    families.iter().map(|family| family.name).collect()
}
