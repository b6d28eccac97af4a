//! Converts the VAE's own latents to those that the diffusion model takes: the inverse of the
//! transform at the start of a decode.

use super::{Latents, Vae};
use crate::error::{Error, Result};
use crate::model::config::{AutoencoderConfig, LatentSpace, Packing};
use crate::tensor::HostTensor;

impl Latents {
    /// Returns the latents of one image as the diffusion model has them.
    ///
    /// # Errors
    /// [`Error::Input`] if they are the VAE's own, and their scale is unknown.
    pub(crate) fn of_diffusion_model(self, config: &AutoencoderConfig) -> Result<Self> {
        if self.space(config) == LatentSpace::Model {
            return Ok(self);
        }
        config.check_own_latents()?;
        let (factor, offset) = if config.takes_own_latents() {
            config.latent_scale()
        } else {
            // The inverse: the network takes what the diffusion model has.
            let (factor, offset) = config.own_latents.scale(config.latent_channels);
            let inverse = || factor.iter().zip(&offset);
            (factor.iter().map(|factor| 1.0 / factor).collect(), inverse().map(|(by, add)| -add / by).collect())
        };
        let shape = [self.channels(), self.size().height, self.size().width].map(|extent| extent as usize).to_vec();
        let own = HostTensor { shape, data: self.image(0)?.to_vec() };
        Self::new(scale_latents(&own, &factor, &offset, config.patch, config.packing)?)
    }
}

impl Vae {
    /// Converts the VAE's own latents `[c, h, w]` to those that the diffusion model takes, the
    /// inverse of a decode's first step. If that model packs patches of p by p latents into
    /// channels, returns `[c * p^2, h / p, w / p]`. Rows and columns that do not fill a patch are
    /// dropped.
    ///
    /// # Errors
    /// [`Error::Input`] for latents of another model.
    pub fn scale_latents(&self, own: &HostTensor) -> Result<HostTensor> {
        let config = self.config();
        let (factor, offset) = config.latent_scale();
        scale_latents(own, &factor, &offset, config.patch, config.packing)
    }

    /// Converts the latents that an encode made, `[c, h, w]` without a distribution, to the VAE's
    /// own or to those that the diffusion model takes, as `space` says.
    ///
    /// # Errors
    /// [`Error::Input`] if the scale of the latents in that space is unknown.
    pub fn encoded_latents(&self, encoded: HostTensor, space: LatentSpace) -> Result<HostTensor> {
        self.planner.check_space(space)?;
        if space == LatentSpace::Model {
            return self.scale_latents(&encoded);
        }
        let config = self.config();
        if config.takes_own_latents() {
            return Ok(encoded);
        }
        let (factor, offset) = config.own_latents.scale(config.latent_channels);
        scale_latents(&encoded, &factor, &offset, 1, Packing::ByChannel)
    }
}

/// Converts the VAE's own latents `[c, h, w]` to those of the diffusion model: `(x - offset) /
/// factor`. A decode begins with the inverse, `factor * x + offset`. There is a factor and an
/// offset for each channel and each place in a patch. Rows and columns that do not fill a square of
/// `patch` by `patch` latents are dropped. `packing` gives the shape of the result: `[c * patch^2,
/// h / patch, w / patch]`, or `[c, h, w]`.
///
/// # Errors
/// [`Error::Input`] if the number of channels does not fit the number of factors.
///
/// # Panics
/// If there are not as many offsets as factors, or `patch` is 0.
pub fn scale_latents(
    latents: &HostTensor,
    factor: &[f32],
    offset: &[f32],
    patch: u32,
    packing: Packing,
) -> Result<HostTensor> {
    assert_eq!(factor.len(), offset.len(), "factors and summands of different channels");
    let (side, held) = (patch as usize, packing.held(patch) as usize);
    let channels = factor.len() / (side * side);
    let (channel_step, place_step) = packing.steps(u32::try_from(channels).unwrap_or(u32::MAX), patch);
    let whole = latents.shape.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent));
    let (height, width) = match *latents.shape.as_slice() {
        [found, height, width] if found == channels && whole == Some(latents.data.len()) => (height, width),
        _ => {
            return Err(Error::input(
                "latents to be scaled",
                format!("[{channels}, h, w]"),
                format!("{} values of shape {:?}", latents.data.len(), latents.shape),
            ));
        }
    };
    let (rows, columns) = (height / side * side, width / side * side);
    let shape = [channels * held * held, rows / held, columns / held];
    let mut data = vec![0.0; shape.iter().product()];
    for channel in 0..channels {
        for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
            let place = row % side * side + column % side;
            let index = channel * channel_step as usize + place * place_step as usize;
            let plane = if held == side { index } else { channel };
            let value = latents.data[(channel * height + row) * width + column];
            data[(plane * shape[1] + row / held) * shape[2] + column / held] =
                unscaled(value, factor[index], offset[index]);
        }
    }
    Ok(HostTensor { shape: shape.to_vec(), data })
}

/// Solves `factor * x + offset = value` for `x`, rounded once.
#[expect(clippy::cast_possible_truncation, reason = "rounded")]
fn unscaled(value: f32, factor: f32, offset: f32) -> f32 {
    ((f64::from(value) - f64::from(offset)) / f64::from(factor)) as f32
}
