//! Pictures for an encoder: read from files (`read`), resized (`fit`, `lanczos`), and converted to
//! the floats that an encoder takes.
//!
//! The result equals that of diffusers' `load_image` and `VaeImageProcessor.preprocess`, except for
//! JPEG files, whose levels are near Pillow's: zune-jpeg, which decodes them here, rounds in other
//! places than libjpeg-turbo, and has no setting for it.

mod fit;
mod jpeg;
mod lanczos;
mod orientation;
mod read;

pub use self::fit::{Fit, Fitted, Resize};
pub(crate) use self::read::check_memory;
pub use self::read::{PictureFile, Remark};

use self::lanczos::{Level, resize};
use wgvae::Size;

/// A picture in host memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Extent in pixels.
    pub size: Size,
    /// RGB levels `[h, w, 3]`, or RGBA levels `[h, w, 4]` with straight alpha. The length tells
    /// which.
    pub levels: Levels,
}

/// Levels of a picture, in the precision of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Levels {
    /// 0 to 255.
    Eight(Vec<u8>),
    /// 0 to 65535.
    Sixteen(Vec<u16>),
}

impl Picture {
    /// Returns the number of channels: 4 with alpha, else 3.
    pub fn channels(&self) -> u32 {
        let values = match &self.levels {
            Levels::Eight(levels) => levels.len(),
            Levels::Sixteen(levels) => levels.len(),
        };
        if self.size.pixels() * 4 == values as u64 { 4 } else { 3 }
    }

    /// Resizes the picture by PIL's Lanczos. As in PIL, colours are multiplied by alpha while they
    /// are resized. PIL has no 16-bit RGBA, so that is done in the same way with more bits.
    #[must_use]
    pub fn resized(self, size: Size) -> Self {
        if size == self.size {
            return self;
        }
        let channels = self.channels();
        let levels = match self.levels {
            Levels::Eight(levels) => Levels::Eight(resize(levels, channels, self.size, size)),
            Levels::Sixteen(levels) => Levels::Sixteen(resize(levels, channels, self.size, size)),
        };
        Self { size, levels }
    }

    /// Crops the middle of the picture. `size` must not exceed its size.
    #[must_use]
    pub fn middle(self, size: Size) -> Self {
        if size == self.size {
            return self;
        }
        let channels = self.channels() as usize;
        let levels = match self.levels {
            Levels::Eight(levels) => Levels::Eight(middle(&levels, channels, self.size, size)),
            Levels::Sixteen(levels) => Levels::Sixteen(middle(&levels, channels, self.size, size)),
        };
        Self { size, levels }
    }

    /// Converts the picture to the input of an encoder: `[3, h, w]` or `[4, h, w]`, -1 to 1. Alpha
    /// 0 becomes -1.
    pub fn to_floats(&self) -> Vec<f32> {
        let channels = self.channels() as usize;
        match &self.levels {
            Levels::Eight(levels) => floats(levels, channels),
            Levels::Sixteen(levels) => floats(levels, channels),
        }
    }
}

/// Returns the first of the middle `side` pixels of `from`. If they cannot be exactly in the
/// middle, the choice is that of diffusers.
pub(super) fn middle_begin(from: u32, side: u32) -> usize {
    (from / 2 - side / 2) as usize
}

/// Crops the middle of `levels`.
fn middle<L: Level>(levels: &[L], channels: usize, from: Size, size: Size) -> Vec<L> {
    let rows = levels.chunks_exact(from.width as usize * channels).skip(middle_begin(from.height, size.height));
    let (begin, length) = (middle_begin(from.width, size.width) * channels, size.width as usize * channels);
    rows.take(size.height as usize).flat_map(|row| &row[begin..begin + length]).copied().collect()
}

/// Computes `2 v - 1` for `v` in 0 to 1, plane by plane. Each step rounds as in diffusers.
fn floats<L: Level>(levels: &[L], channels: usize) -> Vec<f32> {
    let plane = |channel| levels.iter().skip(channel).step_by(channels).map(|level| 2.0 * level.fraction() - 1.0);
    (0..channels).flat_map(plane).collect()
}
