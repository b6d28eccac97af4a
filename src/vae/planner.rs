//! Plans decodes and encodes of one model on one device.

use super::clip_plans::{self, ClipPlans};
use super::job::Job;
use super::latents::{check_image, check_size};
use super::options::{DecodeOptions, Directions, EncodeOptions, LoadOptions};
use super::plans::{base, check_storage, plan};
use super::tile_plans::{TilePlans, check_patch, tile_options};
use super::wanted::others;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::io::Checkpoint;
use crate::kernels::choice::KernelChoice;
use crate::limits::DeviceLimits;
use crate::model::blocks::Part;
use crate::model::config::AutoencoderConfig;
use crate::plan::{Plan, PlanOptions, Weights};
use crate::tensor::{Bytes, Size, Storage};

/// A planner of decodes and encodes of one model on one device. It uses neither, so it can plan
/// while the model is loaded, and while a job runs.
#[derive(Debug, Clone)]
pub struct Planner {
    config: AutoencoderConfig,
    limits: DeviceLimits,
    kernels: KernelChoice,
    storage: Storage,
    unscaled: bool,
    weights: Weights,
    clips: bool,
    /// The bytes of weights on the device that a plan does not use. The first index is decode or
    /// encode; the second is a clip's first part or its other parts.
    others: [[Bytes; 2]; 2],
}

impl Planner {
    /// Makes a planner for a model as it will be after [`super::Vae::load`] with the same options.
    ///
    /// # Errors
    /// [`crate::Error::Config`] if the scaling factor is needed and the files do not tell it;
    /// [`crate::Error::Input`] for [`super::Precision::Fast`] on a device without `shader-f16`.
    pub fn new(gpu: &Gpu, checkpoint: &Checkpoint, options: LoadOptions) -> Result<Self> {
        let config = if options.unscaled { checkpoint.config() } else { checkpoint.scaled_config()? }.clone();
        let planner = Self::without_device(config, gpu.limits().clone(), options)?;
        Ok(Self { kernels: *gpu.kernels(), ..planner })
    }

    /// Makes a planner for a model of `config` on a device with `limits`. Neither has to exist.
    ///
    /// # Errors
    /// See [`super::plan_decode`].
    pub fn without_device(config: AutoencoderConfig, limits: DeviceLimits, options: LoadOptions) -> Result<Self> {
        let storage = options.precision.storage(&limits);
        check_storage(storage, &limits)?;
        let weights = if options.weights_on_host { Weights::Host } else { Weights::Device };
        let LoadOptions { unscaled, clips, directions, .. } = options;
        let more = (clips || directions == Directions::Both) && weights == Weights::Device;
        let others = if more { others(&config, &limits, storage, directions, clips)? } else { [[Bytes(0); 2]; 2] };
        let kernels = KernelChoice::for_device(&limits);
        Ok(Self { config, limits, kernels, storage, unscaled, weights, clips, others })
    }

    /// Returns the model's configuration.
    pub fn config(&self) -> &AutoencoderConfig {
        &self.config
    }

    /// Returns the storage of weights and activations.
    pub fn storage(&self) -> Storage {
        self.storage
    }

    /// True if all latents are the VAE's own.
    pub fn unscaled(&self) -> bool {
        self.unscaled
    }

    /// Returns the limits of the device that plans depend on.
    pub(super) fn limits(&self) -> &DeviceLimits {
        &self.limits
    }

    /// Plans a decode of an image. See [`super::Vae::plan`].
    ///
    /// # Errors
    /// See [`super::plan_decode`].
    pub fn plan(&self, latent_size: Size, options: &DecodeOptions) -> Result<Plan> {
        self.plan_job(&Job::Decode { latent_size, unscaled: self.unscaled, options: *options })
    }

    /// Plans each size of tile of a decode. See [`super::Vae::plan_tiles`].
    ///
    /// # Errors
    /// See [`super::plan_decode`].
    pub fn plan_tiles(&self, latent_size: Size, unscaled: bool, options: &DecodeOptions) -> Result<TilePlans> {
        check_size("size", latent_size)?;
        check_image(self.config.image_size(latent_size, unscaled))?;
        let plan = |latent_size, options| self.plan_job(&Job::Decode { latent_size, unscaled, options });
        match options.tiling.grid(latent_size) {
            Some(grid) => {
                check_patch(&self.config, unscaled)?;
                TilePlans::new(&grid, |size| plan(size, tile_options(options)))
            }
            None => Ok(TilePlans::whole(plan(latent_size, *options)?)),
        }
    }

    /// Plans an encode of an image. See [`super::Vae::plan_encode`].
    ///
    /// # Errors
    /// See [`super::plan_encode`].
    pub fn plan_encode(&self, image_size: Size, options: &EncodeOptions) -> Result<Plan> {
        self.plan_job(&Job::Encode { image_size, options: *options })
    }

    /// Plans the decode of a clip. See [`super::Vae::decode_clip`].
    ///
    /// # Errors
    /// See [`super::plan_clip_decode`].
    pub fn plan_clip_decode(&self, latent_size: Size, unscaled: bool, options: &DecodeOptions) -> Result<ClipPlans> {
        let base = |part| self.base(true, part);
        clip_plans::decode(&self.config, latent_size, &self.limits, base, unscaled || self.unscaled, options)
    }

    /// Plans the encode of a clip. See [`super::Vae::encode_clip`].
    ///
    /// # Errors
    /// See [`super::plan_clip_encode`].
    pub fn plan_clip_encode(&self, image_size: Size, options: &EncodeOptions) -> Result<ClipPlans> {
        clip_plans::encode(&self.config, image_size, &self.limits, |part| self.base(false, part), options)
    }

    pub(super) fn plan_job(&self, job: &Job) -> Result<Plan> {
        plan(&self.config, job, &self.limits, &self.base(job.decodes(), job.part()))
    }

    /// Returns the plan options that all decodes, or all encodes, of `part` share.
    fn base(&self, decodes: bool, part: Part) -> PlanOptions {
        let other_weights = self.others[usize::from(!decodes)][usize::from(part == Part::Next)];
        PlanOptions { other_weights, choice: Some(self.kernels), ..base(self.storage, self.weights) }
    }

    /// True if the planner is for clips.
    pub(super) fn clips(&self) -> bool {
        self.clips
    }
}
