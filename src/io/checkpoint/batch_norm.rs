//! FLUX.2's batch norm: statistics of the latents that are stored among the weights.

use super::Checkpoint;
use crate::error::{Error, Result};
use crate::model::config::{AutoencoderConfig, single};

const MEAN: &str = "bn.running_mean";
const VARIANCE: &str = "bn.running_var";

/// Mean and variance of each channel of the diffusion model's latents.
#[derive(Debug)]
pub(super) struct BatchNorm {
    mean: Vec<f32>,
    variance: Vec<f32>,
}

impl BatchNorm {
    /// Reads the statistics of `checkpoint`, if it has any.
    pub(super) async fn read(checkpoint: &Checkpoint) -> Result<Option<Self>> {
        let found: Vec<_> = [MEAN, VARIANCE].into_iter().filter_map(|name| checkpoint.tensor(name)).collect();
        if found.is_empty() {
            return Ok(None);
        }
        // The statistics describe latents in patches of 2x2, as FLUX.2's are, unless both have one
        // value for each plain latent channel.
        let own = u64::from(checkpoint.derived.unscaled().latent_channels);
        let wanted = if found.iter().all(|tensor| tensor.info.shape == [own]) { [own] } else { [own * 4] };
        checkpoint.check([(MEAN, wanted.as_slice()), (VARIANCE, wanted.as_slice())])?;
        Ok(Some(Self {
            mean: checkpoint.read_f32(MEAN, &wanted).await?,
            variance: checkpoint.read_f32(VARIANCE, &wanted).await?,
        }))
    }
}

impl Checkpoint {
    /// Puts the statistics of the file into `config`, if it asks for them.
    pub(super) fn with_statistics(&self, mut config: AutoencoderConfig) -> Result<AutoencoderConfig> {
        let Some(eps) = config.batch_norm_eps else { return Ok(config) };
        let Some(BatchNorm { mean, variance }) = &self.batch_norm else {
            let tensors = vec![MEAN.to_owned(), VARIANCE.to_owned()];
            return Err(Error::MissingTensors { file: self.name.clone(), tensors });
        };
        let wanted = [u64::from(config.statistics())];
        self.check([(MEAN, wanted.as_slice()), (VARIANCE, wanted.as_slice())])?;
        if let Some(index) = variance.iter().position(|variance| *variance < 0.0) {
            return Err(Error::Tensor {
                tensor: VARIANCE.to_owned(),
                expected: "variances of 0 or more".to_owned(),
                found: format!("{} at element {index}", variance[index]),
            });
        }
        config.latents_mean = Some(mean.iter().copied().map(f64::from).collect());
        let deviation = |&variance: &f32| f64::from((variance + single(eps)).sqrt());
        config.latents_std = Some(variance.iter().map(deviation).collect());
        config.validate()?;
        Ok(config)
    }
}
