//! Checks of requests, before anything is planned.

use super::latents::{check_image, check_size};
use super::request::{Frames, Request};
use crate::direction::Direction;
use crate::error::{Error, Result};
use crate::limits::{DeviceKind, DeviceLimits};
use crate::model::config::{AutoencoderConfig, LatentSpace, Starts};
use crate::plan::Output;
use crate::tensor::{Size, Storage};
use crate::tiling::{Grid, Tiling};

/// Latents that a clip may be planned for, by a model that keeps something of each. More count as
/// an error of the caller.
const CLIP_LATENTS: std::ops::RangeInclusive<u32> = 1..=16_384;

/// Checks that a model of `config` can do what `request` asks for.
pub(super) fn check_request(config: &AutoencoderConfig, request: &Request) -> Result<()> {
    if request.frames == Frames::Clip {
        check_clip(config, request)?;
    }
    match request.direction {
        Direction::Decode => check_decode(config, request),
        Direction::Encode => check_encode(config, request),
    }
}

/// Returns an error for a network whose frames do not see one another: its clips are images, one by
/// one.
pub(super) fn check_time(config: &AutoencoderConfig) -> Result<()> {
    if config.has_time() {
        return Ok(());
    }
    Err(Error::input("model", "a video model, for a clip", config.network.name()))
}

/// Returns an error for models, outputs and tilings that have no clips.
fn check_clip(config: &AutoencoderConfig, request: &Request) -> Result<()> {
    check_time(config)?;
    if config.network.facts().keeps_all && !CLIP_LATENTS.contains(&request.most_latents()) {
        let expected = format!("{} to {} latents", CLIP_LATENTS.start(), CLIP_LATENTS.end());
        return Err(Error::input("clip_latents", expected, request.most_latents().to_string()));
    }
    if request.output.stays() {
        return Err(Error::input("output", "rgba8 or raw, for a clip", "picture"));
    }
    // Tiles are accepted: a frame that fits one tile is decoded whole.
    if request.tiling == Tiling::Estimate {
        return Err(Error::input("tiling", "exact or tiles, for a clip", format!("{:?}", request.tiling)));
    }
    Ok(())
}

/// Checks the size and the space of the latents, and that they can be cut as the tiling asks.
fn check_decode(config: &AutoencoderConfig, request: &Request) -> Result<()> {
    let (size, space) = (request.size, request.latents);
    check_size("size", size)?;
    if space == LatentSpace::Vae {
        config.check_own_latents()?;
    }
    let step = config.latent_step(space);
    if !size.width.is_multiple_of(step) || !size.height.is_multiple_of(step) {
        return Err(Error::input(
            "size of latents",
            format!("multiples of {step} each way, as the model's statistics are of {step}x{step} latents"),
            size.to_string(),
        ));
    }
    check_image(config.image_size(size, space))?;
    let least = config.network.facts().least_latents;
    check_least(least, "size of latents", size)?;
    match (request.tiling.grid(size), request.tiling.measured_size(size)) {
        // Other tools cut the VAE's own latents, and not patches.
        (Some(_), _) if config.patch > 1 && space == LatentSpace::Model => Err(needs_own(config)),
        (None, Some(_)) if step > 1 => Err(needs_own(config)),
        (Some(_), _) if request.output.stays() => {
            Err(Error::input("output", "rgba8 or raw for tiles, which are blended on the host", "picture"))
        }
        (Some(grid), _) => {
            check_sizes(&grid)?;
            grid.sizes().into_iter().try_for_each(|(size, _)| check_least(least, "size of tiles", size))
        }
        (None, _) => Ok(()),
    }
}

/// Returns an error for latents, or tiles of them, with a side of fewer than `least`.
fn check_least(least: u32, what: &str, size: Size) -> Result<()> {
    if size.width.min(size.height) >= least {
        return Ok(());
    }
    let expected = format!("at least {least}x{least} latents, because the model mirrors its borders");
    Err(Error::input(what, expected, size.to_string()))
}

/// Makes the error for latents in patches, where the VAE's own latents are needed.
fn needs_own(config: &AutoencoderConfig) -> Error {
    Error::input(
        "tiling",
        "the VAE's own latents (unscaled), which other tools cut into tiles",
        format!("latents with patches of {0}x{0}", config.patch),
    )
}

/// Returns an error if tiles have more sizes than are worth a plan each.
fn check_sizes(grid: &Grid) -> Result<()> {
    // An overlap of up to half a tile leaves four sizes, seven eighths at most 81, and all but one
    // latent as many as there are tiles.
    const MOST_SIZES: usize = 100;
    let sizes = grid.sizes().len();
    if sizes > MOST_SIZES {
        return Err(Error::input(
            "tile overlap",
            format!("an overlap that gives tiles of at most {MOST_SIZES} sizes, such as seven eighths of a tile"),
            format!("{} latents of {}, {sizes} sizes", grid.blend().overlap(), grid.blend().tile()),
        ));
    }
    Ok(())
}

/// Returns an error for images that are smaller than a latent or too large to be meant, and for
/// tiles.
fn check_encode(config: &AutoencoderConfig, request: &Request) -> Result<()> {
    check_image(request.size)?;
    let latents = config.latent_size(request.size, LatentSpace::Vae);
    let side = config.spatial_factor();
    if latents.width == 0 || latents.height == 0 {
        return Err(Error::input("image", format!("at least {side}x{side} pixels"), request.size.to_string()));
    }
    let whole = request.size.width.is_multiple_of(side) && request.size.height.is_multiple_of(side);
    if config.network.facts().whole_latents && !whole {
        let expected = format!("sides that are multiples of {side} pixels, for {}", config.network.name());
        return Err(Error::input("image", expected, request.size.to_string()));
    }
    if request.tiling != Tiling::Exact {
        return Err(Error::input("tiling", "exact, for an encode", format!("{:?}", request.tiling)));
    }
    if request.frames == Frames::Image && config.starts() == Starts::EveryFifth {
        let expected = "a clip, because this model's latents of one image are two frames (repeat the image 5 times)";
        return Err(Error::input("encode", expected, "an image"));
    }
    if request.output != Output::Raw {
        return Err(Error::input("output", "raw, for an encode", format!("{:?}", request.output)));
    }
    check_least(config.network.facts().least_encoded, "size of the image's latents", latents)?;
    check_size("image", latents)
}

/// Checks that a device has the hardware's half type, if `storage` needs it.
///
/// # Errors
/// [`Error::Input`] if it does not.
pub(super) fn check_storage(storage: Storage, limits: &DeviceLimits) -> Result<()> {
    if limits.kind == DeviceKind::Host {
        return match storage {
            Storage::F32 | Storage::F16 | Storage::PackedF16 => Ok(()),
            Storage::FastF16 => Err(Error::input("precision", "f16 or f32, on the CPU", "fast")),
        };
    }
    if !storage.needs_shader_f16() || limits.shader_f16 {
        return Ok(());
    }
    if storage == Storage::FastF16 {
        return Err(Error::input("precision", "f16 or f32, on a device without shader-f16", "fast"));
    }
    Err(Error::input("storage", "f32 or packed_f16, on a device without shader-f16", "f16"))
}
