//! Latents as the diffusion model takes them, of the VAE's own: the inverse of what a decode does to its input.

use super::Vae;
use crate::error::{Error, Result};
use crate::tensor::HostTensor;

impl Vae {
    /// Of the VAE's own latents `[c, h, w]` those that the diffusion model takes: what a decode undoes. Where these are in patches, `[c * p^2, h / p, w / p]`, and without
    /// the rows and columns that fill none.
    ///
    /// # Errors
    /// [`Error::Input`] for latents of another model.
    pub fn scale_latents(&self, own: &HostTensor) -> Result<HostTensor> {
        let (factor, offset) = self.config().latent_scale();
        scale_latents(own, &factor, &offset, self.config().patch)
    }
}

/// Of the VAE's own latents `[c, h, w]`, those of the diffusion model, `[c * patch^2, h / patch, w / patch]`: `patch` by `patch` pixels become channels, without the rows and
/// columns that fill no such square; then `(x - offset) / factor` with the numbers of each channel, those by which a decode begins with `factor * x + offset`.
///
/// # Errors
/// [`Error::Input`] for latents of other channels than there are numbers for.
///
/// # Panics
/// When there are not as many summands as factors, or `patch` is 0.
pub fn scale_latents(latents: &HostTensor, factor: &[f32], offset: &[f32], patch: u32) -> Result<HostTensor> {
    assert_eq!(factor.len(), offset.len(), "factors and summands of different channels");
    let patch = patch as usize;
    let channels = factor.len() / (patch * patch);
    let whole = latents.shape.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent));
    let (height, width) = match *latents.shape.as_slice() {
        [found, height, width] if found == channels && whole == Some(latents.data.len()) => (height, width),
        _ => {
            return Err(Error::Input {
                what: "latents to be scaled".to_owned(),
                expected: format!("[{channels}, h, w]"),
                found: format!("{} values of shape {:?}", latents.data.len(), latents.shape),
            });
        }
    };
    let (rows, columns) = (height / patch, width / patch);
    let mut data = Vec::with_capacity(factor.len() * rows * columns);
    for (packed, (&factor, &offset)) in factor.iter().zip(offset).enumerate() {
        let (channel, inside) = (packed / (patch * patch), packed % (patch * patch));
        for row in 0..rows {
            let start = (channel * height + row * patch + inside / patch) * width + inside % patch;
            data.extend((0..columns).map(|column| unscaled(latents.data[start + column * patch], factor, offset)));
        }
    }
    Ok(HostTensor { shape: vec![factor.len(), rows, columns], data })
}

/// `x` of `factor * x + offset = value`, rounded once.
#[expect(clippy::cast_possible_truncation, reason = "rounded")]
fn unscaled(value: f32, factor: f32, offset: f32) -> f32 {
    ((f64::from(value) - f64::from(offset)) / f64::from(factor)) as f32
}
