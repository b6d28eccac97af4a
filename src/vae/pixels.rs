//! The results of a decode: whole images, and rows of an image that is being decoded.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::plan::Output;
use crate::tensor::Size;

/// A decoded image.
#[derive(Debug, Clone, PartialEq)]
pub enum Pixels {
    /// RGBA bytes `[h, w, 4]`, clamped; alpha is 255.
    Rgba8(Vec<u8>),
    /// Floats `[c, h, w]`, not clamped; for an image about -1 to 1.
    Raw(Vec<f32>),
}

impl Pixels {
    /// Makes a transparent black picture, or zeros of `channels` planes if the output is floats.
    pub(super) fn empty(size: Size, output: Output, channels: u32) -> Self {
        let pixels = size.width as usize * size.height as usize;
        match output {
            Output::Rgba8 | Output::Picture(_) => Self::Rgba8(vec![0; pixels * 4]),
            Output::Raw | Output::Tile => Self::Raw(vec![0.0; pixels * channels as usize]),
        }
    }

    /// Returns floats `[c, h, w]`. Bytes become floats from 0 to 255.
    pub(super) fn into_floats(self) -> Vec<f32> {
        match self {
            Self::Raw(values) => values,
            Self::Rgba8(bytes) => bytes.into_iter().map(f32::from).collect(),
        }
    }

    /// Returns all rows.
    pub(super) fn rows(&self) -> RowPixels<'_> {
        match self {
            Self::Rgba8(bytes) => RowPixels::Rgba8(bytes),
            Self::Raw(values) => RowPixels::Raw(Cow::Borrowed(values)),
        }
    }

    /// Copies `rows` into their place.
    pub(super) fn place(&mut self, rows: &Rows<'_>) {
        let (start, end) = (rows.rows.start as usize, rows.rows.end as usize);
        let width = rows.image.width as usize;
        match (self, &rows.pixels) {
            (Self::Rgba8(bytes), RowPixels::Rgba8(data)) => {
                bytes[start * width * 4..end * width * 4].copy_from_slice(data);
            }
            (Self::Raw(values), RowPixels::Raw(data)) => {
                let plane = rows.image.height as usize * width;
                for (channel, part) in data.chunks_exact((end - start) * width).enumerate() {
                    values[channel * plane + start * width..][..part.len()].copy_from_slice(part);
                }
            }
            // One plan makes both, so their kinds agree.
            (Self::Rgba8(_), RowPixels::Raw(_)) | (Self::Raw(_), RowPixels::Rgba8(_)) => {}
        }
    }
}

/// Some rows of an image that is being decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows<'a> {
    /// The size of the whole image in pixels.
    pub image: Size,
    /// The range of the rows. Rows come in order, each once.
    pub rows: Range<u32>,
    /// The content of the rows.
    pub pixels: RowPixels<'a>,
}

/// The content of some rows of an image.
#[derive(Debug, Clone, PartialEq)]
pub enum RowPixels<'a> {
    /// RGBA bytes `[rows, w, 4]`, clamped; alpha is 255.
    Rgba8(&'a [u8]),
    /// Floats `[c, rows, w]`, not clamped. An image has 3 channels, about -1 to 1.
    Raw(Cow<'a, [f32]>),
}

impl<'a> Rows<'a> {
    /// Wraps rows as a plan hands them out.
    pub(super) fn new(image: Size, output: Output, (start, end): (u32, u32), data: &'a [u8]) -> Self {
        let pixels = match output {
            Output::Rgba8 | Output::Picture(_) => RowPixels::Rgba8(data),
            // Memory that a browser maps need not be aligned.
            Output::Raw | Output::Tile => RowPixels::Raw(match bytemuck::try_cast_slice(data) {
                Ok(values) => Cow::Borrowed(values),
                Err(_) => Cow::Owned(bytemuck::pod_collect_to_vec(data)),
            }),
        };
        Self { image, rows: start..end, pixels }
    }

    /// Checks that all pixels are finite, because an overflow must not pass as a black picture.
    /// `image_out` writes alpha 0 if a colour is not finite.
    pub(super) fn check_finite(&self) -> Result<()> {
        let width = self.image.width as usize;
        let area = self.rows.len() * width;
        let first = match &self.pixels {
            RowPixels::Rgba8(bytes) => bytes.as_chunks::<4>().0.iter().position(|pixel| pixel[3] == 0),
            RowPixels::Raw(values) => values.iter().position(|value| !value.is_finite()).map(|index| index % area),
        };
        match first {
            None => Ok(()),
            Some(pixel) => {
                Err(Error::NotFinite { column: pixel % width, row: self.rows.start as usize + pixel / width })
            }
        }
    }

    /// Drops the rows before `first`. `None` if no row is left.
    pub(super) fn after(self, first: u32) -> Option<Self> {
        if first <= self.rows.start {
            return Some(self);
        }
        if first >= self.rows.end {
            return None;
        }
        let width = self.image.width as usize;
        let (skipped, plane) = ((first - self.rows.start) as usize * width, self.rows.len() * width);
        let pixels = match self.pixels {
            RowPixels::Rgba8(bytes) => RowPixels::Rgba8(&bytes[skipped * 4..]),
            RowPixels::Raw(values) => {
                let kept = values.chunks_exact(plane).flat_map(|plane| &plane[skipped..]);
                RowPixels::Raw(Cow::Owned(kept.copied().collect()))
            }
        };
        Some(Self { rows: first..self.rows.end, pixels, ..self })
    }
}

/// Checks the words that `image_check` wrote for rows of a picture that stays on the device. There
/// is one word for each of its workgroups: 1 + the index of the first pixel that is not finite, or
/// 0.
pub(super) fn check_words(image: Size, rows: (u32, u32), words: &[u8]) -> Result<()> {
    let words = words.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    match words.filter(|word| *word > 0).min() {
        None => Ok(()),
        Some(first) => {
            let (pixel, width) = (first as usize - 1, image.width as usize);
            Err(Error::NotFinite { column: pixel % width, row: rows.0 as usize + pixel / width })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: Size = Size { width: 2, height: 9 };

    #[test]
    fn rows_can_begin_later() {
        let values: Vec<f32> = (0..18_u8).map(f32::from).collect();
        let raw = |rows| Rows::new(IMAGE, Output::Raw, rows, bytemuck::cast_slice(&values));
        assert_eq!(raw((4, 7)).after(4), Some(raw((4, 7))));
        assert_eq!(raw((4, 7)).after(7), None);
        let later = raw((4, 7)).after(6).unwrap();
        assert_eq!(later.rows, 6..7);
        assert_eq!(later.pixels, RowPixels::Raw(Cow::Owned(vec![4.0, 5.0, 10.0, 11.0, 16.0, 17.0])));
        let bytes: Vec<u8> = (0..24).collect();
        let later = Rows::new(IMAGE, Output::Rgba8, (4, 7), &bytes).after(5).unwrap();
        assert_eq!((later.rows, later.pixels), (5..7, RowPixels::Rgba8(&bytes[8..])));
    }

    #[test]
    fn what_is_not_finite_is_found_in_its_row() {
        let mut values = vec![0.0_f32; 12];
        values[7] = f32::NAN;
        let rows = Rows::new(IMAGE, Output::Raw, (4, 6), bytemuck::cast_slice(&values));
        assert!(matches!(rows.check_finite(), Err(Error::NotFinite { column: 1, row: 5 })));
    }
}
