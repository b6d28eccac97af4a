//! The division of a convolution by `unfold` into bands.

use crate::kernels::WORKGROUP;
use crate::kernels::choice::KernelChoice;
use crate::kernels::unfold::TAPS;
use crate::limits::DeviceLimits;
use crate::model::graph::Shape;
use crate::plan::partition::RowRange;
use crate::tensor::Storage;

/// Fewest output pixels in a launch that keep its product efficient.
const LEAST_PIXELS: u64 = 64;

/// The output pixels of one convolution. A band is whole rows if one row fits the scratch memory,
/// else a part of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unfolding {
    /// Bytes of the unfolded input for one output pixel.
    pub(super) pixel_bytes: u64,
    /// Most output pixels of a band.
    most: u32,
    width: u32,
}

impl Unfolding {
    /// Returns the bands of a convolution to `output` that reads `input4` groups of four channels
    /// of a pixel, of all frames. Its intermediates stay in cache and within one binding and
    /// launch.
    pub(super) fn new(
        input4: u32,
        output: Shape,
        storage: Storage,
        choice: &KernelChoice,
        limits: &DeviceLimits,
    ) -> Self {
        let taps = u64::from(TAPS) * u64::from(input4);
        let pixel_bytes = taps * storage.vec4_bytes();
        let wanted = (choice.winograd_scratch_bytes / pixel_bytes).max(LEAST_PIXELS);
        let bound = limits.largest_bound_buffer().0 / pixel_bytes;
        let workgroups = u64::from(limits.max_compute_workgroups_per_dimension).saturating_pow(2);
        let launched = workgroups.saturating_mul(u64::from(WORKGROUP)) / taps;
        let most = wanted.min(bound).min(launched).min(u64::from(u32::MAX) / taps).max(1);
        Self { pixel_bytes, most: u32::try_from(most).unwrap_or(u32::MAX), width: output.width }
    }

    /// Returns the rows of the output that are gathered together.
    pub(super) fn bands(self, rows: RowRange) -> impl Iterator<Item = RowRange> {
        let step = (self.most / self.width).max(1);
        (rows.start..rows.end)
            .step_by(step as usize)
            .map(move |start| RowRange { start, end: rows.end.min(start.saturating_add(step)) })
    }

    /// Returns the launches of one band: the first pixel, counted in the whole output, and the
    /// number of pixels.
    pub(super) fn launches(self, band: RowRange) -> impl Iterator<Item = (u32, u32)> {
        let (first, end) = (band.start * self.width, band.end * self.width);
        (first..end).step_by(self.most as usize).map(move |start| (start, self.most.min(end - start)))
    }

    /// Returns the most output pixels of a launch in a chunk of `chunk_rows` rows.
    pub(super) fn most_pixels(self, chunk_rows: u32) -> u64 {
        let band = u64::from((self.most / self.width).max(1).min(chunk_rows)) * u64::from(self.width);
        band.min(u64::from(self.most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_cover_every_pixel_once() {
        for (most, width) in [(64, 7), (5, 9), (9, 9), (1, 3), (100, 1)] {
            let unfolding = Unfolding { pixel_bytes: 1, most, width };
            let mut next = 4 * width;
            for band in unfolding.bands(RowRange { start: 4, end: 21 }) {
                for (first, count) in unfolding.launches(band) {
                    assert_eq!(first, next);
                    assert!(count > 0 && u64::from(count) <= unfolding.most_pixels(17), "{most} {width} {count}");
                    next = first + count;
                }
                assert_eq!(next, band.end * width);
            }
            assert_eq!(next, 21 * width);
        }
    }
}
