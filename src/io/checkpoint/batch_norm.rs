//! FLUX.2's batch norm: statistics of the latents, which lie among the weights.

use super::Checkpoint;
use crate::error::{Error, Result};
use crate::model::config::AutoencoderConfig;

const MEAN: &str = "bn.running_mean";
const VARIANCE: &str = "bn.running_var";

/// Longest list of statistics that is read. The published one has 128.
const MOST: u64 = 4096;

/// Mean and variance of each channel of the diffusion model's latents.
#[derive(Debug)]
pub(super) struct BatchNorm {
    mean: Vec<f32>,
    variance: Vec<f32>,
}

impl BatchNorm {
    /// Reads the statistics of `checkpoint`, if it has any.
    pub(super) async fn read(checkpoint: &Checkpoint) -> Result<Option<Self>> {
        let found = [MEAN, VARIANCE].into_iter().find_map(|name| checkpoint.tensor(name));
        let Some(found) = found else { return Ok(None) };
        let &[channels @ 1..=MOST] = found.info.shape.as_slice() else {
            return Err(Error::Tensor {
                tensor: found.file_name.clone(),
                expected: format!("shape [channels], 1 to {MOST}"),
                found: format!("{:?}", found.info.shape),
            });
        };
        let wanted = [channels];
        checkpoint.check([(MEAN, wanted.as_slice()), (VARIANCE, wanted.as_slice())])?;
        Ok(Some(Self {
            mean: checkpoint.read_f32(MEAN, &wanted).await?,
            variance: checkpoint.read_f32(VARIANCE, &wanted).await?,
        }))
    }
}

impl Checkpoint {
    /// `config` with the statistics of the file where it asks for them.
    pub(super) fn with_statistics(&self, mut config: AutoencoderConfig) -> Result<AutoencoderConfig> {
        let Some(eps) = config.batch_norm_eps else { return Ok(config) };
        let Some(BatchNorm { mean, variance }) = &self.batch_norm else {
            let tensors = vec![MEAN.to_owned(), VARIANCE.to_owned()];
            return Err(Error::MissingTensors { file: self.name.clone(), tensors });
        };
        let wanted = [u64::from(config.model_channels())];
        self.check([(MEAN, wanted.as_slice()), (VARIANCE, wanted.as_slice())])?;
        if let Some(index) = variance.iter().position(|variance| *variance < 0.0) {
            return Err(Error::Tensor {
                tensor: VARIANCE.to_owned(),
                expected: "variances of 0 or more".to_owned(),
                found: format!("{} at element {index}", variance[index]),
            });
        }
        config.latents_mean = Some(mean.clone());
        config.latents_std = Some(variance.iter().map(|variance| (variance + eps).sqrt()).collect());
        config.validate()?;
        Ok(config)
    }
}
