//! Upsampling of chroma planes with half the width or height of the picture. It is linear between
//! samples, and the file says where its samples lie.

use wgvae::Size;

/// Position of chroma samples along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Siting {
    /// One sample for each pixel.
    Every,
    /// One sample for two pixels, at the first of them.
    First,
    /// One sample for two pixels, halfway between them.
    Between,
}

impl Siting {
    /// Returns the number of samples along a side of `pixels` pixels.
    pub(super) fn samples(self, pixels: u32) -> u32 {
        if self == Self::Every { pixels } else { pixels.div_ceil(2) }
    }

    /// Returns for each pixel the sample on its left and the weight of the next sample.
    fn taps(self, pixels: u32) -> Vec<Tap> {
        let last = self.samples(pixels).saturating_sub(1) as usize;
        let tap = |pixel: usize| match (self, pixel % 2) {
            (Self::Every, _) => (pixel, 0.0),
            (Self::First, 0) => (pixel / 2, 0.0),
            (Self::First, _) => (pixel / 2, 0.5),
            // A pair's sample lies halfway between its pixels: a quarter of a sample after the
            // first, before the second.
            (Self::Between, 0) if pixel == 0 => (0, 0.0),
            (Self::Between, 0) => (pixel / 2 - 1, 0.75),
            (Self::Between, _) => (pixel / 2, 0.25),
        };
        let tap = |pixel: usize| {
            let (left, part) = tap(pixel);
            Tap { left, right: (left + 1).min(last), part }
        };
        (0..pixels as usize).map(tap).collect()
    }
}

struct Tap {
    left: usize,
    right: usize,
    part: f32,
}

impl Tap {
    fn between(&self, left: f32, right: f32) -> f32 {
        left + (right - left) * self.part
    }
}

/// Expands `plane` to `size`. `across` and `down` give the position of its samples along each axis.
pub(super) fn expand(plane: Vec<f32>, size: Size, across: Siting, down: Siting) -> Vec<f32> {
    if across == Siting::Every && down == Siting::Every {
        return plane;
    }
    let width = across.samples(size.width) as usize;
    let columns = across.taps(size.width);
    let mut expanded = Vec::with_capacity(columns.len() * size.height as usize);
    for row in down.taps(size.height) {
        let sample = |column: usize| row.between(plane[row.left * width + column], plane[row.right * width + column]);
        expanded.extend(columns.iter().map(|column| column.between(sample(column.left), sample(column.right))));
    }
    expanded
}
