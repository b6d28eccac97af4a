//! Pictures for an encoder: read from files (`read`), resized (`fit`, `lanczos`), and converted to
//! the floats that an encoder takes.
//!
//! The result equals that of diffusers' `load_image` and `VaeImageProcessor.preprocess`.

mod fit;
mod jpeg;
mod lanczos;
mod read;

pub use self::fit::{Fit, Fitted, Resize};
pub use self::read::{PictureFile, Remark};

use self::lanczos::{Level, resize};
use wgvae::Size;

/// A picture in host memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Extent in pixels.
    pub size: Size,
    /// RGB levels, `[h, w, 3]`.
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
    /// Resizes the picture by PIL's Lanczos.
    #[must_use]
    pub fn resized(self, size: Size) -> Self {
        let levels = match self.levels {
            Levels::Eight(levels) => Levels::Eight(resize(levels, self.size, size)),
            Levels::Sixteen(levels) => Levels::Sixteen(resize(levels, self.size, size)),
        };
        Self { size, levels }
    }

    /// Crops the middle of the picture. `size` must not exceed its size.
    #[must_use]
    pub fn middle(self, size: Size) -> Self {
        if size == self.size {
            return self;
        }
        let levels = match self.levels {
            Levels::Eight(levels) => Levels::Eight(middle(&levels, self.size, size)),
            Levels::Sixteen(levels) => Levels::Sixteen(middle(&levels, self.size, size)),
        };
        Self { size, levels }
    }

    /// Converts the picture to the input of an encoder: `[3, h, w]`, -1 to 1.
    pub fn to_floats(&self) -> Vec<f32> {
        match &self.levels {
            Levels::Eight(levels) => floats(levels),
            Levels::Sixteen(levels) => floats(levels),
        }
    }
}

/// Returns the first of the middle `side` pixels of `from`. If they cannot be exactly in the
/// middle, the choice is that of diffusers.
pub(super) fn middle_begin(from: u32, side: u32) -> usize {
    (from / 2 - side / 2) as usize
}

/// Crops the middle of `levels`.
fn middle<L: Level>(levels: &[L], from: Size, size: Size) -> Vec<L> {
    let rows = levels.chunks_exact(from.width as usize * 3).skip(middle_begin(from.height, size.height));
    let columns = middle_begin(from.width, size.width) * 3;
    rows.take(size.height as usize).flat_map(|row| &row[columns..columns + size.width as usize * 3]).copied().collect()
}

/// Computes `2 v - 1` for `v` in 0 to 1, plane by plane. Each step rounds as in diffusers.
fn floats<L: Level>(levels: &[L]) -> Vec<f32> {
    let pixels = levels.as_chunks::<3>().0;
    (0..3).flat_map(|channel| pixels.iter().map(move |pixel| 2.0 * pixel[channel].fraction() - 1.0)).collect()
}
