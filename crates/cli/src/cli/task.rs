//! Task to plan and measure for a picture of some size: the decode that makes it, or the encode of
//! it.

use serde::{Deserialize, Serialize};
use wgvae::{AutoencoderConfig, Checkpoint, Directions, Error, Result, Size, check_decoder, check_encoder};
use wgvae_memory_report::Operation;

/// One decode or encode.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Task {
    /// Decode of latents of this size, in latent pixels.
    Decode(Size),
    /// Encode of an image of this size, pixels.
    Encode(Size),
}

impl Task {
    /// Makes the task for a picture of `size` pixels, which `flag` gave. A decode starts from the
    /// VAE's own latents if `unscaled`, otherwise from the diffusion model's.
    ///
    /// # Errors
    /// For a size that no latents decode to, or that is too small for one latent.
    pub(super) fn new(
        operation: Operation,
        flag: &str,
        size: Size,
        config: &AutoencoderConfig,
        unscaled: bool,
    ) -> Result<Self> {
        if size.width == 0 || size.height == 0 {
            return Err(Error::input(flag, "at least 1 pixel in width and height", size.to_string()));
        }
        match operation {
            Operation::Decode => latent_size(flag, size, config, unscaled).map(Self::Decode),
            Operation::Encode => check_encoded(flag, size, config).map(|()| Self::Encode(size)),
        }
    }

    /// Returns the direction.
    pub(super) fn operation(self) -> Operation {
        match self {
            Self::Decode(_) => Operation::Decode,
            Self::Encode(_) => Operation::Encode,
        }
    }
}

/// Returns the weights to load for `operation` alone.
pub(super) fn directions(operation: Operation) -> Directions {
    match operation {
        Operation::Decode => Directions::Decode,
        Operation::Encode => Directions::Encode,
    }
}

/// Fails for a model without the weights that `operation` needs.
pub(super) fn check_weights(checkpoint: &Checkpoint, operation: Operation) -> Result<()> {
    match operation {
        Operation::Decode => check_decoder(checkpoint),
        Operation::Encode => check_encoder(checkpoint),
    }
}

/// Returns the size of the latents that decode to a picture of `size` pixels.
fn latent_size(flag: &str, size: Size, config: &AutoencoderConfig, unscaled: bool) -> Result<Size> {
    let (factor, latent) = (config.image_step(unscaled), config.latent_factor(unscaled));
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
    let latents = config.latent_size(size, true);
    if latents.width == 0 || latents.height == 0 {
        let least = config.spatial_factor();
        return Err(Error::input(flag, format!("at least {least}x{least} pixels, for one latent"), size.to_string()));
    }
    Ok(())
}
