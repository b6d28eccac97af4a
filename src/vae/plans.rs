//! Plans decodes and encodes. Needs neither weights nor a device.

use super::job::Job;
use super::latents::{check_image, check_size};
use super::options::{DecodeOptions, EncodeOptions};
use super::tile_plans::{self, TilePlans};
use crate::error::{Error, Result};
use crate::limits::DeviceLimits;
use crate::model::config::AutoencoderConfig;
use crate::model::networks;
use crate::plan::{Output, Plan, PlanOptions, Weights};
use crate::tensor::{Size, Storage};
use crate::tiling::Tiling;

/// Plans a decode of latents of `latent_size`, without a device. In tiles, returns the plan of the
/// tiles that take the most memory. With `unscaled`, latents are the VAE's own; without it, they
/// are in the diffusion model's scale.
///
/// A plan with a budget takes its weights from host memory; see
/// [`super::LoadOptions::weights_on_host`].
///
/// # Errors
/// [`Error::Config`] for a field of `config` that makes no sense; [`Error::TooLarge`] if something
/// does not fit `limits`; [`Error::Budget`] if no plan stays within the budget; [`Error::Input`]
/// for a size that is empty or too large to be meant, for limits that no device has, and for f16 on
/// a device without `shader-f16`.
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

/// Plans an encode of an image of `image_size` pixels, without a device. The result is moments of
/// the VAE's own latents, see [`super::Encoded`].
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

/// Plans `job`. `base` says how elements are stored and where the weights are.
pub(super) fn plan(config: &AutoencoderConfig, job: &Job, limits: &DeviceLimits, base: &PlanOptions) -> Result<Plan> {
    config.validate()?;
    limits.validate()?;
    check_storage(base.storage, limits)?;
    match job {
        Job::Decode { latent_size, unscaled, options } => {
            decode(config, *latent_size, *unscaled, *options, limits, base)
        }
        Job::Encode { image_size, options } => {
            check_frames(config, *image_size)?;
            Plan::new(&networks::encoder(config, *image_size), limits, &of_encode(options, limits, base))
        }
        Job::DecodePart { latent_size, unscaled, part, host_states, options } => {
            check_clip_decode(config, *latent_size, *unscaled, options)?;
            let host_states = host_states.clone();
            let plan_options = PlanOptions { host_states, ..of_decode(options, limits, base) };
            Plan::new(&networks::part_of_decoder(config, *part, *latent_size, *unscaled), limits, &plan_options)
        }
        Job::EncodePart { image_size, part, host_states, options } => {
            check_clip(config)?;
            check_frames(config, *image_size)?;
            let host_states = host_states.clone();
            let plan_options = PlanOptions { host_states, ..of_encode(options, limits, base) };
            Plan::new(&networks::part_of_encoder(config, *part, *image_size), limits, &plan_options)
        }
    }
}

/// Plans the decode of an image: whole, in tiles, or by an estimate.
fn decode(
    config: &AutoencoderConfig,
    latent_size: Size,
    unscaled: bool,
    options: DecodeOptions,
    limits: &DeviceLimits,
    base: &PlanOptions,
) -> Result<Plan> {
    check_latents(config, latent_size, unscaled)?;
    if let Some(grid) = options.tiling.grid(latent_size) {
        tile_plans::check_patch(config, unscaled)?;
        let options = tile_plans::tile_options(&options);
        let tile = |latent_size| Job::Decode { latent_size, unscaled, options };
        let plan = |size| plan(config, &tile(size), limits, base);
        return TilePlans::new(&grid, plan).map(TilePlans::into_largest);
    }
    let graph = |size| networks::decoder(config, size, unscaled);
    let plan_options = of_decode(&options, limits, base);
    match options.tiling.measured_size(latent_size) {
        Some(_) if config.latent_step(unscaled) > 1 => Err(tile_plans::needs_own(config)),
        Some(small) => Plan::estimated(&graph(latent_size), &graph(small), limits, &plan_options),
        None => Plan::new(&graph(latent_size), limits, &plan_options),
    }
}

fn of_decode(options: &DecodeOptions, limits: &DeviceLimits, base: &PlanOptions) -> PlanOptions {
    PlanOptions {
        output: options.output,
        profile: options.profile,
        memory_budget: options.memory_budget,
        parking: options.parking.allowed(limits),
        ..base.clone()
    }
}

fn of_encode(options: &EncodeOptions, limits: &DeviceLimits, base: &PlanOptions) -> PlanOptions {
    PlanOptions {
        profile: options.profile,
        memory_budget: options.memory_budget,
        parking: options.parking.allowed(limits),
        ..base.clone()
    }
}

/// Returns the plan options that all plans of one model share.
pub(super) fn base(storage: Storage, weights: Weights) -> PlanOptions {
    PlanOptions { weights, ..PlanOptions::new(storage, Output::Raw) }
}

/// Checks the configuration, size and options of a clip's decode, before it is cut into tiles.
pub(super) fn check_clip_decode(
    config: &AutoencoderConfig,
    latent_size: Size,
    unscaled: bool,
    options: &DecodeOptions,
) -> Result<()> {
    config.validate()?;
    check_clip(config)?;
    check_latents(config, latent_size, unscaled)?;
    check_whole(options)
}

/// Returns an error for a network whose frames do not see one another: its clips are images, one by
/// one.
fn check_clip(config: &AutoencoderConfig) -> Result<()> {
    if config.has_time() {
        return Ok(());
    }
    Err(Error::input("model", "a video model, for a clip", config.network.name().to_owned()))
}

/// Returns an error for outputs and tilings that clips do not have.
fn check_whole(options: &DecodeOptions) -> Result<()> {
    let wrong = |what: &str, expected: &str, found: String| Err(Error::input(what, expected.to_owned(), found));
    if options.output.stays() {
        return wrong("output", "rgba8 or raw, for a clip", "picture".to_owned());
    }
    // Tiles are accepted: a frame that fits one tile is decoded whole.
    if options.tiling == Tiling::Estimate {
        return wrong("tiling", "exact or tiles, for a clip", format!("{:?}", options.tiling));
    }
    Ok(())
}

/// Checks the size of latents: not too large to be meant, and one that the model can have. With
/// `unscaled`, also checks that the model's own latents are known.
fn check_latents(config: &AutoencoderConfig, latent_size: Size, unscaled: bool) -> Result<()> {
    check_size("size", latent_size)?;
    if unscaled {
        config.check_own_latents()?;
    }
    let step = config.latent_step(unscaled);
    if !latent_size.width.is_multiple_of(step) || !latent_size.height.is_multiple_of(step) {
        return Err(Error::input(
            "size of latents",
            format!("multiples of {step} each way, as the model's statistics are of {step}x{step} latents"),
            latent_size.to_string(),
        ));
    }
    check_image(config.image_size(latent_size, unscaled))
}

/// Returns an error for images that are smaller than a latent or too large to be meant.
fn check_frames(config: &AutoencoderConfig, image_size: Size) -> Result<()> {
    check_image(image_size)?;
    let latents = config.latent_size(image_size, true);
    if latents.width == 0 || latents.height == 0 {
        let least = config.spatial_factor();
        return Err(Error::input("image", format!("at least {least}x{least} pixels"), format!("{image_size}")));
    }
    check_size("image", latents)
}

/// Checks that a device has the hardware's half type, if `storage` needs it.
///
/// # Errors
/// [`Error::Input`] if it does not.
pub(super) fn check_storage(storage: Storage, limits: &DeviceLimits) -> Result<()> {
    if !storage.needs_shader_f16() || limits.shader_f16 {
        return Ok(());
    }
    if storage == Storage::FastF16 {
        return Err(Error::input("precision", "f16 or f32, on a device without shader-f16", "fast"));
    }
    Err(Error::input("storage", "f32 or packed_f16, on a device without shader-f16", "f16"))
}
