//! Plans decodes and encodes. Needs neither weights nor a device.

use super::latents::{check_image, check_size};
use super::options::{DecodeOptions, Directions, EncodeOptions, LoadOptions};
use super::tiled::{self, TilePlans};
use super::weights::weights_of_one_direction;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::io::Checkpoint;
use crate::limits::DeviceLimits;
use crate::model::config::AutoencoderConfig;
use crate::model::networks;
use crate::plan::{Output, Plan, PlanOptions, Weights};
use crate::tensor::{Bytes, Size, Storage};

/// What a plan is for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Job {
    /// Latents to an image.
    Decode {
        /// Of the latents that are given.
        latent_size: Size,
        /// Whether they are the VAE's own.
        unscaled: bool,
        options: DecodeOptions,
    },
    /// An image to what its latents are made of.
    Encode {
        /// Pixels.
        image_size: Size,
        options: EncodeOptions,
    },
}

impl Job {
    /// The most GPU memory that it may take.
    pub(super) fn memory_budget(&self) -> Option<Bytes> {
        match self {
            Self::Decode { options, .. } => options.memory_budget,
            Self::Encode { options, .. } => options.memory_budget,
        }
    }

    /// The same within `budget`.
    pub(super) fn within(mut self, budget: Bytes) -> Self {
        match &mut self {
            Self::Decode { options, .. } => options.memory_budget = Some(budget),
            Self::Encode { options, .. } => options.memory_budget = Some(budget),
        }
        self
    }
}

/// Plans a decode of latents of `latent_size`, without a device. In tiles: the plan of those that take the most memory. With `unscaled`, latents are the VAE's
/// own; else as the diffusion model leaves them.
///
/// A plan with a budget takes its weights from the host: see [`LoadOptions::weights_on_host`].
///
/// # Errors
/// [`Error::Config`] naming a field of `config` that makes no sense; [`Error::TooLarge`] when something does not fit `limits`; [`Error::Budget`] when no plan
/// keeps the budget; [`Error::Input`] for an empty size or one that nobody means, for limits that no device has, and for f16 on a device without `shader-f16`.
pub fn plan_decode(
    config: &AutoencoderConfig,
    latent_size: Size,
    limits: &DeviceLimits,
    storage: Storage,
    unscaled: bool,
    options: &DecodeOptions,
) -> Result<Plan> {
    let job = Job::Decode { latent_size, unscaled, options: *options };
    plan(config, &job, limits, &base(storage, Weights::Host))
}

/// Plans an encode of an image of `image_size` pixels, without a device. What comes of it are moments of the VAE's own latents, see [`super::Encoded`].
///
/// # Errors
/// See [`plan_decode`]; [`Error::Input`] for an image that is smaller than one latent.
pub fn plan_encode(
    config: &AutoencoderConfig,
    image_size: Size,
    limits: &DeviceLimits,
    storage: Storage,
    options: &EncodeOptions,
) -> Result<Plan> {
    plan(config, &Job::Encode { image_size, options: *options }, limits, &base(storage, Weights::Host))
}

/// `base`: storage, and where the weights are.
fn plan(config: &AutoencoderConfig, job: &Job, limits: &DeviceLimits, base: &PlanOptions) -> Result<Plan> {
    config.validate()?;
    limits.validate()?;
    check_storage(base.storage, limits)?;
    match *job {
        Job::Decode { latent_size, unscaled, options } => {
            check_size("size", latent_size)?;
            check_image(config.image_size(latent_size, unscaled))?;
            if let Some(grid) = options.tiling.grid(latent_size) {
                tiled::check_patch(config, unscaled)?;
                let options = tiled::tile_options(&options);
                let tile = |latent_size| Job::Decode { latent_size, unscaled, options };
                let plan = |size| plan(config, &tile(size), limits, base);
                return TilePlans::new(&grid, plan).map(TilePlans::into_largest);
            }
            let graph = |size| networks::decoder(config, size, unscaled);
            let plan_options = PlanOptions {
                output: options.output,
                profile: options.profile,
                memory_budget: options.memory_budget,
                parking: options.parking.allowed(limits),
                ..base.clone()
            };
            match options.tiling.measured_size(latent_size) {
                Some(small) => Plan::estimated(&graph(latent_size), &graph(small), limits, &plan_options),
                None => Plan::new(&graph(latent_size), limits, &plan_options),
            }
        }
        Job::Encode { image_size, options } => {
            check_image(image_size)?;
            check_encoded(config, image_size)?;
            let plan_options = PlanOptions {
                profile: options.profile,
                memory_budget: options.memory_budget,
                parking: options.parking.allowed(limits),
                ..base.clone()
            };
            Plan::new(&networks::encoder(config, image_size), limits, &plan_options)
        }
    }
}

fn base(storage: Storage, weights: Weights) -> PlanOptions {
    PlanOptions { weights, ..PlanOptions::new(storage, Output::Raw) }
}

/// Refuses images that no latent comes of, and those of more latents than anyone means.
fn check_encoded(config: &AutoencoderConfig, image_size: Size) -> Result<()> {
    let latents = config.latent_size(image_size, true);
    if latents.width == 0 || latents.height == 0 {
        let least = config.spatial_factor();
        return Err(Error::Input {
            what: "image".to_owned(),
            expected: format!("at least {least}x{least} pixels"),
            found: format!("{image_size}"),
        });
    }
    check_size("image", latents)
}

/// Halves of the hardware's own type need a device that has them.
fn check_storage(storage: Storage, limits: &DeviceLimits) -> Result<()> {
    if storage != Storage::F16 || limits.shader_f16 {
        return Ok(());
    }
    Err(Error::Input {
        what: "storage".to_owned(),
        expected: "f32 or packed_f16, on a device without shader-f16".to_owned(),
        found: "f16".to_owned(),
    })
}

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
    /// [`Error::Config`] when the scaling factor cannot be told from the files and is needed.
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
    /// See [`plan_decode`].
    pub fn plan(&self, latent_size: Size, options: &DecodeOptions) -> Result<Plan> {
        self.plan_job(&Job::Decode { latent_size, unscaled: self.unscaled, options: *options })
    }

    /// See [`super::Vae::plan_encode`].
    ///
    /// # Errors
    /// See [`plan_encode`].
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
