//! 1x1 convolutions and linear layers: one product for each band.

use crate::kernels::choice::ConvAlgorithm;
use crate::kernels::matmul::{Epilogue, Matmul, MatmulParams};
use crate::kernels::weights::WeightLayout;
use crate::limits::DeviceKind;
use crate::model::graph::{Shape, TensorId, Weight};
use crate::plan::fused::{Conv, Residual, Role};
use crate::plan::manifest::rows_of_frames;
use crate::plan::node::{Scratch, Shared};
use crate::plan::partition::{Partition, ROW_STEP, RowRange};
use crate::plan::{PlanOptions, Resource};

use super::lowering::Lowering;
use super::seen;
use super::sizing::Sizing;

/// Returns the most multiply-adds of a launch: about 20 ms on a CPU driver, and less on a phone's
/// GPU. Larger launches are cut, so that no submission runs long.
fn macs_per_launch(kind: DeviceKind) -> u64 {
    match kind {
        DeviceKind::Cpu | DeviceKind::Host => 1 << 30,
        DeviceKind::Gpu => 1 << 32,
    }
}

/// A product with its weights, tensors and epilogue.
pub(super) struct Product<'a> {
    /// Filter, `[c_out, c_in, 1, 1]`.
    pub(super) weight: &'a Weight,
    /// Bias, `[c_out]`.
    pub(super) bias: &'a Weight,
    /// Tensor that it reads.
    pub(super) input: TensorId,
    /// Tensor with the shape of the result. The current stage's chunk gets the result.
    pub(super) output: TensorId,
    /// Output frames for each input frame.
    pub(super) phases: u32,
    /// Groups of channels, each a product of its own.
    pub(super) groups: u32,
    /// Factor of the bias.
    pub(super) bias_scale: f32,
    /// Factor of the product.
    pub(super) scale: f32,
    /// Bias, sum or transpose.
    pub(super) epilogue: Epilogue,
}

/// Returns the rows of a band of a product from `input` to `output`, so that no launch runs long.
fn band_rows(input: Shape, output: Shape, options: &PlanOptions, kind: DeviceKind) -> u32 {
    let row_macs = u64::from(input.width) * u64::from(input.channels) * u64::from(output.channels * output.frames);
    let row_bytes = u64::from(input.width) * u64::from(input.pixel4()) * options.storage.vec4_bytes();
    let rows = (macs_per_launch(kind) / row_macs).min(options.chunk_limit.0 / row_bytes).max(u64::from(ROW_STEP));
    u32::try_from(rows).unwrap_or(u32::MAX) / ROW_STEP * ROW_STEP
}

/// Returns the scratch memory of a product: normalised rows. A band lies in one chunk of its input.
pub(super) fn scratch(sizing: &Sizing<'_>, conv: &Conv, output: &Partition) -> Scratch {
    if !seen::is_made(ConvAlgorithm::Product, conv) {
        return Scratch::default();
    }
    let [input, output_shape] = [conv.input, conv.output].map(|tensor| sizing.fused.shape(tensor));
    let most = band_rows(input, output_shape, sizing.options, sizing.limits.kind);
    let rows = most.min(output.rows).min(sizing.partition(conv.input).rows);
    let normed = u64::from(rows) * seen::row_bytes(sizing.fused, conv, sizing.options);
    Scratch::default().with(Shared::Normed, normed)
}

impl Lowering<'_> {
    pub(super) fn product(&mut self, conv: &Conv, chunk: usize, measure: bool) {
        self.place(conv.output, chunk);
        let keys = self.fused.attention_role(conv.output) == Some(Role::Key);
        let epilogue = match &conv.residual {
            Some(Residual::InPlace(_)) => Epilogue::BiasAccumulate,
            None if keys => Epilogue::BiasTransposed,
            None => Epilogue::Bias,
            Some(Residual::Shortcut { .. }) => unreachable!("`algorithm` allows no product with a shortcut"),
        };
        let product = Product {
            weight: &conv.weight,
            bias: &conv.bias,
            input: conv.input,
            output: conv.output,
            phases: conv.phases,
            groups: conv.groups,
            bias_scale: conv.bias_scale,
            scale: conv.scale,
            epilogue,
        };
        self.product_of_chunk(&product, chunk, Some(conv));
        if measure {
            self.measure(conv.output, chunk);
        }
    }

    /// Launches the product of all rows of chunk `chunk` of the current stage. If `conv` is given,
    /// the input is normalised as `conv` reads it.
    pub(super) fn product_of_chunk(&mut self, product: &Product<'_>, chunk: usize, conv: Option<&Conv>) {
        let [input, output] = [product.input, product.output].map(|tensor| self.fused.shape(tensor));
        let most = band_rows(input, output, self.options, self.limits.kind);
        let own = self.rows(chunk);
        let input = self.tensor(product.input).partition.clone();
        for index in input.holding(own) {
            for rows in own.intersect(input.chunk(index)).bands(most) {
                if let Some(conv) = conv.filter(|conv| conv.time.is_some()) {
                    self.product_over_frames(conv, product, rows, chunk);
                    continue;
                }
                let (source, row0) = match conv {
                    Some(conv) => self.seen(conv, rows),
                    None => self.source(product.input, rows, Shared::Gathered),
                };
                let shape = self.fused.shape(product.input);
                let offset = (rows.start - row0) * shape.width * shape.pixel4();
                self.product_of_rows(product, (rows, chunk), (Resource::Buffer(source), offset));
            }
        }
    }

    fn product_of_rows(
        &mut self,
        product: &Product<'_>,
        (rows, chunk): (RowRange, usize),
        (source, a_offset): (Resource, u32),
    ) {
        let shape = self.fused.shape(product.input);
        let (weight, bias) = self.product_weights(product, 1);
        let (k4, n4) = (shape.channels4(), self.fused.shape(product.output).channels4() * product.phases);
        // A group has its columns of the filter, whose rows are the input channels of one group.
        let groups = product.groups;
        let (group_k4, group_n4) = (k4 / groups, n4 / groups);
        let products = self.products(group_n4);
        let output = self.output_of_stage();
        let own = output.partition.chunk(chunk);
        // Each frame of each pixel is one row of a.
        let row = shape.width * shape.frames;
        let m = rows.count() * row;
        let first_pixel = (rows.start - own.start) * row;
        let transposed = product.epilogue == Epilogue::BiasTransposed;
        let own_pixels = own.count() * row;
        let (c_offset, c_row) =
            if transposed { (first_pixel / 4, own_pixels.div_ceil(4)) } else { (first_pixel * n4, n4) };
        let launch = Matmul {
            input: self.options.storage,
            output: output.storage,
            epilogue: product.epilogue,
            products,
            frames: 1,
            params: MatmulParams {
                m_stored: if output.padded { m.next_multiple_of(4) } else { m },
                a_offset,
                a_row: k4,
                batch: groups,
                a_batch: group_k4,
                b_row: n4,
                b_batch: group_n4,
                c_offset,
                c_row,
                c_batch: group_n4,
                scale: product.scale,
                ..MatmulParams::rows(products, m, group_n4, group_k4)
            },
        }
        .launch();
        let target = Resource::Buffer(output.chunk(chunk));
        self.launch(launch, &[source, weight, bias, Resource::Unused, target]);
    }

    /// Returns the filter and the bias of `product`, with `times` taps in time.
    fn product_weights(&mut self, product: &Product<'_>, times: u32) -> (Resource, Resource) {
        let c_in = self.fused.shape(product.input).channels / product.groups;
        let c_out = rows_of_frames(self.fused.shape(product.output).channels, product.phases);
        let weight = self.weight(product.weight, WeightLayout::filter(times, 1, c_in, c_out), 1.0);
        let bias = self.weight(product.bias, WeightLayout::Vector { channels: c_out }, product.bias_scale);
        (weight, bias)
    }

    /// Launches a product over time for `rows`: one product for each position of the filter over
    /// the frames. The frames that the filter reads at one position lie next to each other.
    fn product_over_frames(&mut self, conv: &Conv, product: &Product<'_>, rows: RowRange, chunk: usize) {
        let (source, row0) = self.seen(conv, rows);
        let (weight, bias) = self.product_weights(product, conv.taps());
        let (input, shape) = self.fused.shapes_of(conv);
        let (frame4, n4) = (input.channels4(), shape.channels4() * conv.phases);
        let output = self.output_of_stage();
        let (storage, target) = (output.storage, Resource::Buffer(output.chunk(chunk)));
        let pixel4 = seen::frames(self.fused, conv) * frame4;
        let first = (rows.start - row0) * input.width * pixel4;
        let first_pixel = (rows.start - output.partition.chunk(chunk).start) * shape.width;
        let m = rows.count() * shape.width;
        let products = self.products(n4);
        for frame in 0..shape.frames / conv.phases {
            let launch = Matmul {
                input: self.options.storage,
                output: storage,
                epilogue: product.epilogue,
                products,
                frames: 1,
                params: MatmulParams {
                    a_offset: first + frame * conv.step() * frame4,
                    a_row: pixel4,
                    c_offset: first_pixel * shape.pixel4() + frame * n4,
                    c_row: shape.pixel4(),
                    scale: product.scale,
                    ..MatmulParams::rows(products, m, n4, conv.taps() * frame4)
                },
            }
            .launch();
            self.launch(launch, &[Resource::Buffer(source), weight, bias, Resource::Unused, target]);
        }
    }
}
