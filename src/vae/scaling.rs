//! Latents as the diffusion model takes them, of the VAE's own: the inverse of what a decode does to its input.

use crate::error::{Error, Result};
use crate::tensor::HostTensor;

/// Of the VAE's own latents `[c, h, w]`, those of the diffusion model, `[c * patch^2, h / patch, w / patch]`: `patch` by `patch` pixels become channels, which is nothing
/// where `patch` is 1; then `(x - offset) / factor` with the numbers of each channel. `factor` and `offset` are those by which a decode begins, `factor * x + offset`.
///
/// # Errors
/// [`Error::Input`] for latents of other channels than there are numbers for, or with a side that is no multiple of `patch`.
///
/// # Panics
/// When there are not as many summands as factors, or `patch` is 0.
pub fn scale_latents(latents: &HostTensor, factor: &[f32], offset: &[f32], patch: u32) -> Result<HostTensor> {
    assert_eq!(factor.len(), offset.len(), "factors and summands of different channels");
    let patch = patch as usize;
    let channels = factor.len() / (patch * patch);
    let fits = |shape: &[usize]| match *shape {
        [found, height, width] => found == channels && height.is_multiple_of(patch) && width.is_multiple_of(patch),
        _ => false,
    };
    if !fits(&latents.shape) || latents.shape.iter().product::<usize>() != latents.data.len() {
        return Err(Error::Input {
            what: "latents to be scaled".to_owned(),
            expected: format!("[{channels}, h, w], both sides multiples of {patch}"),
            found: format!("{:?}", latents.shape),
        });
    }
    let (width, rows, columns) = (latents.shape[2], latents.shape[1] / patch, latents.shape[2] / patch);
    let mut data = Vec::with_capacity(latents.data.len());
    for (packed, (&factor, &offset)) in factor.iter().zip(offset).enumerate() {
        let (channel, inside) = (packed / (patch * patch), packed % (patch * patch));
        let plane = &latents.data[channel * latents.shape[1] * width..];
        for row in 0..rows {
            let row = &plane[(row * patch + inside / patch) * width..][..width];
            data.extend(row.iter().skip(inside % patch).step_by(patch).map(|&value| unscaled(value, factor, offset)));
        }
    }
    Ok(HostTensor { shape: vec![factor.len(), rows, columns], data })
}

/// `x` of `factor * x + offset = value`, rounded once.
#[expect(clippy::cast_possible_truncation, reason = "rounded")]
fn unscaled(value: f32, factor: f32, offset: f32) -> f32 {
    ((f64::from(value) - f64::from(offset)) / f64::from(factor)) as f32
}
