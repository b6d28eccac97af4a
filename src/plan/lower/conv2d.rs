//! Lowers 3x3 convolutions: Winograd in three launches a band, or one direct launch.

use crate::error::Result;
use crate::kernels::choice::Conv3x3;
use crate::kernels::conv2d_direct::{Conv2dDirect, Conv2dDirectParams};
use crate::kernels::matmul::{Epilogue as MatmulEpilogue, Matmul, MatmulParams};
use crate::kernels::weights::Layout;
use crate::kernels::winograd::{self, InParams, OutParams, POINTS, TILE, WeightsParams};
use crate::plan::fuse::{Conv, Residual};
use crate::plan::lower::pointwise::Product;
use crate::plan::partition::{Band, Rows, bands, completes_chunk};
use crate::plan::{BufferId, Resource};
use crate::tensor::Storage;

use super::{Lowering, Stored};

/// Runs of moments that a tensor should not exceed, unless it has more rows of tiles; and the fewest tiles of one run.
const MOST_RUNS: u64 = 4096;
const LEAST_RUN: u32 = 4;

/// A Winograd convolution in the making.
struct Winograd<'a> {
    conv: &'a Conv,
    output: Stored,
    bias: Resource,
    /// Transformed filters, by output channels: together they may exceed one binding.
    u: Vec<FilterPart>,
    /// Transformed input.
    v: BufferId,
    /// Its products with the filters.
    m: BufferId,
    /// Moments for the norm that reads the output.
    moments: Option<BufferId>,
    /// Tiles of one run of moments.
    run: u32,
}

/// The transformed filters of some output channels.
#[derive(Debug, Clone, Copy)]
struct FilterPart {
    buffer: BufferId,
    /// First output channel / 4.
    column0: u32,
    /// Output channels / 4.
    columns4: u32,
    /// Blocks of columns, as the product's tile is wide.
    blocks: u32,
}

/// Tiles that are transformed and multiplied together.
#[derive(Debug, Clone, Copy)]
struct TileBand {
    band: Band,
    /// First tile column, and how many.
    tile_x0: u32,
    tiles_x: u32,
    /// First run of moments, runs in a row of tiles, runs.
    moments_offset: u32,
    runs_x: u32,
    runs: u32,
}

impl TileBand {
    fn tiles(&self) -> u32 {
        self.tiles_x * self.band.rows.count().div_ceil(TILE)
    }
}

impl Lowering<'_> {
    pub(super) fn conv2d(&mut self, conv: &Conv) -> Result<()> {
        let (c_in, c_out) = (self.fused.shape(conv.input).channels, self.fused.shape(conv.output).channels);
        let way = if conv.residual.is_some() { Conv3x3::Winograd } else { self.choice.conv3x3(c_in, c_out) };
        match way {
            Conv3x3::Winograd => self.winograd(conv),
            Conv3x3::Direct => self.direct(conv),
        }
        Ok(())
    }

    fn filter(&mut self, conv: &Conv) -> (Resource, Resource) {
        let (c_in, c_out) = (self.fused.shape(conv.input).channels, self.fused.shape(conv.output).channels);
        let weight = self.weight(format!("{}.weight", conv.name), Layout::Filter { filter: 3, c_in, c_out }, 1.0);
        let bias = self.weight(format!("{}.bias", conv.name), Layout::Vector { channels: c_out }, conv.bias_scale);
        (weight, bias)
    }

    fn winograd(&mut self, conv: &Conv) {
        let output = self.allocate_output(conv.residual.as_ref(), conv.output);
        let (input_shape, shape) = (self.fused.shape(conv.input), self.fused.shape(conv.output));
        let (c_in4, c_out4) = (input_shape.channels4(), shape.channels4());
        let (weight, bias) = self.filter(conv);
        let tiles = u64::from(shape.width.div_ceil(TILE)) * u64::from(shape.height.div_ceil(TILE));
        let run = u32::try_from(tiles / MOST_RUNS).unwrap_or(u32::MAX).max(LEAST_RUN);
        let list = self.tile_bands(conv, &output, run);

        let most = u64::from(list.iter().map(TileBand::tiles).max().unwrap_or(0));
        let v = self.scratch("v", u64::from(POINTS) * most * u64::from(c_in4) * 16);
        let m = self.scratch("m", u64::from(POINTS) * most * u64::from(c_out4) * 16);
        let total_runs = list.last().map_or(0, |last| last.moments_offset + last.runs);
        let moments = self.fused.norm_of(conv.output).map(|_| self.moments(total_runs, c_out4));

        let u = self.transform_filters(weight, c_in4, c_out4);
        let winograd = Winograd { conv, output, bias, u, v, m, moments, run };
        for (index, tiles) in list.iter().enumerate() {
            self.winograd_band(&winograd, tiles);
            if list.get(index + 1).is_none_or(|next| next.band.output != tiles.band.output) {
                self.copy_halo(conv.output, &winograd.output, tiles.band.output);
            }
        }
        if let Some(moments) = moments {
            self.finish_norm(conv.output, moments, total_runs);
        }
    }

    /// Transforms the filters into as many buffers as the device's bindings need.
    fn transform_filters(&mut self, weight: Resource, c_in4: u32, c_out4: u32) -> Vec<FilterPart> {
        let tile_n = self.choice.winograd_tile.columns4();
        let block_bytes = u64::from(POINTS * tile_n) * u64::from(c_in4 * 4) * 16;
        let most_blocks = u32::try_from(self.limits.largest_bound_buffer().0 / block_bytes).unwrap_or(u32::MAX).max(1);
        let mut parts = Vec::new();
        for column0 in (0..c_out4).step_by((most_blocks.saturating_mul(tile_n)) as usize) {
            let columns4 = (c_out4 - column0).min(most_blocks.saturating_mul(tile_n));
            let blocks = columns4.div_ceil(tile_n);
            let buffer = self.scratch("u", block_bytes * u64::from(blocks));
            let params = WeightsParams { c_in: c_in4 * 4, c_out4, column0, tile_n, blocks };
            self.launch(winograd::weights(self.options.storage, params), &[weight, Resource::Buffer(buffer)]);
            parts.push(FilterPart { buffer, column0, columns4, blocks });
        }
        parts
    }

    /// Cuts the convolution so that its two intermediates stay in cache and within one binding.
    fn tile_bands(&self, conv: &Conv, output: &Stored, run: u32) -> Vec<TileBand> {
        let (input_shape, shape) = (self.fused.shape(conv.input), self.fused.shape(conv.output));
        let tile_bytes = u64::from(POINTS) * u64::from(input_shape.channels4().max(shape.channels4())) * 16;
        let all_tiles_x = shape.width.div_ceil(TILE);
        let columns_limit = self.limits.largest_bound_buffer().0 / tile_bytes;
        let tiles_x = all_tiles_x.min(u32::try_from(columns_limit).unwrap_or(u32::MAX).max(1));
        let tile_rows = self.choice.winograd_scratch_bytes / (tile_bytes * u64::from(tiles_x));
        let max_rows = u32::try_from(tile_rows).unwrap_or(u32::MAX / TILE).max(1).saturating_mul(TILE);
        let input = &self.tensors[&conv.input].partition;
        let mut result = Vec::new();
        let mut moments_offset = 0;
        for band in bands(input, &output.partition, conv.prologue.upsample, max_rows) {
            for tile_x0 in (0..all_tiles_x).step_by(tiles_x as usize) {
                let tiles_x = tiles_x.min(all_tiles_x - tile_x0);
                let runs_x = tiles_x.div_ceil(run);
                let runs = runs_x * band.rows.count().div_ceil(TILE);
                result.push(TileBand { band, tile_x0, tiles_x, moments_offset, runs_x, runs });
                moments_offset += runs;
            }
        }
        result
    }

    fn winograd_band(&mut self, winograd: &Winograd<'_>, tiles: &TileBand) {
        let conv = winograd.conv;
        let band = tiles.band;
        if let Some(Residual::Shortcut { name, input }) = &conv.residual
            && tiles.tile_x0 == 0
        {
            let product = Product {
                name,
                input: *input,
                output: conv.output,
                bias_scale: conv.bias_scale,
                scale: 1.0,
                epilogue: MatmulEpilogue::Bias,
            };
            self.product_of_band(&product, band, &winograd.output);
        }
        self.winograd_in(winograd, tiles);
        for part in &winograd.u {
            self.winograd_product(winograd, tiles, part);
        }
        self.winograd_out(winograd, tiles);
    }

    fn winograd_in(&mut self, winograd: &Winograd<'_>, tiles: &TileBand) {
        let conv = winograd.conv;
        let (input_shape, shape) = (self.fused.shape(conv.input), self.fused.shape(conv.output));
        let input = &self.tensors[&conv.input];
        let prologue = winograd::Prologue {
            normalize: conv.prologue.norm.is_some(),
            activate: conv.prologue.activate,
            upsample: conv.prologue.upsample,
        };
        let params = InParams {
            tiles: tiles.tiles(),
            tiles_x: tiles.tiles_x,
            tile_x0: tiles.tile_x0,
            y0: tiles.band.rows.start,
            width: shape.width,
            height: shape.height,
            x_width: input_shape.width,
            x_row0: signed(input.rows(tiles.band.input).start),
            channels4: input_shape.channels4(),
        };
        let norm = conv.prologue.norm.map_or(Resource::Unused, |norm| Resource::Buffer(self.norms[&norm]));
        let bindings = [Resource::Buffer(input.chunks[tiles.band.input]), norm, Resource::Buffer(winograd.v)];
        self.launch(winograd::input(input.storage, prologue, params), &bindings);
    }

    fn winograd_product(&mut self, winograd: &Winograd<'_>, tiles: &TileBand, part: &FilterPart) {
        let conv = winograd.conv;
        let (k4, n4) = (self.fused.shape(conv.input).channels4(), self.fused.shape(conv.output).channels4());
        let tile = self.choice.winograd_tile;
        let m = tiles.tiles();
        let mut launch = Matmul {
            input: Storage::F32,
            output: Storage::F32,
            epilogue: MatmulEpilogue::None,
            tile,
            batch: POINTS,
            params: MatmulParams {
                m,
                m_stored: m,
                n4: part.columns4,
                k4,
                a_offset: 0,
                a_row: 1,
                a_column: m,
                a_batch: m * k4,
                b_offset: 0,
                b_row: tile.columns4(),
                b_block: k4 * 4 * tile.columns4(),
                b_batch: part.blocks * k4 * 4 * tile.columns4(),
                c_offset: part.column0,
                c_row: n4,
                c_batch: m * n4,
                scale: 1.0,
            },
        }
        .launch();
        // Counted as the direct convolution of the band: 9 filter taps for each pixel, of 4x4 pixels a tile.
        let width = (tiles.tiles_x * TILE).min(self.fused.shape(conv.output).width - tiles.tile_x0 * TILE);
        launch.macs =
            u64::from(tiles.band.rows.count()) * u64::from(width) * u64::from(k4) * u64::from(part.columns4) * 16 * 9;
        let bindings = [
            Resource::Buffer(winograd.v),
            Resource::Buffer(part.buffer),
            Resource::Unused,
            Resource::Unused,
            Resource::Buffer(winograd.m),
        ];
        self.launch(launch, &bindings);
    }

    fn winograd_out(&mut self, winograd: &Winograd<'_>, tiles: &TileBand) {
        let conv = winograd.conv;
        let shape = self.fused.shape(conv.output);
        let output = &winograd.output;
        let epilogue = winograd::Epilogue { accumulate: conv.residual.is_some(), moments: winograd.moments.is_some() };
        let params = OutParams {
            tiles: tiles.tiles(),
            tiles_x: tiles.tiles_x,
            tile_x0: tiles.tile_x0,
            run: winograd.run,
            runs_x: tiles.runs_x,
            runs: tiles.runs,
            y0: tiles.band.rows.start,
            width: shape.width,
            height: tiles.band.rows.end,
            y_row0: signed(output.rows(tiles.band.output).start),
            channels4: shape.channels4(),
            moments_offset: tiles.moments_offset,
            scale: conv.scale,
        };
        let bindings = [
            Resource::Buffer(winograd.m),
            winograd.bias,
            Resource::Buffer(output.chunks[tiles.band.output]),
            winograd.moments.map_or(Resource::Unused, Resource::Buffer),
        ];
        self.launch(winograd::output(output.storage, epilogue, params), &bindings);
    }

    /// One launch a band. A norm is applied to the band's rows and its halo first.
    fn direct(&mut self, conv: &Conv) {
        let output = self.allocate_output(None, conv.output);
        let (input_shape, shape) = (self.fused.shape(conv.input), self.fused.shape(conv.output));
        let (weight, bias) = self.filter(conv);
        let input = self.tensors[&conv.input].clone();
        let row_bytes = u64::from(input_shape.width) * u64::from(input_shape.channels4()) * input.storage.vec4_bytes();
        let max_rows = u32::try_from(self.choice.winograd_scratch_bytes * 2 / row_bytes).unwrap_or(u32::MAX);
        let list = bands(&input.partition, &output.partition, conv.prologue.upsample, max_rows);
        let halo = |rows: Rows| Rows { start: rows.start.saturating_sub(1), end: input_shape.height.min(rows.end + 1) };
        let normed = conv.prologue.norm.map(|norm| {
            assert!(!conv.prologue.upsample, "a norm before an upsample: no model has one");
            let most = list.iter().map(|band| halo(band.rows).count()).max().unwrap_or(0);
            (norm, self.scratch("normed", u64::from(most) * row_bytes))
        });
        for (index, band) in list.iter().enumerate() {
            let (source, x_row0) = match normed {
                Some((norm, scratch)) => {
                    let rows = halo(band.rows);
                    self.apply_norm(conv.input, band.input, rows, (norm, conv.prologue.activate), scratch);
                    (scratch, rows.start)
                }
                None => (input.chunks[band.input], input.rows(band.input).start),
            };
            let launch = Conv2dDirect {
                input: input.storage,
                output: output.storage,
                upsample: conv.prologue.upsample,
                tile: self.choice.direct_tile,
                params: Conv2dDirectParams {
                    spans: 0,
                    rows: band.rows.count(),
                    y0: band.rows.start,
                    width: shape.width,
                    height: shape.height,
                    x_width: input_shape.width,
                    x_row0: signed(x_row0),
                    y_row0: signed(output.rows(band.output).start),
                    c_in4: input_shape.channels4(),
                    c_out4: shape.channels4(),
                    scale: conv.scale,
                },
            }
            .launch();
            let target = Resource::Buffer(output.chunks[band.output]);
            self.launch(launch, &[Resource::Buffer(source), weight, bias, target]);
            if completes_chunk(&list, index) {
                self.copy_halo(conv.output, &output, band.output);
            }
        }
        self.measure(conv.output, &output);
    }
}

/// Rows are far below 2^31.
fn signed(row: u32) -> i32 {
    i32::try_from(row).unwrap_or(i32::MAX)
}
