//! Detection of the VAE that a tiny autoencoder replaces. Its weights do not tell, and without that
//! VAE its own latents have no known scale.

use super::Checkpoint;
use super::StoredTensor;
use crate::error::{Error, Result};
use crate::io::safetensors::read_tensor;
use crate::io::source::ByteSource;
use crate::model::config::{AutoencoderConfig, FAMILIES, Family, Network, OwnLatents, unsupported};

/// Two numbers that `ComfyUI` stores beside TAESD's weights: scaling factor and shift of the VAE
/// that TAESD replaces.
pub(super) const SCALE: &str = "vae_scale";
pub(super) const SHIFT: &str = "vae_shift";

/// Reads the numbers that `ComfyUI` stores beside the weights, if there are any.
pub(super) async fn read(
    scale: Option<StoredTensor>,
    shift: Option<StoredTensor>,
    sources: &[Box<dyn ByteSource>],
) -> Result<Option<OwnLatents>> {
    let Some(scale) = scale else { return Ok(None) };
    let scaling_factor = number(&scale, sources).await?;
    if scaling_factor <= 0.0 {
        return Err(wrong(&scale, scaling_factor));
    }
    let shift_factor = match shift {
        Some(shift) => number(&shift, sources).await?,
        None => 0.0,
    };
    Ok(Some(OwnLatents::StandIn { scaling_factor, shift_factor }))
}

async fn number(tensor: &StoredTensor, sources: &[Box<dyn ByteSource>]) -> Result<f32> {
    tensor.check(&[])?;
    let read = read_tensor(sources[tensor.source].as_ref(), &tensor.file_name, &tensor.info).await?;
    match *read.data.as_slice() {
        [value] if value.is_finite() => Ok(value),
        [value] => Err(wrong(tensor, value)),
        _ => Err(wrong(tensor, f32::NAN)),
    }
}

fn wrong(tensor: &StoredTensor, found: f32) -> Error {
    let expected = if tensor.file_name == SCALE { "a positive number" } else { "a finite number" };
    Error::Tensor { tensor: tensor.file_name.clone(), expected: expected.to_owned(), found: found.to_string() }
}

impl Checkpoint {
    /// Returns an error for a file that only its name tells from a supported one: `LightX2V`'s code
    /// has `LeakyReLU(0.2)` and pictures of -1 to 1 for it.
    pub(super) fn check_name(&self) -> Result<()> {
        let is_video = matches!(&self.derived.unscaled().network, Network::Tiny(tiny) if tiny.is_video());
        if is_video && self.words().iter().any(|word| word.contains("lighttaehy1_5")) {
            return Err(Error::Format { file: self.name.clone(), problem: unsupported::LIGHT_TAEHV15.to_string() });
        }
        Ok(())
    }

    /// Finds the scale of the VAE's own latents by the file names, else by the family that the
    /// file's contents hint at. Unknown for TAEHV: "taehv" names a model and the repository of
    /// all, so a name proves nothing.
    pub(super) fn own_latents_by_name(&self, hint: Option<&str>) -> OwnLatents {
        let kind = |config: &AutoencoderConfig| (config.network.name(), config.latent_channels);
        let own = self.derived.unscaled();
        if matches!(&own.network, Network::Tiny(tiny) if tiny.is_video()) {
            return OwnLatents::Unknown;
        }
        let families: Vec<&Family> = FAMILIES.iter().filter(|family| kind(&family.config()) == kind(own)).collect();
        let found = self.words().iter().find_map(|word| family_in(word, &families));
        let hinted = || {
            let stood_for = Family::find(hint?).ok()?.config();
            let own_latents = OwnLatents::stand_in_for(&stood_for);
            families.iter().copied().find(|family| family.config().own_latents == own_latents)
        };
        found.or_else(hinted).map_or(OwnLatents::Unknown, |family| family.config().own_latents)
    }

    /// Fills in the scale of the VAE's own latents if `config` leaves it open.
    pub(super) fn with_own_latents(&self, mut config: AutoencoderConfig) -> AutoencoderConfig {
        if config.own_latents == OwnLatents::Unknown {
            config.own_latents = self.own_latents;
        }
        config
    }

    /// Lists the words that may name a family: file names, then the folder that was opened or that
    /// holds the file, then the repository in a cache of the Hugging Face Hub.
    fn words(&self) -> Vec<String> {
        let parts = |path: &str| path.to_lowercase().split(['/', '\\']).map(str::to_owned).collect::<Vec<_>>();
        let files = self.sources.iter().filter_map(|source| parts(source.name()).pop());
        let path = parts(&self.name);
        let folders = path.iter().rev().take(2).cloned();
        let repository = path.iter().filter(|part| part.starts_with("models--")).cloned();
        files.chain(folders).chain(repository).collect()
    }
}

/// Returns the family that `word` names. The longest name wins, because "taesdxl" contains "taesd".
fn family_in(word: &str, families: &[&'static Family]) -> Option<&'static Family> {
    families.iter().copied().filter(|family| word.contains(family.name)).max_by_key(|family| family.name.len())
}
