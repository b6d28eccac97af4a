//! Fewer latents, for previews: means over squares.

use super::batch::At;
use super::{Decoded, Latents, Vae};
use crate::error::{Error, Result};
use crate::model::config::{AutoencoderConfig, LatentSpace};
use crate::tensor::{HostTensor, Size};

/// The smaller size of latents, and which of the larger ones each stands for.
struct Reduction {
    size: Size,
    /// Side of a square of latents that differ from each other.
    cell: u32,
    /// Squares along each side that become one.
    step: u32,
}

impl Reduction {
    /// Returns the reduction of latents of `size` for a picture of at most `max_side` pixels a
    /// side. A cell becomes `pixels` pixels a side.
    fn new(size: Size, pixels: u32, cell: u32, max_side: u32) -> Result<Self> {
        let (pixels, cell) = (pixels.max(1), cell.max(1));
        if max_side < pixels {
            let expected = format!("at least {pixels}, for one latent");
            return Err(Error::input("longest side of a preview", expected, max_side.to_string()));
        }
        if size.width < cell || size.height < cell {
            return Err(Error::input("latents to preview", format!("at least {cell}x{cell}"), size.to_string()));
        }
        let longest = size.width.max(size.height) / cell;
        let step = longest.div_ceil(max_side / pixels);
        // Latents that do not fill a cell are left out.
        let side = |extent: u32| if step > 1 { (extent / cell).div_ceil(step) * cell } else { extent };
        Ok(Self { size: Size { width: side(size.width), height: side(size.height) }, cell, step })
    }

    /// Returns the mean of the latents of `plane`, of size `of`, that the one at `row` and `column`
    /// stands for.
    fn mean(&self, plane: &[f32], of: Size, row: u32, column: u32) -> f32 {
        let places = |at: u32, extent: u32| {
            let first = at / self.cell * self.step * self.cell + at % self.cell;
            let end = extent / self.cell * self.cell;
            (0..self.step).map(move |index| first + index * self.cell).filter(move |place| *place < end)
        };
        let (mut sum, mut count) = (0.0, 0.0);
        for row in places(row, of.height) {
            for column in places(column, of.width) {
                sum += f64::from(plane[(row * of.width + column) as usize]);
                count += 1.0;
            }
        }
        // A mean is no larger than the largest of its values.
        #[expect(clippy::cast_possible_truncation, reason = "rounds")]
        let mean = (sum / count) as f32;
        mean
    }
}

impl AutoencoderConfig {
    /// Returns the size of the latents that [`Latents::reduced`] makes of latents of `size`.
    ///
    /// # Errors
    /// [`Error::Input`] if `max_side` has no room for one latent.
    pub fn reduced_size(&self, size: Size, space: LatentSpace, max_side: u32) -> Result<Size> {
        reduced_size(size, self.decoded_step(space), self.latent_step(space), max_side)
    }
}

/// Returns the size of the latents that [`Latents::reduced_by`] makes of latents of `of`.
pub(crate) fn reduced_size(of: Size, pixels: u32, cell: u32, max_side: u32) -> Result<Size> {
    Reduction::new(of, pixels, cell, max_side).map(|reduction| reduction.size)
}

impl Latents {
    /// Returns latents `[n, c, h, w]` of a smaller picture: each is the mean of a square of
    /// latents, so that a model of this `config` decodes them to at most `max_side` pixels a side.
    /// Returns a copy if the picture is small already.
    ///
    /// # Errors
    /// [`Error::Input`] if `max_side` has no room for one latent, the latents do not fit the model,
    /// or they are on a GPU.
    pub fn reduced(&self, config: &AutoencoderConfig, max_side: u32) -> Result<Self> {
        self.check_channels(config)?;
        let space = self.space(config);
        self.reduced_by(config.decoded_step(space), config.latent_step(space), max_side)
    }

    /// Returns latents of a picture of at most `max_side` pixels a side. Squares of `cell` by
    /// `cell` latents, which differ from each other, become `pixels` pixels a side.
    pub(crate) fn reduced_by(&self, pixels: u32, cell: u32, max_side: u32) -> Result<Self> {
        let of = self.size();
        let reduction = Reduction::new(of, pixels, cell, max_side)?;
        if reduction.step == 1 {
            return Ok(self.clone());
        }
        let (size, mut data) = (reduction.size, Vec::new());
        for index in 0..self.count() {
            for plane in self.image(index)?.chunks_exact(of.width as usize * of.height as usize) {
                let places = (0..size.height).flat_map(|row| (0..size.width).map(move |column| (row, column)));
                data.extend(places.map(|(row, column)| reduction.mean(plane, of, row, column)));
            }
        }
        let shape = [self.count(), self.channels(), size.height, size.width].map(|extent| extent as usize).to_vec();
        Ok(Self::new(HostTensor { shape, data })?.in_space(self.stored_space()))
    }
}

impl<'a> At<'a, Latents> {
    /// Returns the latents of the one image that is meant, after a check that they fit a model of
    /// this `config`.
    pub(crate) fn one(self, config: &AutoencoderConfig) -> Result<Latents> {
        let (batch, index) = self.checked(config)?;
        let shape = [batch.channels(), batch.size().height, batch.size().width].map(|extent| extent as usize).to_vec();
        let one = Latents::new(HostTensor { shape, data: batch.image(index)?.to_vec() })?;
        Ok(one.in_space(batch.stored_space()))
    }
}

impl Vae {
    /// Decodes a smaller picture of one image's latents, at most `max_side` pixels a side, to RGBA
    /// bytes `[h, w, 4]`: see [`Latents::reduced`]. Meant for tiny autoencoders. Repeated previews
    /// of one size allocate no device memory and compile nothing. A whole decode of another size in
    /// between prepares again.
    ///
    /// # Errors
    /// See [`Latents::reduced`] and [`Self::decode`].
    pub async fn preview(&mut self, latents: impl Into<At<'_, Latents>>, max_side: u32) -> Result<Decoded> {
        let one = latents.into().one(self.config())?;
        let small = one.reduced(self.config(), max_side)?;
        self.decode(&small).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::config::Family;

    fn ramp(shape: &[usize]) -> Latents {
        let data = (0_u16..).map(f32::from).take(shape.iter().product()).collect();
        Latents::new(HostTensor { shape: shape.to_vec(), data }).unwrap()
    }

    #[test]
    fn latents_become_means_of_squares() {
        let config = Family::find("sd15").unwrap().config();
        let latents = ramp(&[2, 4, 3, 5]);
        assert_eq!(latents.reduced(&config, 40).unwrap(), latents);
        let small = latents.reduced(&config, 24).unwrap();
        assert_eq!((small.count(), small.size()), (2, Size { width: 3, height: 2 }));
        // Means of rows 0 and 1, then of row 2 alone; the last column stands alone, too.
        assert_eq!(small.image(0).unwrap()[..6], [3.0, 5.0, 6.5, 10.5, 12.5, 14.0]);
        let text = latents.reduced(&config, 7).unwrap_err().to_string();
        assert!(text.contains("at least 8, for one latent") && text.contains('7'), "{text}");
    }

    #[test]
    fn means_of_large_values_are_finite() {
        let config = Family::find("sd15").unwrap().config();
        let latents = Latents::new(HostTensor { shape: vec![1, 4, 2, 2], data: vec![3e38; 16] }).unwrap();
        assert_eq!(latents.reduced(&config, 8).unwrap().image(0).unwrap(), [3e38; 4]);
    }

    #[test]
    fn frames_stay_refused() {
        let config = Family::find("wan21").unwrap().config();
        let text = ramp(&[1, 16, 3, 8, 8]).reduced(&config, 32).unwrap_err().to_string();
        assert!(text.contains("with 3 frames"), "{text}");
    }

    #[test]
    fn rows_that_fill_no_patch_are_left_out() {
        let config = Family::find("fibo2").unwrap().config();
        let data = vec![1.0; 32 * 7 * 9];
        let latents = Latents::new(HostTensor { shape: vec![32, 7, 9], data }).unwrap();
        // A decode then names the odd sides.
        assert_eq!(latents.reduced(&config, 512).unwrap(), latents);
        let small = latents.reduced(&config, 32).unwrap();
        assert_eq!(small.size(), Size { width: 4, height: 4 });
        assert!(small.image(0).unwrap().iter().all(|value| *value == 1.0));
    }

    /// The four places of a patch that lies unpacked are never mixed.
    #[test]
    fn places_of_a_patch_stay_apart() {
        let config = Family::find("fibo2").unwrap().config();
        let data = (0..32).flat_map(|_| (0..64).map(|at: u32| (at / 8 % 2 * 2 + at % 2) as f32)).collect();
        let latents = Latents::new(HostTensor { shape: vec![32, 8, 8], data }).unwrap();
        let small = latents.reduced(&config, 32).unwrap();
        assert_eq!(small.size(), Size { width: 4, height: 4 });
        assert_eq!(small.image(0).unwrap()[31 * 16..][..8], [0.0, 1.0, 0.0, 1.0, 2.0, 3.0, 2.0, 3.0]);
    }
}
