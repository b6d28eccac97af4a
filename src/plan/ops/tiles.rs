//! The division of a Winograd convolution into bands of tiles.

use crate::kernels::WORKGROUP;
use crate::kernels::choice::Products;
use crate::kernels::group_norm::MOMENTS_VEC4_BYTES;
use crate::kernels::winograd::{PAIRS_OUT, POINTS, TILE};
use crate::limits::{DeviceKind, DeviceLimits};
use crate::model::graph::Shape;
use crate::plan::PlanOptions;
use crate::plan::partition::{Partition, RowRange};
use crate::tensor::Storage;

/// Most runs of moments that a tensor should have, unless it has more rows of tiles.
const MOST_RUNS: u64 = 4096;
/// Fewest tiles of one run: as many as a workgroup of `winograd_out_pairs` takes at once. A run has
/// a multiple of this unless a binding holds fewer.
const LEAST_RUN: u32 = WORKGROUP / PAIRS_OUT;
/// Most bytes of a tensor's moments.
const MOST_MOMENTS: u64 = 8 << 20;
/// Fewest tiles in a launch that keep its products efficient.
const LEAST_TILES: u64 = 64;

/// The tiles of one convolution's output. A band is whole rows of tiles if one row fits the scratch
/// memory, else a part of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TileGrid {
    /// Number of tiles in a row.
    columns: u32,
    /// Number of rows of tiles.
    rows: u32,
    /// Number of tiles in a row of a band.
    band_columns: u32,
    /// Most image rows of a band.
    band_rows: u32,
    /// Number of tiles in one run of moments.
    pub(super) run: u32,
    /// Number of blocks of filters in one buffer of transformed filters.
    pub(super) filter_blocks: u32,
    /// vec4 output channels of one such block.
    pub(super) block_columns4: u32,
    /// Channels that are transformed and multiplied.
    pub channels: Channels,
    /// Storage of transformed input and filters.
    pub(super) transformed: Storage,
    /// Kernel that computes the products.
    pub(super) products: Products,
}

/// Channels of a convolution, in groups of four.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Channels {
    /// Groups of one frame of the input.
    pub frame4: u32,
    /// Groups of all frames that are read: all that is transformed.
    pub v4: u32,
    /// Groups of the frames that a filter reads at once.
    pub k4: u32,
    /// Groups of one frame of the output.
    pub n4: u32,
    /// Groups of all frames of the output.
    pub m4: u32,
}

/// Tiles that are transformed and multiplied together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TileBand {
    /// Rows of the output.
    pub(super) rows: RowRange,
    /// First tile column.
    pub(super) tile_x0: u32,
    /// Number of tiles in a row.
    pub(super) tiles_x: u32,
    /// First run of moments.
    pub(super) moments_offset: u32,
    /// Number of runs in a row of tiles.
    pub(super) runs_x: u32,
    /// Number of runs.
    pub(super) runs: u32,
}

/// Returns the number of frames by which a band's bytes are multiplied. On a GPU one launch
/// computes all frames of a part of a clip, and would have few workgroups within the bytes of one
/// frame.
pub(in crate::plan) fn band_frames(kind: DeviceKind, frames: u32) -> u32 {
    match kind {
        DeviceKind::Cpu | DeviceKind::Host => 1,
        DeviceKind::Gpu => frames,
    }
}

/// Returns the bytes of one tile of `channels4` groups of channels in `storage`.
fn tile_bytes(channels4: u32, storage: Storage) -> u64 {
    u64::from(POINTS) * u64::from(channels4) * storage.vec4_bytes()
}

impl TileBand {
    /// Returns the number of tiles.
    pub(super) fn tiles(&self) -> u32 {
        self.tiles_x * self.rows.count().div_ceil(TILE)
    }
}

impl TileGrid {
    /// Returns the grid of a convolution to `output`. Its intermediates take about
    /// `KernelChoice::winograd_scratch_bytes` and stay within one binding.
    pub(super) fn new(channels: Channels, output: Shape, options: &PlanOptions, limits: &DeviceLimits) -> Self {
        // In networks with statistics, parts of clips have up to four frames. So the transformed or
        // multiplied data is at most four times that of one computed frame.
        const FRAMES: u32 = 4;
        let (choice, transformed) = (options.choice(limits), options.storage.transformed());
        let Channels { v4, k4, n4, m4, .. } = channels;
        let products = Products::new(choice.winograd_tile, options.storage, limits, n4);
        let (columns, rows) = (output.width.div_ceil(TILE), output.height.div_ceil(TILE));
        let larger = |v4: u32, m4: u32| tile_bytes(v4.max(m4), transformed);
        let fitting = |bytes: u64| u32::try_from(limits.largest_bound_buffer().0 / bytes).unwrap_or(u32::MAX).max(1);
        let band_tile = larger(v4, m4);
        let frames = m4 / n4;
        let scratch_bytes = choice.winograd_scratch_bytes * u64::from(band_frames(limits.kind, frames));
        let wanted = scratch_bytes / band_tile;
        let most = fitting(band_tile);
        let at_once = u32::try_from(wanted.max(LEAST_TILES)).unwrap_or(u32::MAX).min(most);
        // Runs depend neither on how a tensor is cut nor on the number of frames. So its statistics
        // are the same to the bit for any chunks and any clip.
        let runs = (MOST_MOMENTS / (u64::from(n4) * MOMENTS_VEC4_BYTES)).clamp(1, MOST_RUNS);
        let run = u32::try_from(u64::from(columns) * u64::from(rows) / runs).unwrap_or(u32::MAX);
        let longest = fitting(larger(k4 * FRAMES, n4 * FRAMES)).min(most);
        let run = run.min(columns).max(1).next_multiple_of(LEAST_RUN).min(longest);
        let band_columns = if at_once >= columns { columns } else { (at_once / run * run).max(run).min(columns) };
        let block_columns4 = products.block_columns4();
        let block_bytes = u64::from(POINTS * block_columns4) * u64::from(k4 * 4) * transformed.vec4_bytes();
        let most_filters = limits.largest_bound_buffer().0.min(choice.winograd_scratch_bytes * options.filter_part);
        let mut filter_blocks = u32::try_from(most_filters / block_bytes).unwrap_or(u32::MAX).max(1);
        if limits.kind == DeviceKind::Host {
            // Parts of about the same size: the stages of a pass may share one memory for each
            // part, which is as large as the largest.
            let blocks = n4.div_ceil(block_columns4);
            filter_blocks = blocks.div_ceil(blocks.div_ceil(filter_blocks));
        }
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

    /// Returns the grid for an `output` that is cut so. One band holds a whole output whose filters
    /// have several parts if that takes far less memory: then the parts use one memory in turn. A
    /// little less is no gain: other stages of the pass may need as much memory for their filters,
    /// and what the larger band takes is there for the whole pass.
    pub(super) fn widened_for(self, output: &Partition, limits: &DeviceLimits) -> Self {
        const LEAST_GAIN: u64 = 8;
        let whole = Self { band_columns: self.columns, band_rows: self.rows * TILE, ..self };
        let bytes = |grid: &Self| u64::from(grid.most_tiles(output)) * (grid.v_bytes() + grid.m_bytes());
        let tiles = u64::from(self.columns) * u64::from(self.rows);
        let is_bound = tiles * self.v_bytes().max(self.m_bytes()) <= limits.largest_bound_buffer().0;
        let saved = self.filter_bytes().saturating_sub(self.most_filter_bytes());
        let more = bytes(&whole).saturating_sub(bytes(&self));
        if output.count() == 1 && is_bound && more * LEAST_GAIN < saved { whole } else { self }
    }

    /// True if each of several parts of the filters is needed once, because one band holds the
    /// whole output.
    pub(super) fn filters_in_turn(&self, output: &Partition) -> bool {
        let several = self.filter_bytes() > self.most_filter_bytes();
        several && output.count() == 1 && self.bands(output.chunk(0)).len() == 1
    }

    /// Returns the rows of the bands of `rows`, which start at a multiple of the tile. All bands
    /// have about the same size, because a small last band would leave a GPU idle.
    pub(super) fn row_bands(&self, rows: RowRange) -> impl Iterator<Item = RowRange> + use<> {
        let count = rows.count().div_ceil(self.band_rows).max(1);
        rows.bands(rows.count().div_ceil(count).next_multiple_of(TILE))
    }

    /// Returns the bands of `rows`, which start at a multiple of the tile.
    pub(super) fn bands(&self, rows: RowRange) -> Vec<TileBand> {
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

    /// Returns the runs of moments in one row of tiles.
    fn row_runs(&self) -> u32 {
        self.columns.div_ceil(self.run)
    }

    /// Returns the runs of moments of the whole output.
    pub(super) fn runs(&self) -> u64 {
        u64::from(self.row_runs()) * u64::from(self.rows)
    }

    /// Returns the most tiles of a band of a tensor that is cut like `output`.
    pub(super) fn most_tiles(&self, output: &Partition) -> u32 {
        // All chunks but the last are equal, and the first band of each is the largest.
        let chunks = [0, output.count() - 1].map(|index| output.chunk(index));
        let rows = chunks.into_iter().filter_map(|chunk| self.row_bands(chunk).next()).map(RowRange::count).max();
        self.band_columns * rows.unwrap_or(0).div_ceil(TILE)
    }

    /// Returns the bytes of one transformed tile.
    pub(super) fn v_bytes(&self) -> u64 {
        tile_bytes(self.channels.v4, self.transformed)
    }

    /// Returns the bytes of the products of one tile.
    pub(super) fn m_bytes(&self) -> u64 {
        tile_bytes(self.channels.m4, self.transformed)
    }

    /// Returns the bytes of one block of transformed filters.
    pub(super) fn block_bytes(&self) -> u64 {
        u64::from(POINTS * self.block_columns4) * u64::from(self.channels.k4 * 4) * self.transformed.vec4_bytes()
    }

    /// Returns the most bytes of one buffer of transformed filters.
    pub(super) fn most_filter_bytes(&self) -> u64 {
        self.block_bytes() * u64::from(self.filter_blocks)
    }

    /// Returns the bytes of all transformed filters.
    pub(super) fn filter_bytes(&self) -> u64 {
        self.block_bytes() * u64::from(self.channels.n4.div_ceil(self.block_columns4))
    }
}
