//! The results of a decode: whole images, and rows of an image that is being decoded.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::plan::Output;
use crate::tensor::Size;
use crate::tensor::rgba8::NOT_FINITE;
use crate::wasm_not_send::WasmNotSendSync;

/// The kind of a result's pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PixelFormat {
    /// RGBA bytes, clamped. Alpha is straight, and 255 for a model without transparency.
    #[default]
    Rgba8,
    /// Planes of floats as the network gives them, about -1 to 1: some networks clamp them, most do
    /// not.
    Raw,
}

crate::named!(PixelFormat, "output": Rgba8 = "rgba8", Raw = "raw");

impl From<PixelFormat> for Output {
    fn from(format: PixelFormat) -> Self {
        match format {
            PixelFormat::Rgba8 => Self::Rgba8,
            PixelFormat::Raw => Self::Raw,
        }
    }
}

/// A decoded frame of a clip.
#[derive(Debug, Clone, PartialEq)]
pub enum Pixels {
    /// RGBA bytes `[h, w, 4]`, see [`PixelFormat::Rgba8`].
    Rgba8(Vec<u8>),
    /// Floats `[c, h, w]`, see [`PixelFormat::Raw`].
    Raw(Vec<f32>),
}

/// The memory of a whole frame: bytes of RGBA pixels, or planes of floats. In both, a pixel of a
/// plane has four bytes.
pub(super) trait Frame: Default + WasmNotSendSync {
    /// The kind of its pixels.
    const FORMAT: PixelFormat;

    /// Returns the frame's bytes, `length` of them: zeros at first.
    fn bytes(&mut self, length: usize) -> &mut [u8];
}

impl Frame for Vec<u8> {
    const FORMAT: PixelFormat = PixelFormat::Rgba8;

    fn bytes(&mut self, length: usize) -> &mut [u8] {
        if self.is_empty() {
            // The system's own zeros, which take no time.
            *self = vec![0; length];
        }
        self
    }
}

impl Frame for Vec<f32> {
    const FORMAT: PixelFormat = PixelFormat::Raw;

    fn bytes(&mut self, length: usize) -> &mut [u8] {
        if self.is_empty() {
            *self = vec![0.0; length / 4];
        }
        bytemuck::cast_slice_mut(self)
    }
}

wasm_not! {
    Send;
    /// A function that takes the frames of a clip, one after another. Natively it is `Send`. An
    /// error of it ends the clip.
    pub type FrameSink<'a, F> = dyn FnMut(F) -> Result<()> + 'a
}

wasm_not! {
    Send;
    /// A function that takes rows of an image, from the top to the bottom. Natively it is `Send`.
    /// An error of it ends the decode.
    pub type RowSink<'a> = dyn FnMut(Rows<'_>) -> Result<()> + 'a
}

/// Copies `data`, some `rows` of each plane of an image of `size`, into their place in `frame`.
pub(super) fn place(frame: &mut impl Frame, size: Size, rows: (u32, u32), data: &[u8]) {
    let row = size.width as usize * 4;
    let (plane, start, part) = (size.height as usize * row, rows.0 as usize * row, (rows.1 - rows.0) as usize * row);
    let frame = frame.bytes(data.len() / part * plane);
    for (plane, rows) in frame.chunks_exact_mut(plane).zip(data.chunks_exact(part)) {
        plane[start..start + part].copy_from_slice(rows);
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
    /// RGBA bytes `[rows, w, 4]`, see [`PixelFormat::Rgba8`].
    Rgba8(&'a [u8]),
    /// Floats `[c, rows, w]`, see [`PixelFormat::Raw`]. An image has 3 channels, or 4 with opacity.
    Raw(Cow<'a, [f32]>),
}

impl<'a> Rows<'a> {
    /// Wraps rows as a plan hands them out.
    pub(super) fn new(image: Size, format: PixelFormat, (start, end): (u32, u32), data: &'a [u8]) -> Self {
        let pixels = match format {
            PixelFormat::Rgba8 => RowPixels::Rgba8(data),
            // Memory that a browser maps need not be aligned.
            PixelFormat::Raw => RowPixels::Raw(match bytemuck::try_cast_slice(data) {
                Ok(values) => Cow::Borrowed(values),
                Err(_) => Cow::Owned(bytemuck::pod_collect_to_vec(data)),
            }),
        };
        Self { image, rows: start..end, pixels }
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

/// Returns an error for a value that is not finite in `data`, rows of an image of `size`: an
/// overflow must not pass as a black picture.
///
/// `image_out` writes [`NOT_FINITE`] for such a value. For a picture that stays on the device, the
/// data are the words of `image_check`, one for each of its workgroups: 1 + the index of the
/// first pixel that is not finite, or 0.
pub(super) fn check_finite(size: Size, output: Output, (start, end): (u32, u32), data: &[u8]) -> Result<()> {
    let width = size.width as usize;
    let words = data.as_chunks::<4>().0;
    let first = match output {
        Output::Rgba8 => words.iter().position(|pixel| *pixel == NOT_FINITE),
        Output::Raw | Output::Tile => {
            let area = (end - start) as usize * width;
            words.iter().position(|value| !f32::from_ne_bytes(*value).is_finite()).map(|index| index % area)
        }
        Output::Picture(_) => {
            let found = words.iter().map(|word| u32::from_le_bytes(*word)).filter(|word| *word > 0).min();
            found.map(|word| word as usize - 1)
        }
    };
    match first {
        None => Ok(()),
        Some(pixel) => Err(Error::NotFinite { column: pixel % width, row: start as usize + pixel / width }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: Size = Size { width: 2, height: 9 };

    #[test]
    fn rows_can_begin_later() {
        let values: Vec<f32> = (0..18_u8).map(f32::from).collect();
        let raw = |rows| Rows::new(IMAGE, PixelFormat::Raw, rows, bytemuck::cast_slice(&values));
        assert_eq!(raw((4, 7)).after(4), Some(raw((4, 7))));
        assert_eq!(raw((4, 7)).after(7), None);
        let later = raw((4, 7)).after(6).unwrap();
        assert_eq!(later.rows, 6..7);
        assert_eq!(later.pixels, RowPixels::Raw(Cow::Owned(vec![4.0, 5.0, 10.0, 11.0, 16.0, 17.0])));
        let bytes: Vec<u8> = (0..24).collect();
        let later = Rows::new(IMAGE, PixelFormat::Rgba8, (4, 7), &bytes).after(5).unwrap();
        assert_eq!((later.rows, later.pixels), (5..7, RowPixels::Rgba8(&bytes[8..])));
    }

    #[test]
    fn rows_find_their_place_in_each_plane() {
        let size = Size { width: 2, height: 3 };
        let mut planes: Vec<f32> = Vec::new();
        place(&mut planes, size, (1, 3), bytemuck::cast_slice(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]));
        place(&mut planes, size, (0, 1), bytemuck::cast_slice(&[-1.0_f32, -2.0, -3.0, -4.0]));
        assert_eq!(planes, [-1.0, -2.0, 1.0, 2.0, 3.0, 4.0, -3.0, -4.0, 5.0, 6.0, 7.0, 8.0]);
        let mut picture: Vec<u8> = Vec::new();
        place(&mut picture, size, (2, 3), &[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(picture, [[0; 16].as_slice(), &[1, 2, 3, 4, 5, 6, 7, 8]].concat());
    }

    #[test]
    fn what_is_not_finite_is_found_in_its_row() {
        let mut values = vec![0.0_f32; 12];
        values[7] = f32::NAN;
        let found = check_finite(IMAGE, Output::Raw, (4, 6), bytemuck::cast_slice(&values));
        assert!(matches!(found, Err(Error::NotFinite { column: 1, row: 5 })));
    }
}
