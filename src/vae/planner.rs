//! Plans requests for one model on one device.

use std::sync::Arc;

use super::check::{check_request, check_storage};
use super::manifest::WeightManifest;
use super::options::{LoadOptions, Precision};
use super::plans::Plans;
use super::request::{Frames, Job, Request};
use crate::device::Device;
use crate::direction::Direction;
use crate::error::{Error, Result};
use crate::io::{Checkpoint, LatentScale};
use crate::kernels::choice::KernelChoice;
use crate::limits::{DeviceKind, DeviceLimits};
use crate::model::blocks::Part;
use crate::model::config::{AutoencoderConfig, LatentSpace};
use crate::model::networks::{part_of_decoder, part_of_encoder};
use crate::plan::{HostStates, Plan, PlanOptions, Weights};
use crate::tensor::{Bytes, Size, Storage};

/// Plans `request` for a model of `config` on a device with `limits`. Neither needs to exist.
///
/// A plan with a budget takes its weights from host memory; without one, all weights that the
/// request needs stay on the device.
///
/// # Errors
/// [`crate::Error::Config`] for a field of `config` that makes no sense;
/// [`crate::Error::TooLarge`] if something does not fit `limits`; [`crate::Error::Budget`] if no
/// plan stays within the budget. [`crate::Error::Input`] for a size that is empty, too small or too
/// large to be meant, for limits that no device has, and for f16 on a device without `shader-f16`;
/// for a clip also if the network has no time axis or the result is to stay on the device.
pub fn plan(config: &AutoencoderConfig, request: &Request, limits: &DeviceLimits, storage: Storage) -> Result<Plans> {
    let options = LoadOptions::for_request(request, Precision::default());
    Planner::of_storage(config.clone(), limits.clone(), storage, options)?.plan(request)
}

/// A planner of decodes and encodes of one model on one device. It uses neither, so it can plan
/// while the model is loaded, and while a job runs.
#[derive(Debug, Clone)]
pub struct Planner {
    config: AutoencoderConfig,
    /// The name of the model's file, and the knowledge about the scale of its latents.
    scale: (String, LatentScale),
    limits: DeviceLimits,
    kernels: KernelChoice,
    storage: Storage,
    /// The options that the model is loaded with.
    pub(super) options: LoadOptions,
    /// The weights that the model is loaded with.
    pub(super) manifest: Arc<WeightManifest>,
}

impl Planner {
    /// Makes a planner for a model as it will be after [`super::Vae::load`] with the same options.
    ///
    /// # Errors
    /// [`crate::Error::Input`] for [`super::Precision::Fast`] on a device without `shader-f16`.
    pub fn new(device: impl Into<Device>, checkpoint: &Checkpoint, options: LoadOptions) -> Result<Self> {
        let device = device.into();
        let planner = Self::without_device(checkpoint.config().clone(), device.limits().clone(), options)?;
        let scale = (checkpoint.name().to_owned(), checkpoint.scale().clone());
        Ok(Self { scale, kernels: *device.kernels(), ..planner })
    }

    /// Makes a planner for a model of `config` on a device with `limits`. Neither has to exist.
    ///
    /// # Errors
    /// See [`super::plan`].
    pub fn without_device(config: AutoencoderConfig, limits: DeviceLimits, options: LoadOptions) -> Result<Self> {
        let storage = options.precision.storage(&limits);
        Self::of_storage(config, limits, storage, options)
    }

    /// Makes a planner for weights in `storage`, whatever precision `options` ask for.
    pub(super) fn of_storage(
        config: AutoencoderConfig,
        limits: DeviceLimits,
        storage: Storage,
        mut options: LoadOptions,
    ) -> Result<Self> {
        limits.validate()?;
        // The host has one memory, and no plan frees any by fetching weights later.
        options.weights_on_host &= limits.kind != DeviceKind::Host;
        check_storage(storage, &limits)?;
        Ok(Self {
            scale: (String::new(), LatentScale::Known { from: "the caller".to_owned() }),
            manifest: Arc::new(WeightManifest::new(&config, storage, options.directions, options.clips)?),
            kernels: KernelChoice::for_device(&limits),
            config,
            limits,
            storage,
            options,
        })
    }

    /// Returns the model's configuration.
    pub fn config(&self) -> &AutoencoderConfig {
        &self.config
    }

    /// Returns the storage of weights and activations.
    pub fn storage(&self) -> Storage {
        self.storage
    }

    /// Plans everything that `request` needs. Takes no GPU memory.
    ///
    /// # Errors
    /// See [`super::plan`]; [`crate::Error::Input`] if the request decodes the diffusion model's
    /// latents, and their scale is unknown, or if the model is loaded without the weights for it.
    pub fn plan(&self, request: &Request) -> Result<Plans> {
        self.check(request)?;
        Plans::new(request, &|job| self.plan_job(job))
    }

    /// Checks that the model can do what `request` asks for, whatever memory that takes.
    pub(super) fn check(&self, request: &Request) -> Result<()> {
        check_request(&self.config, request)?;
        self.check_loaded(request)?;
        match request.direction {
            Direction::Decode => self.check_space(request.latents),
            Direction::Encode => Ok(()),
        }
    }

    /// Checks that the weights of a request are those that the model is loaded with.
    fn check_loaded(&self, request: &Request) -> Result<()> {
        let LoadOptions { directions, clips, .. } = self.options;
        let is_clip = request.frames == Frames::Clip;
        if is_clip != clips {
            let of = |clips: bool| if clips { "clips" } else { "images" };
            return Err(Error::input(
                "model",
                format!("one loaded for {} (option clips)", of(is_clip)),
                format!("one loaded for {}", of(clips)),
            ));
        }
        let (loaded, doing) = match request.direction {
            Direction::Decode => (directions.decodes(), "decode"),
            Direction::Encode => (directions.encodes(), "encode"),
        };
        if loaded {
            return Ok(());
        }
        let expected = format!("one loaded to {doing} (option directions)");
        Err(Error::input("model", expected, format!("directions {directions:?}")))
    }

    /// Checks that latents in `space` have a known meaning for the model.
    pub(super) fn check_space(&self, space: LatentSpace) -> Result<()> {
        let (file, scale) = &self.scale;
        scale.check_space(file, &self.config, space)
    }

    /// Plans one job of a request that was checked.
    pub(super) fn plan_job(&self, job: &Job) -> Result<Plan> {
        let Request { direction, size, latents, output, tiling, .. } = job.request;
        let Request { memory_budget, least_memory, parking, profile, .. } = job.request;
        let (weights, other_weights) = if self.options.weights_on_host {
            (Weights::Host, Bytes(0))
        } else {
            (Weights::Device, self.manifest.besides(direction, job.part))
        };
        let options = PlanOptions {
            profile,
            memory_budget,
            least_memory,
            parking: parking.allowed(&self.limits),
            weights,
            clip_latents: job.request.most_latents(),
            host_states: match self.limits.kind {
                DeviceKind::Host => HostStates::None,
                DeviceKind::Cpu | DeviceKind::Gpu => job.host_states.clone(),
            },
            other_weights,
            choice: Some(self.kernels),
            ..PlanOptions::new(self.storage, output)
        };
        let decoder = |size: Size| part_of_decoder(&self.config, job.part, size, latents);
        let plan = |options: &PlanOptions| match (direction, tiling.measured_size(size)) {
            (Direction::Encode, _) => Plan::new(&part_of_encoder(&self.config, job.part, size), &self.limits, options),
            (Direction::Decode, None) => Plan::new(&decoder(size), &self.limits, options),
            (Direction::Decode, Some(small)) => Plan::estimated(&decoder(size), &decoder(small), &self.limits, options),
        };
        let planned = plan(&options);
        if !self.config.network.facts().keeps_all || job.part == Part::Image {
            return planned;
        }
        planned.map_err(|error| of_length(error, &options, &plan))
    }
}

/// Returns `error`. It names the number of latents if they make a plan too large, so that a clip of
/// one latent has a plan.
fn of_length(error: Error, options: &PlanOptions, plan: &dyn Fn(&PlanOptions) -> Result<Plan>) -> Error {
    match &error {
        Error::Input { what, expected, .. }
            if what == "size" && plan(&PlanOptions { clip_latents: 1, ..options.clone() }).is_ok() =>
        {
            let expected = format!("fewer latents, for {expected} in one part");
            Error::input("clip_latents", expected, options.clip_latents.to_string())
        }
        _ => error,
    }
}
