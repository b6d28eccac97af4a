//! Lowers 1x1 convolutions and linear layers: one product per band.

use crate::kernels::matmul::{Epilogue, Matmul, MatmulParams};
use crate::kernels::weights::Layout;
use crate::kernels::winograd::TILE;
use crate::model::graph::{Shape, TensorId, Weight};
use crate::plan::fuse::{Conv, Residual, Role};
use crate::plan::partition::Rows;
use crate::plan::{PlanOptions, Resource};

use super::Lowering;

/// A launch of more multiply-adds than this is cut, so that no submission runs long.
const MACS_PER_LAUNCH: u64 = 1 << 30;

/// A product of one band: which weights, from where to where.
pub(super) struct Product<'a> {
    /// `[c_out, c_in, 1, 1]`.
    pub(super) weight: &'a Weight,
    /// `[c_out]`.
    pub(super) bias: &'a Weight,
    /// What it reads.
    pub(super) input: TensorId,
    /// What it produces; its shape counts, its place is `target`.
    pub(super) output: TensorId,
    /// Factor of the bias.
    pub(super) bias_scale: f32,
    /// Factor of the product.
    pub(super) scale: f32,
    /// Bias, sum or transpose.
    pub(super) epilogue: Epilogue,
}

/// Rows of a band of a product from `input` to `output`, cut so that no launch runs long.
pub(in crate::plan) fn product_rows(input: Shape, output: Shape, options: &PlanOptions) -> u32 {
    let row_macs = u64::from(input.width) * u64::from(input.channels) * u64::from(output.channels);
    let row_bytes = u64::from(input.width) * u64::from(input.channels4()) * options.storage.vec4_bytes();
    let rows = (MACS_PER_LAUNCH / row_macs).min(options.chunk_limit.0 / row_bytes).max(u64::from(TILE));
    u32::try_from(rows).unwrap_or(u32::MAX) / TILE * TILE
}

impl Lowering<'_> {
    pub(super) fn pointwise(&mut self, conv: &Conv, chunk: usize, measure: bool) {
        self.place(chunk);
        let keys = self.fused.attention_role(conv.output) == Some(Role::Key);
        let epilogue = match &conv.residual {
            Some(Residual::InPlace(_)) => Epilogue::BiasAccumulate,
            None if keys => Epilogue::BiasTransposed,
            None => Epilogue::Bias,
            Some(Residual::Shortcut { .. }) => unreachable!("`ways` refuses a product with a shortcut"),
        };
        let product = Product {
            weight: &conv.weight,
            bias: &conv.bias,
            input: conv.input,
            output: conv.output,
            bias_scale: conv.bias_scale,
            scale: conv.scale,
            epilogue,
        };
        self.product_of_chunk(&product, chunk, Some(conv));
        if measure {
            self.measure(conv.output, chunk);
        }
    }

    /// The product of all rows of chunk `chunk` of the current stage, with the input as `conv` normalises it, if there is one.
    pub(super) fn product_of_chunk(&mut self, product: &Product<'_>, chunk: usize, conv: Option<&Conv>) {
        let most = product_rows(self.fused.shape(product.input), self.fused.shape(product.output), self.options);
        let own = self.stored[self.stage].partition.chunk(chunk);
        let input = self.tensor(product.input).partition.clone();
        for index in input.holding(own) {
            for rows in own.intersect(input.chunk(index)).bands(most) {
                let (mut source, mut row0) = self.source(product.input, rows);
                if let Some(conv) = conv {
                    (source, row0) = self.normalised(conv, (source, row0), rows);
                }
                let shape = self.fused.shape(product.input);
                let offset = (rows.start - row0) * shape.width * shape.channels4();
                self.product(product, (rows, chunk), (Resource::Buffer(source), offset));
            }
        }
    }

    fn product(&mut self, product: &Product<'_>, (rows, chunk): (Rows, usize), (source, a_offset): (Resource, u32)) {
        let shape = self.fused.shape(product.input);
        let c_out = self.fused.shape(product.output).channels;
        let (k4, n4) = (shape.channels4(), c_out.div_ceil(4));
        let layout = Layout::Filter { times: 1, filter: 1, c_in: shape.channels, c_out };
        let weight = self.weight(product.weight, layout, 1.0);
        let bias = self.weight(product.bias, Layout::Vector { channels: c_out }, product.bias_scale);
        let tile = self.choice.matmul_tile;
        let output = &self.stored[self.stage];
        let own = output.partition.chunk(chunk);
        let m = rows.count() * shape.width;
        let first_pixel = (rows.start - own.start) * shape.width;
        let transposed = product.epilogue == Epilogue::BiasTransposed;
        let own_pixels = own.count() * shape.width;
        let (c_offset, c_row) =
            if transposed { (first_pixel / 4, own_pixels.div_ceil(4)) } else { (first_pixel * n4, n4) };
        let launch = Matmul {
            input: self.options.storage,
            output: output.storage,
            epilogue: product.epilogue,
            tile,
            batch: 1,
            params: MatmulParams {
                m,
                m_stored: if output.padded { m.next_multiple_of(4) } else { m },
                n4,
                k4,
                a_offset,
                a_row: k4,
                a_column: 1,
                a_batch: 0,
                b_offset: 0,
                b_row: n4,
                b_block: tile.columns4(),
                b_batch: 0,
                c_offset,
                c_row,
                c_batch: 0,
                scale: product.scale,
            },
        }
        .launch();
        let target = Resource::Buffer(output.chunk(chunk));
        self.launch(launch, &[source, weight, bias, Resource::Unused, target]);
    }
}
