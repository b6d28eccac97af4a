//! Requests for a picture of some size: the decode that makes it, or the encode of it.

use wgvae::config::AutoencoderConfig;
use wgvae::{Checkpoint, Direction, Error, LatentSpace, Request, Result, Size};

/// Makes the request for a picture of `size` pixels, which `flag` gave. A decode starts from
/// latents in `space`.
///
/// # Errors
/// For a size that no latents decode to, or that is too small for one latent.
pub(super) fn request_for(
    operation: Direction,
    flag: &str,
    size: Size,
    config: &AutoencoderConfig,
    space: LatentSpace,
) -> Result<Request> {
    if size.width == 0 || size.height == 0 {
        return Err(Error::input(flag, "at least 1 pixel in width and height", size.to_string()));
    }
    match operation {
        Direction::Decode => latent_size(flag, size, config, space).map(|size| Request::decode(size, space)),
        Direction::Encode => check_encoded(flag, size, config).map(|()| Request::encode(size)),
    }
}

/// Fails for a model without the weights that `operation` needs.
pub(super) fn check_weights(checkpoint: &Checkpoint, operation: Direction) -> Result<()> {
    match operation {
        Direction::Decode => checkpoint.check_decoder(),
        Direction::Encode => checkpoint.check_encoder(),
    }
}

/// Returns the size of the latents that decode to a picture of `size` pixels.
fn latent_size(flag: &str, size: Size, config: &AutoencoderConfig, space: LatentSpace) -> Result<Size> {
    let (factor, latent) = (config.decoded_step(space), config.decoded_factor(space));
    if !size.width.is_multiple_of(factor) || !size.height.is_multiple_of(factor) {
        let below = |extent: u32| (extent / factor).max(1) * factor;
        let above = |extent: u32| extent.div_ceil(factor).checked_mul(factor).unwrap_or_else(|| below(extent));
        let smaller = Size { width: below(size.width), height: below(size.height) };
        let larger = Size { width: above(size.width), height: above(size.height) };
        let nearest = if smaller == larger { smaller.to_string() } else { format!("{smaller} or {larger}") };
        return Err(Error::input(flag, format!("multiples of {factor} pixels, such as {nearest}"), size.to_string()));
    }
    Ok(Size { width: size.width / latent, height: size.height / latent })
}

/// Checks that an image of `size` gives at least one latent; any such size can be encoded.
fn check_encoded(flag: &str, size: Size, config: &AutoencoderConfig) -> Result<()> {
    let latents = config.latent_size(size, LatentSpace::Vae);
    if latents.width == 0 || latents.height == 0 {
        let least = config.spatial_factor();
        return Err(Error::input(flag, format!("at least {least}x{least} pixels, for one latent"), size.to_string()));
    }
    Ok(())
}
