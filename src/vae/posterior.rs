//! The output of an encoder as a distribution of latents: mode, deviation, samples.

use super::noise::normals;
use crate::error::{Error, Result};
use crate::tensor::HostTensor;

/// The bounds of a variance's logarithm, as in diffusers' `DiagonalGaussianDistribution`.
const LOG_VARIANCE: (f32, f32) = (-30.0, 20.0);

/// The distribution of one image's latents. Each latent is normal and independent of the others.
/// The latents are in the VAE's own scale, not the diffusion model's.
///
/// ```no_run
/// use wgvae::images::Posterior;
/// use wgvae::{HostTensor, Images, LatentSpace, Vae};
///
/// /// Returns a sample of an image's latents `[c, h, w]`, in the scale of the diffusion model.
/// async fn encode(vae: &mut Vae, image: &Images) -> wgvae::Result<HostTensor> {
///     let encoded = vae.encode(image).await?;
///     let posterior = Posterior::new(encoded.moments, vae.config().latent_channels)?;
///     vae.encoded_latents(posterior.sample(0, 0)?, LatentSpace::Model)
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Posterior {
    mean: HostTensor,
    /// The logarithm of each latent's variance; `None` if the encoder returns latents instead of a
    /// distribution.
    log_variance: Option<Vec<f32>>,
}

impl Posterior {
    /// Reads an encoder's output for one image, for latents of `channels` `c`. The shape is `[2 c,
    /// h, w]`, means and then the variances' logarithms. Tiny autoencoders return `[c, h, w]`:
    /// latents without a distribution.
    ///
    /// # Errors
    /// [`Error::Input`] for another shape.
    pub fn new(moments: HostTensor, channels: u32) -> Result<Self> {
        let channels = channels as usize;
        let HostTensor { shape, mut data } = moments;
        let whole = shape.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent)) == Some(data.len());
        match *shape.as_slice() {
            [found, height, width] if whole && channels > 0 && (found == channels || found == 2 * channels) => {
                let log_variance = (found > channels).then(|| data.split_off(data.len() / 2));
                Ok(Self { mean: HostTensor { shape: vec![channels, height, width], data }, log_variance })
            }
            _ => Err(Error::input(
                "moments",
                format!("[{}, h, w] or [{channels}, h, w]", 2 * channels),
                format!("{} values of shape {shape:?}", data.len()),
            )),
        }
    }

    /// Returns the most likely latents, which are the means: `[c, h, w]`.
    pub fn mode(&self) -> &HostTensor {
        &self.mean
    }

    /// Returns [`Self::mode`] by value.
    pub fn into_mode(self) -> HostTensor {
        self.mean
    }

    /// Returns the standard deviation of each latent, `[c, h, w]`; `None` if the encoder returns
    /// latents instead of a distribution.
    pub fn deviation(&self) -> Option<HostTensor> {
        let data = self.log_variance.as_ref()?.iter().map(|&value| rounded(deviation(value))).collect();
        Some(HostTensor { shape: self.mean.shape.clone(), data })
    }

    /// Draws latents at random, `[c, h, w]`. One `seed` gives the same latents on every machine.
    /// `image` is the index within a batch; each image has noise of its own.
    ///
    /// # Errors
    /// [`Error::Input`] if the encoder returns latents instead of a distribution.
    pub fn sample(&self, seed: u64, image: u32) -> Result<HostTensor> {
        self.sample_with(&normals(seed, image, self.mean.data.len()))
    }

    /// Draws latents like [`Self::sample`], from the caller's noise: a standard normal number for
    /// each latent, `[c, h, w]`.
    ///
    /// # Errors
    /// [`Error::Input`] for another number of values, and if the encoder returns latents instead of
    /// a distribution.
    pub fn sample_with(&self, noise: &[f32]) -> Result<HostTensor> {
        let Some(log_variance) = &self.log_variance else {
            return Err(Error::input(
                "sample",
                "an encoder that returns a distribution",
                "one that returns latents: there is only the mode",
            ));
        };
        if noise.len() != self.mean.data.len() {
            return Err(Error::input("noise", format!("{} values", self.mean.data.len()), noise.len().to_string()));
        }
        let drawn = self.mean.data.iter().zip(log_variance).zip(noise);
        let data = drawn
            .map(|((&mean, &log_variance), &noise)| {
                rounded(f64::from(mean) + deviation(log_variance) * f64::from(noise))
            })
            .collect();
        Ok(HostTensor { shape: self.mean.shape.clone(), data })
    }
}

/// Returns the standard deviation. Computed in software, so that it is the same on every machine.
fn deviation(log_variance: f32) -> f64 {
    let (least, most) = LOG_VARIANCE;
    libm::exp(0.5 * f64::from(log_variance.clamp(least, most)))
}

#[expect(clippy::cast_possible_truncation, reason = "rounded")]
fn rounded(value: f64) -> f32 {
    value as f32
}
