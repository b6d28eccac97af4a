//! Previews of latents, for display while a diffusion model works.
//!
//! [`preview()`] needs neither weights nor a device: a published linear map makes one pixel of each
//! latent. [`Vae::preview`](crate::Vae::preview) decodes fewer latents, for which a tiny
//! autoencoder takes milliseconds.

mod linear;

use self::linear::{LINEAR, Linear};
use crate::error::{Error, Result};
use crate::model::config::{AutoencoderConfig, Family, LatentSpace};
use crate::tensor::Size;
use crate::vae::{At, Latents, reduced_size};

/// A small picture of latents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The picture's size in pixels.
    pub size: Size,
    /// Opaque RGBA bytes `[h, w, 4]`.
    pub pixels: Vec<u8>,
}

/// Makes a preview of one image's latents `[c, h, w]` of a published model: a pixel for each latent
/// of the VAE, by the linear map that `ComfyUI` uses. If a side has more than `max_side` pixels,
/// squares of latents become one pixel each, by their means.
///
/// ```
/// use wgvae::{HostTensor, Latents, preview::preview};
///
/// let tensor = HostTensor { shape: vec![4, 128, 96], data: vec![0.0; 4 * 128 * 96] };
/// let latents = Latents::new(tensor)?;
/// let picture = preview(&latents, "sdxl", 64)?;
/// assert_eq!((picture.size.width, picture.size.height), (48, 64));
/// # Ok::<(), wgvae::Error>(())
/// ```
///
/// # Errors
/// [`Error::Input`] for an unknown family, one whose map is unknown, another number of channels,
/// several images of which none was chosen, or a `max_side` of 0.
pub fn preview<'a>(latents: impl Into<At<'a, Latents>>, family: &str, max_side: u32) -> Result<Preview> {
    let config = Family::find(family)?.config();
    let linear = Linear::find(family)?;
    let one = latents.into().one(&config)?.of_diffusion_model(&config)?;
    let [pixels, cell] = pixels_of_cell(&config);
    linear.picture(&config, &one.reduced_by(pixels, cell, max_side)?)
}

/// Returns the size in pixels of the picture that [`preview()`] makes of the diffusion model's
/// latents of size `latents`.
///
/// # Errors
/// [`Error::Input`] for an unknown family, one whose map is unknown, latents too small for the
/// model, or a `max_side` without room for one latent.
pub fn preview_size(latents: Size, family: &str, max_side: u32) -> Result<Size> {
    let config = Family::find(family)?.config();
    Linear::find(family)?;
    let [pixels, cell] = pixels_of_cell(&config);
    let small = reduced_size(latents, pixels, cell, max_side)?;
    let held = config.patch_side(LatentSpace::Model);
    Ok(Size { width: small.width * held, height: small.height * held })
}

/// Returns the pixels along each side of a cell of latents that differ from each other, and its
/// latents along each side.
fn pixels_of_cell(config: &AutoencoderConfig) -> [u32; 2] {
    let cell = config.latent_step(LatentSpace::Model);
    [config.patch_side(LatentSpace::Model) * cell, cell]
}

/// Returns the names of the families that [`preview()`] knows.
pub fn families() -> impl Iterator<Item = &'static str> {
    LINEAR.iter().flat_map(|linear| linear.families).copied()
}

impl Linear {
    fn find(family: &str) -> Result<&'static Self> {
        LINEAR.iter().find(|linear| linear.families.contains(&family)).ok_or_else(|| {
            let known: Vec<&str> = families().collect();
            let expected = format!(
                "one whose linear map wgvae has: {}; others need a decode, such as by a tiny autoencoder",
                known.join(", ")
            );
            Error::input("family to preview", expected, format!("\"{family}\""))
        })
    }

    /// Makes the picture of `latents` of one image, with a pixel for each latent of the VAE.
    fn picture(&self, config: &AutoencoderConfig, latents: &Latents) -> Result<Preview> {
        let values = latents.image(0)?;
        let (held, of) = (config.patch_side(LatentSpace::Model).max(1), latents.size());
        let size = Size { width: of.width * held, height: of.height * held };
        let (channel_step, place_step) = config.packing.steps(config.latent_channels, held);
        let plane = of.width as usize * of.height as usize;
        let mut pixels = Vec::with_capacity(size.width as usize * size.height as usize * 4);
        for (row, column) in (0..size.height).flat_map(|row| (0..size.width).map(move |column| (row, column))) {
            let place = (row % held * held + column % held) * if held > 1 { place_step } else { 0 };
            let at = (row / held * of.width + column / held) as usize;
            // In f64, as large latents times factors exceed what f32 holds.
            let mut color = self.bias.map(f64::from);
            for (channel, factors) in (0..).zip(self.factors.chunks_exact(3)) {
                let step = if held > 1 { channel_step } else { 1 };
                let value = values[(channel * step + place) as usize * plane + at];
                color
                    .iter_mut()
                    .zip(factors)
                    .for_each(|(color, factor)| *color += f64::from(*factor) * f64::from(value));
            }
            pixels.extend(color.map(level));
            pixels.push(u8::MAX);
        }
        Ok(Preview { size, pixels })
    }
}

/// Returns the level of a colour from -1 to 1, which is in ten-thousandths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn level(color: f64) -> u8 {
    ((color * 1e-4 + 1.0) * 127.5).clamp(0.0, 255.0).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::HostTensor;

    fn latents(shape: &[usize]) -> Latents {
        let data = (0..shape.iter().product()).map(|at: usize| (at * 7 % 11) as f32 * 0.3 - 1.5).collect();
        Latents::new(HostTensor { shape: shape.to_vec(), data }).unwrap()
    }

    #[test]
    fn every_map_fits_its_families() {
        for linear in LINEAR {
            for name in linear.families {
                let config = Family::find(name).unwrap().config();
                assert_eq!(linear.factors.len(), 3 * config.latent_channels as usize, "{name}");
            }
        }
    }

    #[test]
    fn a_pixel_is_the_linear_map_of_its_latent() {
        let latents = latents(&[1, 4, 2, 3]);
        let picture = preview(&latents, "sdxl", 512).unwrap();
        assert_eq!(picture.size, Size { width: 3, height: 2 });
        let plane = |channel: usize| latents.image(0).unwrap()[channel * 6 + 4];
        let factors = [0.3651_f32, -0.2533, 0.1076, -0.3165];
        let red: f32 =
            0.1084 + factors.iter().enumerate().map(|(channel, factor)| factor * plane(channel)).sum::<f32>();
        assert_eq!(f32::from(picture.pixels[4 * 4]), ((red + 1.0) * 127.5).clamp(0.0, 255.0).round());
        assert_eq!(picture.pixels[4 * 4 + 3], 255);
    }

    /// A value that f32 holds, but not its product with a factor.
    #[test]
    fn large_latents_have_the_colours_of_their_signs() {
        let data = vec![3e38, 3e38, 0.0, 0.0];
        let latents = Latents::new(HostTensor { shape: vec![4, 1, 1], data }).unwrap();
        // The first two factors of each colour have positive sums.
        assert_eq!(preview(&latents, "sdxl", 9).unwrap().pixels, [255; 4]);
    }

    /// Latents of zeros show a map's bias, and a one in the last channel adds its last factors.
    #[test]
    fn maps_begin_and_end_as_published() {
        let cases: [(&str, usize, [f32; 3], [f32; 3]); 6] = [
            ("qwen_image_layered", 16, [-0.1835, -0.0868, -0.3360], [0.1984, 0.0913, 0.1861]),
            ("lightvaew2_1", 16, [-0.1835, -0.0868, -0.3360], [0.1984, 0.0913, 0.1861]),
            ("ming_image", 16, [-0.1048, -0.1049, -0.1874], [0.7366, 0.4105, 0.6899]),
            ("taehv1_5", 32, [0.0456, -0.0202, -0.0644], [0.0005, -0.0106, 0.0242]),
            ("taeh3", 24, [0.057426, -0.022078, -0.071449], [0.004224, 0.017284, 0.027196]),
            ("ltx2_3", 128, [-0.347892, -0.363814, -0.370287], [-0.019355, -0.021055, -0.021919]),
        ];
        for (family, channels, bias, last) in cases {
            let mut data = vec![0.0; channels * 2];
            data[channels * 2 - 1] = 1.0;
            let latents = Latents::new(HostTensor { shape: vec![channels, 1, 2], data }).unwrap();
            let pixels = preview(&latents, family, 9).unwrap().pixels;
            for color in 0..3 {
                let [dark, lit] = [bias[color], bias[color] + last[color]].map(|value| (value + 1.0) * 127.5);
                assert!((f32::from(pixels[color]) - dark).abs() < 0.52, "{family}");
                assert!((f32::from(pixels[4 + color]) - lit).abs() < 0.52, "{family}");
            }
        }
    }

    /// Three packings of equal values give one picture.
    #[test]
    fn packings_are_undone() {
        let (width, height) = (3, 2);
        let unpacked = latents(&[32, 2 * height, 2 * width]);
        let values = unpacked.image(0).unwrap();
        let packed = |by_place: bool| {
            let mut data = vec![0.0; values.len()];
            for (at, value) in values.iter().enumerate() {
                let (channel, row, column) =
                    (at / (4 * width * height), at / (2 * width) % (2 * height), at % (2 * width));
                let place = row % 2 * 2 + column % 2;
                let plane = if by_place { place * 32 + channel } else { channel * 4 + place };
                data[(plane * height + row / 2) * width + column / 2] = *value;
            }
            Latents::new(HostTensor { shape: vec![128, height, width], data }).unwrap()
        };
        let expected = preview(&unpacked, "fibo2", 512).unwrap();
        assert_eq!(expected.size, Size { width: 6, height: 4 });
        assert_eq!(preview(&packed(false), "flux2", 512).unwrap(), expected);
        assert_eq!(preview(&packed(true), "ideogram4", 512).unwrap(), expected);
    }

    /// The VAE's own latents, such as `ComfyUI`'s, are scaled first.
    #[test]
    fn own_latents_give_the_same_picture() {
        for (family, channels, factor, shift) in [
            ("sdxl", 4, 0.13025, 0.0),
            ("flux1", 16, 0.3611, 0.1159),
            ("taesdxl", 4, 0.13025, 0.0),
            ("ming_image", 16, 8.0064, 0.0),
            ("hunyuan_video15", 32, 1.03682, 0.0),
        ] {
            let of_model = latents(&[channels, 3, 2]);
            let own = of_model.image(0).unwrap().iter().map(|value| value / factor + shift).collect();
            let shape = [of_model.channels(), 3, 2].map(|extent| extent as usize).to_vec();
            let own = Latents::new(HostTensor { shape, data: own }).unwrap().in_space(LatentSpace::Vae);
            let [one, other] = [&own, &of_model].map(|latents| preview(latents, family, 9).unwrap());
            let differs = one.pixels.iter().zip(&other.pixels).any(|(left, right)| left.abs_diff(*right) > 1);
            assert!(!differs, "{family}");
        }
    }

    #[test]
    fn wrong_input_is_named() {
        let text = |result: Result<Preview>| result.unwrap_err().to_string();
        let four = latents(&[1, 4, 2, 2]);
        assert!(text(preview(&four, "nothing", 9)).contains("\"nothing\""));
        assert!(
            text(preview(&latents(&[1, 16, 2, 2]), "seedvr2", 9)).contains("family to preview: expected one whose")
        );
        assert!(text(preview(&four, "flux1", 9)).contains("16 channels"));
        assert!(text(preview(&four, "sdxl", 0)).contains("at least 1"));
        assert!(text(preview(&latents(&[2, 4, 2, 2]), "sdxl", 9)).contains("2 images"));
    }
}
