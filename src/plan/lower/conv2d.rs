//! Lowers 3x3 convolutions: Winograd in three launches a band, or one direct launch.

use crate::kernels::choice::Way;
use crate::kernels::conv2d_direct::{Conv2dDirect, Conv2dDirectParams};
use crate::kernels::matmul::{Epilogue as MatmulEpilogue, Matmul, MatmulParams};
use crate::kernels::weights::Layout;
use crate::kernels::winograd::{self, InParams, OutParams, POINTS, TILE, WeightsParams};
use crate::model::graph::Shape;
use crate::plan::fuse::{Conv, Normalize, Residual};
use crate::plan::lower::pointwise::Product;
use crate::plan::partition::{Rows, reach};
use crate::plan::tiles::{TileBand, TileGrid};
use crate::plan::ways::normalises_before;
use crate::plan::{BufferId, Resource};
use crate::tensor::Storage;

use super::Lowering;

/// One chunk of a Winograd convolution in the making.
struct Winograd<'a> {
    conv: &'a Conv,
    grid: TileGrid,
    /// Where the chunk goes, and its rows.
    target: BufferId,
    own: Rows,
    bias: Resource,
    /// Transformed filters, by output channels: together they may exceed one binding.
    filters: Vec<FilterPart>,
    /// Transformed input.
    v: BufferId,
    /// Its products with the filters.
    m: BufferId,
    /// Moments for the norm that reads the output.
    moments: Option<BufferId>,
}

/// The transformed filters of some output channels.
#[derive(Debug, Clone, Copy)]
pub(super) struct FilterPart {
    buffer: BufferId,
    /// First output channel / 4.
    column0: u32,
    /// Output channels / 4.
    columns4: u32,
    /// Blocks of columns, as the product's tile is wide.
    blocks: u32,
}

impl Lowering<'_> {
    /// Shapes of what the filter sees, and of the output. The height and width are the stored input's.
    fn shapes(&self, conv: &Conv) -> (Shape, Shape) {
        (conv.read_shape(self.fused.shape(conv.input)), self.fused.shape(conv.output))
    }

    /// The filter and the bias of a 3x3 convolution.
    pub(super) fn filter(&mut self, conv: &Conv) -> (Resource, Resource) {
        let (input, output) = self.shapes(conv);
        let (c_in, c_out) = (input.channels, output.channels);
        let weight = self.weight(&conv.weight, Layout::Filter { times: 1, filter: 3, c_in, c_out }, 1.0);
        let bias = self.weight(&conv.bias, Layout::Vector { channels: c_out }, conv.bias_scale);
        (weight, bias)
    }

    pub(super) fn winograd(&mut self, conv: &Conv, chunk: usize, measure: bool) {
        let (input_shape, shape) = self.shapes(conv);
        let grid = TileGrid::new(input_shape, shape, &self.choice, self.limits);
        let (weight, bias) = self.filter(conv);
        let filters = self.transformed_filters(weight, &grid, (input_shape.channels4(), shape.channels4()));
        let target = self.place(chunk);
        let own = self.stored[self.stage].partition.chunk(chunk);
        let sizes = self.pass.sizes;
        let v = self.pass.v.unwrap_or_else(|| self.scratch("v", sizes.v));
        let m = self.pass.m.unwrap_or_else(|| self.scratch("m", sizes.m));
        (self.pass.v, self.pass.m) = (Some(v), Some(m));
        let measured = measure && self.fused.norm_of(conv.output).is_some();
        let moments = measured.then(|| self.moments(grid.runs(), shape.channels4()));
        if let Some(Residual::Shortcut { weight, bias, input, scale }) = &conv.residual {
            let product = Product {
                weight,
                bias,
                input: *input,
                output: conv.output,
                bias_scale: conv.bias_scale,
                scale: *scale,
                epilogue: MatmulEpilogue::Bias,
            };
            self.product_of_chunk(&product, chunk, None);
        }
        let winograd = Winograd { conv, grid, target, own, bias, filters, v, m, moments };
        let mut source = None;
        for tiles in grid.bands(own) {
            if tiles.tile_x0 == 0 {
                let reach = reach(tiles.rows, input_shape.height, conv.window, conv.prologue.doubling.is_some());
                let rows = self.source(conv.input, reach);
                let before = normalises_before(Way::Winograd, conv);
                source = Some(if before { self.normalised(conv, rows, reach) } else { rows });
            }
            if let Some(source) = source {
                self.winograd_band(&winograd, &tiles, source);
            }
        }
    }

    /// The transformed filters of the current stage, in as many buffers as the device's bindings need.
    fn transformed_filters(
        &mut self,
        weight: Resource,
        grid: &TileGrid,
        (c_in4, c_out4): (u32, u32),
    ) -> Vec<FilterPart> {
        if let Some(parts) = self.pass.filters.get(&self.stage) {
            return parts.clone();
        }
        if !self.pass.own_filters {
            self.pass.filters.clear();
        }
        let most = grid.filter_blocks.saturating_mul(grid.block_columns4);
        let mut parts = Vec::new();
        for column0 in (0..c_out4).step_by(most as usize) {
            let columns4 = (c_out4 - column0).min(most);
            let blocks = columns4.div_ceil(grid.block_columns4);
            let buffer = self.filter_memory(parts.len(), grid.block_bytes() * u64::from(blocks));
            let c_in = c_in4 * 4;
            let params = WeightsParams {
                c_in,
                c_out4,
                column0,
                tile_n: grid.block_columns4,
                blocks,
                k: c_in,
                k0: 0,
                w_offset: 0,
            };
            self.launch(winograd::weights(self.options.storage, params), &[weight, Resource::Buffer(buffer)]);
            parts.push(FilterPart { buffer, column0, columns4, blocks });
        }
        self.pass.filters.insert(self.stage, parts.clone());
        parts
    }

    /// Memory for part `index` of transformed filters: of this stage alone, or what all stages of the pass use in turn.
    fn filter_memory(&mut self, index: usize, bytes: u64) -> BufferId {
        if self.pass.own_filters {
            return self.scratch("u", bytes);
        }
        if let Some(buffer) = self.pass.shared_filters.get(index) {
            return *buffer;
        }
        let buffer = self.scratch("u", self.pass.sizes.filter_part);
        self.pass.shared_filters.push(buffer);
        buffer
    }

    fn winograd_band(&mut self, winograd: &Winograd<'_>, tiles: &TileBand, source: (BufferId, u32)) {
        self.winograd_in(winograd, tiles, source);
        for part in &winograd.filters {
            self.winograd_product(winograd, tiles, part);
        }
        self.winograd_out(winograd, tiles);
    }

    fn winograd_in(&mut self, winograd: &Winograd<'_>, tiles: &TileBand, (source, row0): (BufferId, u32)) {
        let conv = winograd.conv;
        let (input_shape, shape) = self.shapes(conv);
        let (norm, activation) = match conv.prologue.norm {
            Some(Normalize::Group(norm)) => (Some(norm), conv.prologue.activation),
            // Done already, with the activation.
            Some(Normalize::Pixel(_)) => (None, None),
            None => (None, conv.prologue.activation),
        };
        let doubling = conv.prologue.doubling;
        let prologue = winograd::Prologue { normalize: norm.is_some(), activation, doubling };
        let params = InParams {
            tiles: tiles.tiles(),
            tiles_x: tiles.tiles_x,
            tile_x0: tiles.tile_x0,
            y0: tiles.rows.start,
            width: shape.width,
            height: shape.height,
            x_width: input_shape.width,
            x_row0: signed(row0),
            channels4: input_shape.channels4(),
            frame4: input_shape.channels4(),
            v_channels4: input_shape.channels4(),
            v_channel0: 0,
        };
        let norm = norm.map_or(Resource::Unused, |norm| Resource::Buffer(self.norms[&norm]));
        let storage = self.tensor(conv.input).storage;
        let bindings = [Resource::Buffer(source), norm, Resource::Buffer(winograd.v)];
        self.launch(winograd::input(storage, prologue, params), &bindings);
    }

    fn winograd_product(&mut self, winograd: &Winograd<'_>, tiles: &TileBand, part: &FilterPart) {
        let (input_shape, shape) = self.shapes(winograd.conv);
        let (k4, n4) = (input_shape.channels4(), shape.channels4());
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
        let width = (tiles.tiles_x * TILE).min(shape.width - tiles.tile_x0 * TILE);
        let pixels = u64::from(tiles.rows.count()) * u64::from(width);
        launch.macs = pixels * u64::from(k4) * u64::from(part.columns4) * 16 * 9;
        let (v, m, u) = (winograd.v, winograd.m, part.buffer);
        let bindings =
            [Resource::Buffer(v), Resource::Buffer(u), Resource::Unused, Resource::Unused, Resource::Buffer(m)];
        self.launch(launch, &bindings);
    }

    fn winograd_out(&mut self, winograd: &Winograd<'_>, tiles: &TileBand) {
        let conv = winograd.conv;
        let shape = self.fused.shape(conv.output);
        let epilogue = winograd::Epilogue {
            accumulate: conv.residual.is_some(),
            relu: conv.relu,
            moments: winograd.moments.is_some(),
        };
        let params = OutParams {
            tiles: tiles.tiles(),
            tiles_x: tiles.tiles_x,
            tile_x0: tiles.tile_x0,
            run: winograd.grid.run,
            runs_x: tiles.runs_x,
            runs: tiles.runs,
            y0: tiles.rows.start,
            width: shape.width,
            height: tiles.rows.end,
            y_row0: signed(winograd.own.start),
            channels4: shape.channels4(),
            bias4: shape.channels4(),
            moments_offset: tiles.moments_offset,
            scale: conv.scale,
        };
        let bindings = [
            Resource::Buffer(winograd.m),
            winograd.bias,
            Resource::Buffer(winograd.target),
            winograd.moments.map_or(Resource::Unused, Resource::Buffer),
        ];
        let storage = self.stored[self.stage].storage;
        self.launch(winograd::output(storage, epilogue, params), &bindings);
    }

    /// One launch a band. A norm is applied to the band's rows and their neighbours first.
    pub(super) fn direct(&mut self, conv: &Conv, chunk: usize, measure: bool) {
        let (input_shape, shape) = self.shapes(conv);
        let (weight, bias) = self.filter(conv);
        let storage = self.tensor(conv.input).storage;
        let row_bytes = u64::from(input_shape.width) * u64::from(input_shape.channels4()) * storage.vec4_bytes();
        let target = self.place(chunk);
        let own = self.stored[self.stage].partition.chunk(chunk);
        for rows in own.bands(self.choice.direct_rows(row_bytes)) {
            let upsample = conv.prologue.doubling.is_some();
            let reach = reach(rows, input_shape.height, conv.window, upsample);
            let source = self.source(conv.input, reach);
            let (source, row0) = self.normalised(conv, source, reach);
            let launch = Conv2dDirect {
                input: storage,
                output: self.stored[self.stage].storage,
                upsample,
                times: 1,
                relu: conv.relu,
                tile: self.choice.direct_tile,
                params: Conv2dDirectParams {
                    spans: 0,
                    rows: rows.count(),
                    y0: rows.start,
                    width: shape.width,
                    height: shape.height,
                    x_width: input_shape.width,
                    x_row0: signed(row0),
                    y_row0: signed(own.start),
                    c_in4: input_shape.channels4(),
                    c_out4: shape.channels4(),
                    frames_in: 1,
                    frames: 1,
                    scale: conv.scale,
                },
            }
            .launch();
            self.launch(launch, &[Resource::Buffer(source), weight, bias, Resource::Buffer(target)]);
        }
        if measure {
            self.measure(conv.output, chunk);
        }
    }
}

/// Rows are far below 2^31.
fn signed(row: u32) -> i32 {
    i32::try_from(row).unwrap_or(i32::MAX)
}
