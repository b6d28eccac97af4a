//! Statistics of the latents that are stored among the weights: FLUX.2's batch norm, and means and
//! deviations of LTX-2.

use super::Checkpoint;
use crate::error::{Error, Result};
use crate::model::config::{AutoencoderConfig, single};

/// Names of the means and variances of a batch norm, and of means and deviations.
const BATCH_NORM: [&str; 2] = ["bn.running_mean", "bn.running_var"];
const DEVIATIONS: [&str; 2] = ["latents_mean", "latents_std"];

/// Mean of each channel of the diffusion model's latents, and its variance or deviation.
#[derive(Debug)]
pub(super) struct Statistics {
    names: [&'static str; 2],
    mean: Vec<f32>,
    spread: Vec<f32>,
}

impl Statistics {
    /// Reads the statistics of `checkpoint`, if it has any.
    pub(super) async fn read(checkpoint: &Checkpoint) -> Result<Option<Self>> {
        let found = |names: [&'static str; 2]| names.map(|name| checkpoint.tensor(name));
        let Some(names) = [BATCH_NORM, DEVIATIONS].into_iter().find(|names| found(*names) != [None; 2]) else {
            return Ok(None);
        };
        // The statistics of a batch norm describe latents in patches of 2x2, as FLUX.2's are,
        // unless both have one value for each plain latent channel.
        let own = u64::from(checkpoint.derived.unscaled().latent_channels);
        let plain = found(names).into_iter().flatten().all(|tensor| tensor.info.shape == [own]);
        let wanted = if plain || names == DEVIATIONS { [own] } else { [own * 4] };
        checkpoint.check(names.map(|name| (name, wanted.as_slice())))?;
        let [mean, spread] = names;
        Ok(Some(Self {
            names,
            mean: checkpoint.read_f32(mean, &wanted).await?,
            spread: checkpoint.read_f32(spread, &wanted).await?,
        }))
    }
}

impl Checkpoint {
    /// Puts the statistics of the file into `config`, if it asks for them.
    pub(super) fn with_statistics(&self, mut config: AutoencoderConfig) -> Result<AutoencoderConfig> {
        if !config.has_stored_statistics() {
            return Ok(config);
        }
        let wanted = if config.batch_norm_eps.is_some() { BATCH_NORM } else { DEVIATIONS };
        let Some(Statistics { mean, spread, .. }) = self.statistics.as_ref().filter(|found| found.names == wanted)
        else {
            let tensors = wanted.map(str::to_owned).to_vec();
            return Err(Error::MissingTensors { file: self.name.clone(), tensors });
        };
        let count = [u64::from(config.statistics())];
        self.check(wanted.map(|name| (name, count.as_slice())))?;
        if let Some(index) = spread.iter().position(|spread| *spread < 0.0) {
            return Err(Error::Tensor {
                tensor: wanted[1].to_owned(),
                expected: format!("{} of 0 or more", if wanted == BATCH_NORM { "variances" } else { "deviations" }),
                found: format!("{} at element {index}", spread[index]),
            });
        }
        config.latents_mean = Some(mean.iter().copied().map(f64::from).collect());
        let deviation = |&spread: &f32| match config.batch_norm_eps {
            Some(eps) => f64::from((spread + single(eps)).sqrt()),
            None => f64::from(spread),
        };
        config.latents_std = Some(spread.iter().map(deviation).collect());
        config.validate()?;
        Ok(config)
    }
}
