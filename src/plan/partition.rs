//! Cuts tensors into chunks of full-width rows, each a buffer of its own.
//!
//! A tensor that does not fit one binding, or that should be freed or recomputed piece by piece, is
//! stored as several buffers of about the same size. A chunk holds its own rows and no halo: the
//! rows that a 3x3 filter needs of a neighbour are gathered when it runs.

use crate::error::{Error, Result};
use crate::kernels::winograd;
use crate::model::graph::{Border, Window};
use crate::tensor::Bytes;

/// Rows of a Winograd tile. Chunks and bands have a multiple of this many rows, except the last.
pub const ROW_STEP: u32 = winograd::TILE;

/// Rows `start..end` of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowRange {
    /// First row.
    pub start: u32,
    /// Row after the last.
    pub end: u32,
}

impl RowRange {
    /// Returns the number of rows.
    pub fn count(self) -> u32 {
        self.end - self.start
    }

    /// Returns the rows that are in both. There are none if `start >= end` in the result.
    pub fn intersect(self, other: Self) -> Self {
        Self { start: self.start.max(other.start), end: self.end.min(other.end) }
    }

    /// Returns rows of a tensor of `height` rows in one or two pieces, as rows from `height` on are
    /// the first again. Each piece comes with the number of rows before it.
    pub fn pieces(self, height: u32) -> impl Iterator<Item = (Self, u32)> {
        let first = Self { end: self.end.min(height), ..self };
        let again = Self { start: 0, end: self.end.saturating_sub(height) };
        std::iter::once((first, 0)).chain((again.end > 0).then_some((again, first.count())))
    }

    /// Cuts the rows into pieces of at most `most` rows, each but the last a multiple of
    /// [`ROW_STEP`]. A piece has [`ROW_STEP`] rows even if `most` is smaller.
    pub fn bands(self, most: u32) -> impl Iterator<Item = Self> {
        let step = (most / ROW_STEP * ROW_STEP).max(ROW_STEP);
        (self.start..self.end)
            .step_by(step as usize)
            .map(move |start| Self { start, end: self.end.min(start.saturating_add(step)) })
    }
}

/// The division of a tensor into chunks. All chunks but the last have the same number of rows, a
/// multiple of [`ROW_STEP`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Rows of the tensor.
    pub height: u32,
    /// Rows of a chunk.
    pub rows: u32,
}

impl Partition {
    /// Cuts `height` rows so that a chunk takes about `wanted` bytes, and at most `limit`.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if even the fewest rows exceed `limit`.
    pub fn new(height: u32, row_bytes: Bytes, wanted: Bytes, limit: Bytes) -> Result<Self> {
        let rows = ROW_STEP.min(height);
        let least = Bytes(row_bytes.0 * u64::from(rows));
        if least > limit {
            return Err(Error::TooLarge { what: format!("a chunk of {rows} rows"), needed: least, limit });
        }
        let fitting = wanted.min(limit).0 / row_bytes.0;
        let fitting = u32::try_from(fitting).unwrap_or(u32::MAX);
        if fitting >= height {
            return Ok(Self { height, rows: height });
        }
        let count = height.div_ceil((fitting / ROW_STEP * ROW_STEP).max(ROW_STEP));
        Ok(Self { height, rows: height.div_ceil(count).next_multiple_of(ROW_STEP).min(height) })
    }

    /// Returns the number of chunks.
    pub fn count(&self) -> usize {
        self.height.div_ceil(self.rows) as usize
    }

    /// Returns the rows of chunk `index`.
    pub fn chunk(&self, index: usize) -> RowRange {
        let start = self.rows.saturating_mul(u32::try_from(index).unwrap_or(u32::MAX));
        RowRange { start, end: self.height.min(start.saturating_add(self.rows)) }
    }

    /// True if chunk `index` has as many rows as any.
    pub fn is_full(&self, index: usize) -> bool {
        self.chunk(index).count() == self.rows
    }

    /// Returns the bytes of chunk `index`, padded to a multiple of four pixels. A row has `width`
    /// pixels and takes `row_bytes`.
    pub fn chunk_bytes(&self, index: usize, row_bytes: u64, width: u32) -> u64 {
        let width = u64::from(width);
        row_bytes / width * (u64::from(self.chunk(index).count()) * width).next_multiple_of(4)
    }

    /// Returns the chunks that hold `rows`. Rows from the height on are the first again, and chunks
    /// from [`Self::count`] on are, too.
    pub fn holding(&self, rows: RowRange) -> std::ops::Range<usize> {
        let start = (rows.start / self.rows) as usize;
        let again = rows.end.saturating_sub(self.height).div_ceil(self.rows) as usize;
        let end = if again > 0 { self.count() + again } else { rows.end.div_ceil(self.rows) as usize };
        if end - start > self.count() { 0..self.count() } else { start..end }
    }
}

/// Returns the rows of the input, `height` rows high, that `window` reads for `rows` of its output.
/// If `doubled`, the input is doubled before the window reads it. Rows from `height` on are the
/// first again.
pub fn reach(rows: RowRange, height: u32, window: Window, doubled: bool) -> RowRange {
    let factor = if doubled { 2 } else { 1 };
    if window.border == Border::Opposite {
        return reach_around(rows, height, factor);
    }
    let first = |row: u32| row.saturating_mul(window.stride).saturating_sub(window.before());
    let last = (rows.end - 1).saturating_mul(window.stride).saturating_add(window.side);
    let end = last.saturating_sub(window.before()).min(height.saturating_mul(factor));
    RowRange { start: first(rows.start) / factor, end: end.div_ceil(factor) }
}

/// Returns the rows that a filter reads that sees the opposite side beyond the image, which is
/// `factor` times as high as the input. All rows are rows `0..height`.
fn reach_around(rows: RowRange, height: u32, factor: u32) -> RowRange {
    let extent = height.saturating_mul(factor);
    let start = rows.start.saturating_add(extent - 1) / factor;
    let end = rows.end.saturating_add(extent).saturating_add(1).div_ceil(factor);
    if end - start >= height {
        return RowRange { start: 0, end: height };
    }
    let again = if start < height { 0 } else { height };
    RowRange { start: start - again, end: end - again }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn chunks_cover_all_rows_once_and_fit() {
        for height in 1..200 {
            for limit in [4_u64, 5, 7, 8, 13, 50, 300] {
                let partition = Partition::new(height, Bytes(1), Bytes(limit), Bytes(limit)).expect("four rows fit");
                let mut next = 0;
                for index in 0..partition.count() {
                    let chunk = partition.chunk(index);
                    assert_eq!(chunk.start, next);
                    assert_eq!(chunk.start % ROW_STEP, 0);
                    assert!(u64::from(chunk.count()) <= limit, "{height} {limit} {chunk:?}");
                    assert_eq!(partition.holding(chunk), index..index + 1);
                    next = chunk.end;
                }
                assert_eq!(next, height);
            }
        }
    }

    #[test]
    fn four_rows_beyond_the_limit_are_an_error_and_beyond_the_wish_are_not() {
        assert!(matches!(Partition::new(64, Bytes(100), Bytes(1), Bytes(399)), Err(Error::TooLarge { .. })));
        let four = Partition::new(64, Bytes(100), Bytes(1), Bytes(400)).expect("four rows fit");
        assert_eq!(four, Partition { height: 64, rows: 4 });
    }

    #[test]
    fn a_filter_that_sees_the_opposite_side_reaches_what_its_taps_touch() {
        let window = Window { border: Border::Opposite, ..Window::same(3) };
        for (height, factor) in (1..12).flat_map(|height| [(height, 1), (height, 2)]) {
            let extent = height * factor;
            for (start, end) in (0..extent).flat_map(|start| (start + 1..=extent).map(move |end| (start, end))) {
                let rows = RowRange { start, end };
                let reach = reach(rows, height, window, factor == 2);
                assert!(reach.start < height && reach.count() <= height, "{rows:?} of {height}: {reach:?}");
                let touched: BTreeSet<u32> =
                    (start + extent - 1..=end + extent).map(|row| row % extent / factor).collect();
                let reached = reach.pieces(height).flat_map(|(piece, _)| piece.start..piece.end);
                assert_eq!(reached.collect::<BTreeSet<u32>>(), touched, "{rows:?} of {height}");
                let partition = Partition { height, rows: 4 };
                let held = partition.holding(reach).map(|index| index % partition.count());
                let wanted = touched.iter().map(|row| *row as usize / 4);
                assert_eq!(held.collect::<BTreeSet<usize>>(), wanted.collect(), "{rows:?} of {height}");
            }
        }
    }

    #[test]
    fn bands_cover_rows_once() {
        for (start, end, most) in [(0, 40, 16), (8, 37, 11), (4, 9, 1), (12, 13, 100)] {
            let rows = RowRange { start, end };
            let mut next = start;
            for band in rows.bands(most) {
                assert_eq!((band.start, band.start % ROW_STEP), (next, 0));
                assert!(band.count() <= most.max(ROW_STEP));
                next = band.end;
            }
            assert_eq!(next, end);
        }
    }

    #[test]
    fn a_filter_reaches_what_its_taps_touch() {
        let halving = [Border::Around, Border::After].map(Window::halving);
        let windows = [Window::same(1), Window::same(3), halving[0], halving[1]];
        let cases = windows.into_iter().flat_map(|window| [(window, 1), (window, 2)]);
        for (window, factor) in cases {
            for height in [1, 2, 3, 5, 8] {
                let doubled = height * factor;
                if window.stride == 2 && (factor == 2 || doubled < 2) {
                    continue;
                }
                for start in 0..window.output(doubled) {
                    for end in start + 1..=window.output(doubled) {
                        let rows = RowRange { start, end };
                        let taps =
                            (start..end).flat_map(|row| (0..window.side).map(move |tap| row * window.stride + tap));
                        let touched = taps
                            .filter_map(|row| row.checked_sub(window.before()))
                            .filter(|row| *row < doubled)
                            .map(|row| row / factor);
                        let (first, last) = touched.fold((u32::MAX, 0), |(a, b), row| (a.min(row), b.max(row)));
                        let wanted = RowRange { start: first, end: last + 1 };
                        assert_eq!(reach(rows, height, window, factor == 2), wanted, "{rows:?} {window:?} {height}");
                    }
                }
            }
        }
    }
}
