//! What an encoder says about latents: a normal distribution for each. Mode, deviation, samples.

use super::noise::normals;
use crate::error::{Error, Result};
use crate::tensor::HostTensor;

/// Bounds of the logarithm of a variance, as in diffusers' `DiagonalGaussianDistribution`.
const LOG_VARIANCE: (f32, f32) = (-30.0, 20.0);

/// The distribution of one image's latents: each is normal and knows nothing of the others. They
/// are the VAE's own, without the diffusion model's scale.
#[derive(Debug, Clone, PartialEq)]
pub struct Posterior {
    mean: HostTensor,
    /// Of each latent; none where the encoder gives latents themselves.
    log_variance: Option<Vec<f32>>,
}

impl Posterior {
    /// Of an encoder's output for one image: `[2 c, h, w]`, means and then the variances'
    /// logarithms, where latents have `channels` `c`. `[c, h, w]`, which the tiny autoencoders
    /// give, are latents that are certain.
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
            _ => Err(Error::Input {
                what: "moments".to_owned(),
                expected: format!("[{}, h, w] or [{channels}, h, w]", 2 * channels),
                found: format!("{} values of shape {shape:?}", data.len()),
            }),
        }
    }

    /// The likeliest latents, which are the means: `[c, h, w]`.
    pub fn mode(&self) -> &HostTensor {
        &self.mean
    }

    /// As [`Self::mode`].
    pub fn into_mode(self) -> HostTensor {
        self.mean
    }

    /// The standard deviation of each latent, `[c, h, w]`; none where the encoder gives latents
    /// themselves.
    pub fn deviation(&self) -> Option<HostTensor> {
        let data = self.log_variance.as_ref()?.iter().map(|&value| rounded(deviation(value))).collect();
        Some(HostTensor { shape: self.mean.shape.clone(), data })
    }

    /// Latents drawn at random, `[c, h, w]`: the same for the same `seed` on every machine. `image`
    /// is the index within a batch, each of which has noise of its own.
    ///
    /// # Errors
    /// [`Error::Input`] where the encoder gives latents themselves.
    pub fn sample(&self, seed: u64, image: u32) -> Result<HostTensor> {
        self.sample_with(&normals(seed, image, self.mean.data.len()))
    }

    /// As [`Self::sample`], of noise that the caller has: a standard normal number for each latent,
    /// `[c, h, w]`.
    ///
    /// # Errors
    /// [`Error::Input`] for another number of them, and where the encoder gives latents themselves.
    pub fn sample_with(&self, noise: &[f32]) -> Result<HostTensor> {
        let Some(log_variance) = &self.log_variance else {
            return Err(Error::Input {
                what: "sample".to_owned(),
                expected: "an encoder that gives a distribution".to_owned(),
                found: "one that gives latents themselves: there is only the mode".to_owned(),
            });
        };
        if noise.len() != self.mean.data.len() {
            return Err(Error::Input {
                what: "noise".to_owned(),
                expected: format!("{} values", self.mean.data.len()),
                found: noise.len().to_string(),
            });
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

/// By software, so that every machine has the same.
fn deviation(log_variance: f32) -> f64 {
    let (least, most) = LOG_VARIANCE;
    libm::exp(0.5 * f64::from(log_variance.clamp(least, most)))
}

#[expect(clippy::cast_possible_truncation, reason = "rounded")]
fn rounded(value: f64) -> f32 {
    value as f32
}
