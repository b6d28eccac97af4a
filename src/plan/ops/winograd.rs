//! 3x3 convolutions by Winograd's algorithm: transform, multiply and transform back each band of
//! tiles.

use crate::kernels::Launch;
use crate::kernels::choice::{ConvAlgorithm, Transforms};
use crate::kernels::matmul::{Epilogue, Matmul, MatmulParams};
use crate::kernels::weights::WeightLayout;
use crate::kernels::winograd::{self, InParams, OutParams, POINTS, Storages, TILE, WeightsParams};
use crate::limits::DeviceLimits;
use crate::plan::algorithm::normalises_before;
use crate::plan::fused::{Conv, Fused, NormId, Normalize, Residual};
use crate::plan::node::{Scratch, Shared};
use crate::plan::partition::{Partition, RowRange, reach};
use crate::plan::{BufferId, PlanOptions, Resource};

use super::filter::input_rows;
use super::lowering::Lowering;
use super::moments;
use super::pass::FilterPart;
use super::product::Product;
use super::seen;
use super::sizing::Sizing;
use super::tiles::{Channels, TileBand, TileGrid};

/// One chunk of a Winograd convolution in the making.
struct Winograd<'a> {
    conv: &'a Conv,
    grid: TileGrid,
    /// Buffer of the chunk, and the chunk's rows.
    target: BufferId,
    own: RowRange,
    bias: Resource,
    /// Transformed filters, by output channels: together they may exceed one binding.
    filters: Vec<FilterPart>,
    /// True if each part of the filters is transformed right before its product.
    in_turn: bool,
    /// Transformed input, of all frames that are read.
    v: BufferId,
    /// Products of the transformed input with the filters.
    m: BufferId,
    /// Moments for the norm that reads the output.
    moments: Option<BufferId>,
    transforms: Transforms,
}

impl Winograd<'_> {
    /// Returns the launch of the 36 products of `tiles` with `part` for `frames` frames of the
    /// output. The frames that the filter reads for one of them follow one another in the
    /// transformed input.
    fn product(&self, tiles: &TileBand, part: &FilterPart, frames: u32) -> Launch {
        let products = self.grid.products;
        let Channels { frame4, v4, k4, n4, m4 } = self.grid.channels;
        let m = tiles.tiles();
        let (a_row, a_column) = winograd::strides(self.transforms, m, v4);
        let matmul = Matmul {
            input: self.grid.transformed,
            output: self.grid.transformed,
            epilogue: Epilogue::None,
            products,
            frames,
            params: MatmulParams {
                a_row,
                a_column,
                batch: POINTS,
                a_batch: m * v4,
                a_frame: self.conv.step() * frame4 * a_column,
                b_row: products.block_columns4(),
                b_block: k4 * 4 * products.block_columns4(),
                b_batch: part.blocks * k4 * 4 * products.block_columns4(),
                c_offset: part.column0,
                c_row: m4,
                c_batch: m * m4,
                c_frame: n4,
                ..MatmulParams::rows(products, m, part.columns4, k4)
            },
        };
        matmul.launch()
    }
}

/// Rows of some of the frames that a convolution reads.
#[derive(Debug, Clone, Copy)]
struct InputFrames {
    buffer: BufferId,
    /// First row in the buffer.
    row0: u32,
    /// Index of its first frame among all frames that are read.
    frame0: u32,
    frames: u32,
    /// Factors and summands of a group norm for these frames.
    norm: Option<BufferId>,
}

/// Returns the scratch memory of a Winograd convolution.
pub(super) fn scratch(sizing: &Sizing<'_>, conv: &Conv, output: &Partition) -> Scratch {
    let grid = grid(sizing.fused, conv, sizing.options, sizing.limits).widened_for(output, sizing.limits);
    let tiles = u64::from(grid.most_tiles(output));
    let filters = grid.filter_bytes();
    let filter_part = filters.min(grid.most_filter_bytes());
    let rows = input_rows(sizing, conv, ConvAlgorithm::Winograd, output, |chunk| grid.row_bands(chunk));
    Scratch {
        filters: if grid.filters_in_turn(output) { filter_part } else { filters },
        filter_part,
        ..rows.with(Shared::V, tiles * grid.v_bytes()).with(Shared::M, tiles * grid.m_bytes())
    }
}

/// Returns the runs of the moments that the convolution takes of its output.
pub(super) fn runs(sizing: &Sizing<'_>, conv: &Conv) -> u64 {
    grid(sizing.fused, conv, sizing.options, sizing.limits).runs()
}

fn grid(fused: &Fused, conv: &Conv, options: &PlanOptions, limits: &DeviceLimits) -> TileGrid {
    let (input, output) = fused.shapes_of(conv);
    let channels = Channels {
        frame4: input.channels4(),
        v4: seen::frames(fused, conv) * input.channels4(),
        k4: conv.taps() * input.channels4(),
        n4: output.channels4(),
        m4: output.pixel4(),
    };
    TileGrid::new(channels, output, options, limits)
}

impl Lowering<'_> {
    pub(super) fn winograd(&mut self, conv: &Conv, chunk: usize, measure: bool) {
        let (input_shape, shape) = self.fused.shapes_of(conv);
        let output = &self.nodes[self.stage].partition;
        let grid = grid(self.fused, conv, self.options, self.limits).widened_for(output, self.limits);
        let in_turn = grid.filters_in_turn(output);
        let filters = self.transformed_filters(conv, &grid, in_turn);
        let bias = self.bias(conv);
        let target = self.place(conv.output, chunk);
        let own = self.rows(chunk);
        let (v, m) = (self.shared(Shared::V), self.shared(Shared::M));
        let measured = measure && self.fused.norm_of(conv.output).is_some();
        let moments = measured.then(|| self.moments(grid.runs(), moments::bytes(grid.runs(), shape)));
        self.shortcut(conv, chunk);
        let transforms = self.choice.transforms;
        let winograd = Winograd { conv, grid, target, own, bias, filters, in_turn, v, m, moments, transforms };
        let mut sources = Vec::new();
        for tiles in grid.bands(own) {
            if tiles.tile_x0 == 0 {
                let reach = reach(tiles.rows, input_shape.height, conv.window, conv.prologue.doubling.is_some());
                sources = self.winograd_sources(conv, reach);
            }
            self.winograd_band(&winograd, &tiles, &sources);
        }
    }

    /// Returns the buffers that hold rows `rows` of the frames that `conv` reads.
    fn winograd_sources(&mut self, conv: &Conv, rows: RowRange) -> Vec<InputFrames> {
        let frames = self.fused.shape(conv.input).frames;
        if normalises_before(ConvAlgorithm::Winograd, conv) {
            let (buffer, row0) = self.seen(conv, rows);
            return vec![InputFrames { buffer, row0, frame0: 0, frames: conv.before() + frames, norm: None }];
        }
        let norm = match conv.prologue.norm {
            Some(Normalize::Group(norm)) => Some(norm),
            Some(Normalize::Pixel(_)) | None => None,
        };
        let (buffer, row0) = self.source(conv.input, rows, Shared::Gathered);
        let table = norm.map(|norm: NormId| self.norms[&norm]);
        let own = InputFrames { buffer, row0, frame0: conv.before(), frames, norm: table };
        let mut sources = match conv.past {
            Some(past) => {
                let (buffer, row0) = self.source(past, rows, Shared::GatheredPast);
                let table = norm.map(|norm: NormId| self.past_norms[&norm]);
                vec![InputFrames { buffer, row0, frame0: 0, frames: self.fused.shape(past).frames, norm: table }]
            }
            // Copies of the first frame. The input has only this frame.
            None => (0..conv.before()).map(|frame0| InputFrames { frame0, ..own }).collect(),
        };
        sources.push(own);
        sources
    }

    /// Launches the product of a shortcut, which the convolution then adds to.
    fn shortcut(&mut self, conv: &Conv, chunk: usize) {
        let Some(Residual::Shortcut { weight, bias, input, scale }) = &conv.residual else { return };
        let product = Product {
            groups: 1,
            weight,
            bias,
            input: *input,
            output: conv.output,
            phases: 1,
            bias_scale: conv.bias_scale,
            scale: *scale,
            epilogue: Epilogue::Bias,
        };
        self.product_of_chunk(&product, chunk, None);
    }

    /// Returns the filters of the current stage, in as many parts as the device's bindings need.
    /// Transforms them unless the pass has them already or they are transformed in turn.
    fn transformed_filters(&mut self, conv: &Conv, grid: &TileGrid, in_turn: bool) -> Vec<FilterPart> {
        if let Some(parts) = self.pass.filters.get(&self.stage) {
            return parts.clone();
        }
        if !self.pass.own_filters {
            self.pass.filters.clear();
        }
        let parts = self.filter_parts(conv, grid, in_turn);
        if !in_turn {
            for part in &parts {
                self.transform_filters(conv, grid, part);
            }
        }
        self.pass.filters.insert(self.stage, parts.clone());
        parts
    }

    /// Returns the parts of the filters, with memory for each, or one memory for all if they are
    /// transformed in turn.
    fn filter_parts(&mut self, conv: &Conv, grid: &TileGrid, in_turn: bool) -> Vec<FilterPart> {
        let (input, output) = self.fused.shapes_of(conv);
        let whole = WeightLayout::filter(conv.taps(), 3, input.channels, output.channels);
        let most = grid.filter_blocks.saturating_mul(grid.block_columns4);
        let mut cuts = Vec::new();
        for layout in whole.parts(self.options.storage) {
            let WeightLayout::Filter { columns: (first, end), .. } = layout else { continue };
            let weight = self.weight(&conv.weight, layout, 1.0);
            let of_weight = first / 4..end.div_ceil(4);
            let starts = of_weight.clone().step_by(most as usize);
            cuts.extend(starts.map(|start| (weight, of_weight.clone(), (of_weight.end - start).min(most), start)));
        }
        let blocks = |columns4: u32| columns4.div_ceil(grid.block_columns4);
        let bytes = |columns4: u32| grid.block_bytes() * u64::from(blocks(columns4));
        let largest = cuts.iter().map(|(_, _, columns4, _)| bytes(*columns4)).max().unwrap_or(0);
        let one = in_turn.then(|| self.filter_memory(0, largest));
        let mut parts = Vec::new();
        for (weight, of_weight, columns4, column0) in cuts {
            let buffer = one.unwrap_or_else(|| self.filter_memory(parts.len(), bytes(columns4)));
            parts.push(FilterPart { weight, of_weight, buffer, column0, columns4, blocks: blocks(columns4) });
        }
        parts
    }

    /// Launches the transform of one part of the filters.
    fn transform_filters(&mut self, conv: &Conv, grid: &TileGrid, part: &FilterPart) {
        let (taps, k4) = (conv.taps(), grid.channels.k4);
        let (c_in, c_out4) = (k4 / taps * 4, part.of_weight.end - part.of_weight.start);
        for tap in 0..taps {
            let params = WeightsParams {
                c_in,
                c_out4,
                column0: part.column0 - part.of_weight.start,
                tile_n: grid.block_columns4,
                blocks: part.blocks,
                k: k4 * 4,
                k0: tap * c_in,
                w_offset: tap * 9 * c_in * c_out4,
            };
            let launch = winograd::weights(Storages::of(self.options.storage), params);
            self.launch(launch, &[part.weight, Resource::Buffer(part.buffer)]);
        }
    }

    /// Returns the memory for part `index` of transformed filters. It belongs to this stage alone,
    /// or all stages of the pass use it in turn.
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

    fn winograd_band(&mut self, winograd: &Winograd<'_>, tiles: &TileBand, sources: &[InputFrames]) {
        for source in sources {
            self.winograd_in(winograd, tiles, source);
        }
        for part in &winograd.filters {
            if winograd.in_turn {
                self.transform_filters(winograd.conv, &winograd.grid, part);
            }
            self.winograd_product(winograd, tiles, part);
        }
        self.winograd_out(winograd, tiles);
    }

    fn winograd_in(&mut self, winograd: &Winograd<'_>, tiles: &TileBand, source: &InputFrames) {
        let conv = winograd.conv;
        let (input_shape, shape) = self.fused.shapes_of(conv);
        // A norm that was applied before includes the activation.
        let activation = conv.prologue.activation.filter(|_| !normalises_before(ConvAlgorithm::Winograd, conv));
        let doubling = conv.prologue.doubling;
        let prologue = winograd::WinogradPrologue {
            normalize: source.norm.is_some(),
            activation,
            doubling,
            border: conv.window.border,
        };
        let frame4 = input_shape.channels4();
        let params = InParams {
            tiles: tiles.tiles(),
            tiles_x: tiles.tiles_x,
            tile_x0: tiles.tile_x0,
            y0: tiles.rows.start,
            width: shape.width,
            height: shape.height,
            x_width: input_shape.width,
            x_row0: source.row0.cast_signed(),
            channels4: source.frames * frame4,
            frame4,
            v_channels4: winograd.grid.channels.v4,
            v_channel0: source.frame0 * frame4,
        };
        let norm = source.norm.map_or(Resource::Unused, Resource::Buffer);
        let storages = Storages { stored: self.tensor(conv.input).storage, transformed: winograd.grid.transformed };
        let bindings = [Resource::Buffer(source.buffer), norm, Resource::Buffer(winograd.v)];
        self.launch(winograd::input(winograd.transforms, storages, prologue, params), &bindings);
    }

    /// Launches the products of all frames of the output.
    fn winograd_product(&mut self, winograd: &Winograd<'_>, tiles: &TileBand, part: &FilterPart) {
        let shape = self.fused.shape(winograd.conv.output);
        let mut launch = winograd.product(tiles, part, shape.frames);
        // Counted as the direct convolution of the band: 9 filter taps for each pixel, 4x4 pixels
        // for each tile.
        let width = (tiles.tiles_x * TILE).min(shape.width - tiles.tile_x0 * TILE);
        let pixels = u64::from(tiles.rows.count()) * u64::from(width) * u64::from(shape.frames);
        launch.macs = pixels * u64::from(winograd.grid.channels.k4) * u64::from(part.columns4) * 16 * 9;
        let [v, u, m] = [winograd.v, part.buffer, winograd.m].map(Resource::Buffer);
        self.launch(launch, &[v, u, Resource::Unused, Resource::Unused, m]);
    }

    fn winograd_out(&mut self, winograd: &Winograd<'_>, tiles: &TileBand) {
        let conv = winograd.conv;
        let shape = self.fused.shape(conv.output);
        // The result is f32, whatever the storage of other tensors.
        let grid = &winograd.grid;
        let storages = Storages { stored: self.output_of_stage().storage, transformed: grid.transformed };
        let epilogue = winograd::WinogradEpilogue {
            accumulate: conv.residual.is_some(),
            relu: conv.relu,
            moments: winograd.moments.is_some(),
        };
        let params = OutParams {
            tiles: tiles.tiles(),
            tiles_x: tiles.tiles_x,
            tile_x0: tiles.tile_x0,
            run: grid.run,
            runs_x: tiles.runs_x,
            runs: tiles.runs,
            y0: tiles.rows.start,
            width: shape.width,
            height: tiles.rows.end,
            y_row0: winograd.own.start.cast_signed(),
            channels4: shape.pixel4(),
            bias4: shape.channels4(),
            moments_offset: tiles.moments_offset,
            scale: conv.scale / winograd::factor(grid.transformed),
        };
        let bindings = [
            Resource::Buffer(winograd.m),
            winograd.bias,
            Resource::Buffer(winograd.target),
            winograd.moments.map_or(Resource::Unused, Resource::Buffer),
        ];
        self.launch(winograd::output(winograd.transforms, storages, epilogue, params), &bindings);
    }
}
