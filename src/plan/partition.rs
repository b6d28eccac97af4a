//! Cuts tensors into chunks of full-width rows, and convolutions into bands that lie in one chunk each way.
//!
//! A tensor that does not fit one binding, or that should be freed piece by piece, is stored as several buffers. Each holds its own
//! rows and one row of each neighbour (the halo of a 3x3 filter), so that a kernel never has to read two buffers.

use crate::error::{Error, Result};
use crate::kernels::winograd;
use crate::tensor::Bytes;

/// Rows `start..end` of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// First row.
    pub start: u32,
    /// Row after the last.
    pub end: u32,
}

impl Rows {
    /// How many.
    pub fn count(self) -> u32 {
        self.end - self.start
    }
}

/// How the tensors of one resolution are cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Height of the tensors, rows.
    pub height: u32,
    /// Rows that each chunk owns. All starts are multiples of the Winograd tile.
    pub chunks: Vec<Rows>,
}

impl Partition {
    /// Cuts `height` rows so that a chunk with its halo takes at most `limit` bytes.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when even the fewest rows do not fit.
    pub fn new(height: u32, row_bytes: Bytes, limit: Bytes) -> Result<Self> {
        let whole = Bytes(row_bytes.0 * u64::from(height));
        if whole <= limit {
            return Ok(Self { height, chunks: vec![Rows { start: 0, end: height }] });
        }
        let fitting = (limit.0 / row_bytes.0).saturating_sub(2) / u64::from(winograd::TILE) * u64::from(winograd::TILE);
        let fitting = u32::try_from(fitting).unwrap_or(u32::MAX);
        if fitting == 0 {
            let needed = Bytes(row_bytes.0 * u64::from(winograd::TILE + 2));
            return Err(Error::TooLarge { what: format!("a chunk of {} rows", winograd::TILE), needed, limit });
        }
        let count = height.div_ceil(fitting);
        let rows = height.div_ceil(count).next_multiple_of(winograd::TILE);
        let chunks = (0..height)
            .step_by(rows as usize)
            .map(|start| Rows { start, end: height.min(start.saturating_add(rows)) })
            .collect();
        Ok(Self { height, chunks })
    }

    /// The rows that chunk `index` stores: its own and its halo.
    pub fn stored(&self, index: usize) -> Rows {
        let Rows { start, end } = self.chunks[index];
        Rows { start: start.saturating_sub(1), end: self.height.min(end + 1) }
    }
}

/// Rows of an output that are computed at once, with the chunks they lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Band {
    /// Rows of the output.
    pub rows: Rows,
    /// Chunk of the input that holds all rows it reads.
    pub input: usize,
    /// Chunk of the output that holds `rows`.
    pub output: usize,
}

/// Cuts the output's rows at the chunk borders of both sides, and so that no band has more than `max_rows`.
/// With `upsample`, the output has twice the input's rows.
///
/// Bands start at multiples of the Winograd tile and are in order of their rows.
pub fn bands(input: &Partition, output: &Partition, upsample: bool, max_rows: u32) -> Vec<Band> {
    let factor = if upsample { 2 } else { 1 };
    let step = (max_rows / winograd::TILE * winograd::TILE).max(winograd::TILE);
    let mut result = Vec::new();
    for (output_index, own) in output.chunks.iter().enumerate() {
        for (input_index, source) in input.chunks.iter().enumerate() {
            let (start, end) = (own.start.max(source.start * factor), own.end.min(source.end * factor));
            let mut at = start;
            while at < end {
                let next = at.saturating_add(step).min(end);
                result.push(Band { rows: Rows { start: at, end: next }, input: input_index, output: output_index });
                at = next;
            }
        }
    }
    result
}

/// Whether band `index` is the last of its output chunk.
pub fn completes_chunk(bands: &[Band], index: usize) -> bool {
    bands.get(index + 1).is_none_or(|next| next.output != bands[index].output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_all_rows_once_and_fit() {
        for height in 1..200 {
            for limit in [6_u64, 7, 10, 13, 50, 300] {
                let partition = Partition::new(height, Bytes(1), Bytes(limit)).expect("six rows fit");
                let mut next = 0;
                for (index, chunk) in partition.chunks.iter().enumerate() {
                    assert_eq!(chunk.start, next);
                    assert_eq!(chunk.start % winograd::TILE, 0);
                    assert!(u64::from(partition.stored(index).count()) <= limit, "{height} {limit} {chunk:?}");
                    next = chunk.end;
                }
                assert_eq!(next, height);
            }
        }
    }

    #[test]
    fn a_row_beyond_the_limit_is_an_error() {
        assert!(matches!(Partition::new(64, Bytes(100), Bytes(599)), Err(Error::TooLarge { .. })));
    }

    #[test]
    fn bands_read_only_rows_that_their_input_chunk_stores() {
        for (height, input_limit, output_limit, max_rows) in
            [(40, 12, 9, 8), (37, 100, 11, 4), (64, 10, 200, 16), (9, 8, 8, 100)]
        {
            for upsample in [false, true] {
                let factor = 1 + u32::from(upsample);
                let input = Partition::new(height, Bytes(1), Bytes(input_limit)).expect("fits");
                let output = Partition::new(height * factor, Bytes(1), Bytes(output_limit)).expect("fits");
                let mut next = 0;
                for band in bands(&input, &output, upsample, max_rows) {
                    assert_eq!(band.rows.start, next);
                    next = band.rows.end;
                    let stored = input.stored(band.input);
                    let first = band.rows.start.saturating_sub(1) / factor;
                    let last = band.rows.end.min(height * factor - 1) / factor;
                    assert!(stored.start <= first && last < stored.end, "{band:?} {stored:?}");
                    let own = output.chunks[band.output];
                    assert!(own.start <= band.rows.start && band.rows.end <= own.end);
                }
                assert_eq!(next, height * factor);
            }
        }
    }
}
