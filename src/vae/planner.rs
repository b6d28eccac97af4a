//! Plans decodes and encodes of one model on one device.

use super::job::Job;
use super::options::{DecodeOptions, Directions, EncodeOptions, LoadOptions};
use super::plans::{base, plan};
use super::wanted::weights_of_one_direction;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::io::Checkpoint;
use crate::limits::DeviceLimits;
use crate::model::config::AutoencoderConfig;
use crate::plan::{Plan, PlanOptions, Weights};
use crate::tensor::{Bytes, Size, Storage};

/// Plans decodes and encodes of one model on one device. Needs neither: it may be asked while the model is loaded, and while something runs.
#[derive(Debug, Clone)]
pub struct Planner {
    config: AutoencoderConfig,
    limits: DeviceLimits,
    storage: Storage,
    unscaled: bool,
    weights: Weights,
    /// Weights on the device that a decode does not need, and those that an encode does not.
    others: [Bytes; 2],
}

impl Planner {
    /// Plans for a model as it will be after [`super::Vae::load`] with the same options.
    ///
    /// # Errors
    /// [`crate::Error::Config`] when the scaling factor cannot be told from the files and is needed.
    pub fn new(gpu: &Gpu, checkpoint: &Checkpoint, options: LoadOptions) -> Result<Self> {
        let config = if options.unscaled { checkpoint.config() } else { checkpoint.scaled_config()? }.clone();
        let storage = options.precision.storage(gpu.limits());
        let weights = if options.weights_on_host { Weights::Host } else { Weights::Device };
        let both = options.directions == Directions::Both && weights == Weights::Device;
        let others = if both { weights_of_one_direction(&config, gpu.limits(), storage)? } else { [Bytes(0); 2] };
        Ok(Self { config, limits: gpu.limits().clone(), storage, unscaled: options.unscaled, weights, others })
    }

    /// The model's configuration.
    pub fn config(&self) -> &AutoencoderConfig {
        &self.config
    }

    /// How weights and activations are stored.
    pub fn storage(&self) -> Storage {
        self.storage
    }

    /// Whether all latents are the VAE's own.
    pub fn unscaled(&self) -> bool {
        self.unscaled
    }

    /// What plans see of the device.
    pub(super) fn limits(&self) -> &DeviceLimits {
        &self.limits
    }

    /// See [`super::Vae::plan`].
    ///
    /// # Errors
    /// See [`super::plan_decode`].
    pub fn plan(&self, latent_size: Size, options: &DecodeOptions) -> Result<Plan> {
        self.plan_job(&Job::Decode { latent_size, unscaled: self.unscaled, options: *options })
    }

    /// See [`super::Vae::plan_encode`].
    ///
    /// # Errors
    /// See [`super::plan_encode`].
    pub fn plan_encode(&self, image_size: Size, options: &EncodeOptions) -> Result<Plan> {
        self.plan_job(&Job::Encode { image_size, options: *options })
    }

    pub(super) fn plan_job(&self, job: &Job) -> Result<Plan> {
        let other_weights = match job {
            Job::Decode { .. } => self.others[0],
            Job::Encode { .. } => self.others[1],
        };
        let base = PlanOptions { other_weights, ..base(self.storage, self.weights) };
        plan(&self.config, job, &self.limits, &base)
    }
}
