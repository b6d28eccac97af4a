//! How a Winograd convolution is cut into bands of tiles.

use crate::kernels::WORKGROUP;
use crate::kernels::choice::{Choice, Products};
use crate::kernels::group_norm::MOMENTS_VEC4_BYTES;
use crate::kernels::winograd::{PAIRS_OUT, POINTS, TILE};
use crate::limits::DeviceLimits;
use crate::model::graph::Shape;
use crate::plan::partition::{Partition, Rows};
use crate::tensor::Storage;

/// Runs of moments that a tensor should not exceed, unless it has more rows of tiles; and the
/// fewest tiles of one run, which has a multiple of that: as many as a workgroup of
/// `winograd_out_pairs` takes at once.
const MOST_RUNS: u64 = 4096;
const LEAST_RUN: u32 = WORKGROUP / PAIRS_OUT;
/// The most bytes of a tensor's moments.
const MOST_MOMENTS: u64 = 8 << 20;
/// Fewer tiles than this in a launch waste its products.
const LEAST_TILES: u64 = 64;

/// The tiles of one convolution's output. Bands of whole rows of tiles where one fits the scratch
/// memory, else parts of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TileGrid {
    /// Tiles in a row.
    columns: u32,
    /// Rows of tiles.
    rows: u32,
    /// Tiles in a row of a band.
    band_columns: u32,
    /// Most image rows of a band.
    band_rows: u32,
    /// Tiles of one run of moments.
    pub(super) run: u32,
    /// Groups of filters that one buffer of transformed filters holds.
    pub(super) filter_blocks: u32,
    /// vec4 output channels of one such group.
    pub(super) block_columns4: u32,
    /// What it transforms and multiplies.
    pub channels: Channels,
    /// How it keeps transformed input and filters.
    pub(super) transformed: Storage,
    /// What multiplies them.
    pub(super) products: Products,
}

/// Groups of four channels of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Channels {
    /// Of one frame of the input.
    pub frame4: u32,
    /// Of all frames that are seen: what is transformed.
    pub v4: u32,
    /// Of the frames that a filter sees at once.
    pub k4: u32,
    /// Of one frame of the output.
    pub n4: u32,
    /// Of all its frames.
    pub m4: u32,
}

/// Tiles that are transformed and multiplied together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TileBand {
    /// Rows of the output.
    pub(super) rows: Rows,
    /// First tile column, and how many.
    pub(super) tile_x0: u32,
    /// Tiles in a row.
    pub(super) tiles_x: u32,
    /// First run of moments.
    pub(super) moments_offset: u32,
    /// Runs in a row of tiles.
    pub(super) runs_x: u32,
    /// Runs.
    pub(super) runs: u32,
}

/// Bytes of one tile of `channels4` groups of channels that are kept as `storage`.
fn tile_bytes(channels4: u32, storage: Storage) -> u64 {
    u64::from(POINTS) * u64::from(channels4) * storage.vec4_bytes()
}

impl TileBand {
    /// All its tiles.
    pub(super) fn tiles(&self) -> u32 {
        self.tiles_x * self.rows.count().div_ceil(TILE)
    }
}

impl TileGrid {
    /// The grid of a convolution to `output`, with intermediates that stay in cache and within one
    /// binding.
    pub(super) fn new(
        channels: Channels,
        output: Shape,
        transformed: Storage,
        choice: &Choice,
        limits: &DeviceLimits,
    ) -> Self {
        // Parts of clips have up to four frames: what is transformed or multiplied is at most four
        // times that of one frame that is computed.
        const FRAMES: u32 = 4;
        let Channels { frame4, v4, k4, n4, m4 } = channels;
        let (columns, rows) = (output.width.div_ceil(TILE), output.height.div_ceil(TILE));
        let larger = |products: Products, v4: u32, m4: u32| {
            tile_bytes(v4, transformed).max(tile_bytes(m4, products.kept(transformed)))
        };
        let fitting = |bytes: u64| u32::try_from(limits.largest_bound_buffer().0 / bytes).unwrap_or(u32::MAX).max(1);
        let fits = |products: Products| fitting(larger(products, k4 * FRAMES, n4 * FRAMES));
        // No matrices where their rows do not fit a binding.
        let with = |units| Products::new(choice.winograd_tile, units, transformed, frame4, n4);
        let products = Some(with(limits.units())).filter(|products| fits(*products) >= products.rows());
        let products = products.unwrap_or_else(|| with(None));
        let band_tile = larger(products, v4, m4);
        let wanted = choice.winograd_scratch_bytes / band_tile;
        let most = fitting(band_tile) / products.rows() * products.rows();
        let at_once = u32::try_from(wanted.max(LEAST_TILES)).unwrap_or(u32::MAX).min(most);
        // Runs do not depend on how a tensor is cut, nor on how many frames there are, so that its
        // statistics are the same to the bit however that is.
        let runs = (MOST_MOMENTS / (u64::from(n4) * MOMENTS_VEC4_BYTES)).clamp(1, MOST_RUNS);
        let run = u32::try_from(u64::from(columns) * u64::from(rows) / runs).unwrap_or(u32::MAX);
        let longest = fits(products).min(most);
        let run = run.min(columns).max(1).next_multiple_of(LEAST_RUN).min(longest);
        let band_columns = if at_once >= columns { columns } else { (at_once / run * run).max(run).min(columns) };
        let block_columns4 = products.block_columns4();
        let block_bytes = u64::from(POINTS * block_columns4) * u64::from(k4 * 4) * transformed.vec4_bytes();
        let most_filters = limits.largest_bound_buffer().0.min(choice.winograd_scratch_bytes * 4);
        let filter_blocks = u32::try_from(most_filters / block_bytes).unwrap_or(u32::MAX).max(1);
        let band_rows = (at_once / columns).max(1).saturating_mul(TILE);
        Self {
            columns,
            rows,
            band_columns,
            band_rows,
            run,
            filter_blocks,
            block_columns4,
            channels,
            transformed,
            products,
        }
    }

    /// The rows of the bands of `rows`, which start at a multiple of the tile. All are of about the
    /// same size: a small last one would keep no GPU busy.
    pub(super) fn row_bands(&self, rows: Rows) -> impl Iterator<Item = Rows> + use<> {
        let count = rows.count().div_ceil(self.band_rows).max(1);
        rows.bands(rows.count().div_ceil(count).next_multiple_of(TILE))
    }

    /// The bands of `rows`, which start at a multiple of the tile.
    pub(super) fn bands(&self, rows: Rows) -> Vec<TileBand> {
        let mut result = Vec::new();
        for band in self.row_bands(rows) {
            let tile_rows = band.count().div_ceil(TILE);
            let mut moments_offset = band.start / TILE * self.row_runs();
            for tile_x0 in (0..self.columns).step_by(self.band_columns as usize) {
                let tiles_x = self.band_columns.min(self.columns - tile_x0);
                let runs_x = tiles_x.div_ceil(self.run);
                let runs = runs_x * tile_rows;
                result.push(TileBand { rows: band, tile_x0, tiles_x, moments_offset, runs_x, runs });
                moments_offset += runs;
            }
        }
        result
    }

    /// Runs of moments in one row of tiles.
    fn row_runs(&self) -> u32 {
        self.columns.div_ceil(self.run)
    }

    /// Runs of moments of the whole output.
    pub(super) fn runs(&self) -> u64 {
        u64::from(self.row_runs()) * u64::from(self.rows)
    }

    /// Tiles that there has to be room for where `tiles` are multiplied.
    pub(super) fn room(&self, tiles: u32) -> u32 {
        tiles.next_multiple_of(self.products.rows())
    }

    /// The most tiles of a band of a tensor that is cut like `output`, and room for what is
    /// multiplied with them.
    pub(super) fn most_tiles(&self, output: &Partition) -> u32 {
        // All chunks but the last are alike, and the first band of each is the largest.
        let chunks = [0, output.count() - 1].map(|index| output.chunk(index));
        let rows = chunks.into_iter().filter_map(|chunk| self.row_bands(chunk).next()).map(Rows::count).max();
        self.room(self.band_columns * rows.unwrap_or(0).div_ceil(TILE))
    }

    /// Bytes of one transformed tile.
    pub(super) fn v_bytes(&self) -> u64 {
        tile_bytes(self.channels.v4, self.transformed)
    }

    /// Bytes of the products of one tile.
    pub(super) fn m_bytes(&self) -> u64 {
        tile_bytes(self.channels.m4, self.kept())
    }

    /// How the products are kept.
    pub(super) fn kept(&self) -> Storage {
        self.products.kept(self.transformed)
    }

    /// Bytes of one group of transformed filters.
    pub(super) fn block_bytes(&self) -> u64 {
        u64::from(POINTS * self.block_columns4) * u64::from(self.channels.k4 * 4) * self.transformed.vec4_bytes()
    }

    /// Bytes of all transformed filters.
    pub(super) fn filter_bytes(&self) -> u64 {
        self.block_bytes() * u64::from(self.channels.n4.div_ceil(self.block_columns4))
    }
}
