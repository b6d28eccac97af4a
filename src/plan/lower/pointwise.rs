//! Lowers 1x1 convolutions and linear layers: one product per band.

use crate::error::Result;
use crate::kernels::matmul::{Epilogue, Matmul, MatmulParams};
use crate::kernels::weights::Layout;
use crate::model::graph::TensorId;
use crate::plan::Resource;
use crate::plan::fuse::{Conv, Residual, Stage};
use crate::plan::partition::{Band, bands, completes_chunk};
use crate::tensor::Bytes;

use super::{Lowering, Stored};

/// A launch of more multiply-adds than this is cut, so that no submission runs long.
const MACS_PER_LAUNCH: u64 = 1 << 30;

/// A product of one band: which weights, from where to where.
pub(super) struct Product<'a> {
    /// Prefix of the weights.
    pub(super) name: &'a str,
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

impl Lowering<'_> {
    pub(super) fn pointwise(&mut self, conv: &Conv) -> Result<()> {
        let reader = self.attention_role(conv.output);
        let output = match reader {
            Role::Key => self.allocate_transposed(conv.output),
            Role::Query | Role::Value => self.allocate(conv.output, false),
            Role::Other => self.allocate_output(conv.residual.as_ref(), conv.output),
        };
        let epilogue = match (&conv.residual, reader) {
            (Some(Residual::InPlace(_)), _) => Epilogue::BiasAccumulate,
            (None, Role::Key) => Epilogue::BiasTransposed,
            (None, _) => Epilogue::Bias,
            (Some(Residual::Shortcut { .. }), _) => unreachable!("a 1x1 convolution with a shortcut: no model has one"),
        };
        let product = Product {
            name: &conv.name,
            input: conv.input,
            output: conv.output,
            bias_scale: conv.bias_scale,
            scale: conv.scale,
            epilogue,
        };
        let (shape, c_out) = (self.fused.shape(conv.input), self.fused.shape(conv.output).channels);
        let row_macs = u64::from(shape.width) * u64::from(shape.channels) * u64::from(c_out);
        let row_bytes = u64::from(shape.width) * u64::from(shape.channels4()) * self.options.storage.vec4_bytes();
        let max_rows = (MACS_PER_LAUNCH / row_macs).min(self.options.chunk_limit.0 / row_bytes).max(1);
        let list = bands(
            &self.tensors[&conv.input].partition,
            &output.partition,
            false,
            u32::try_from(max_rows).unwrap_or(u32::MAX),
        );
        let normed = conv.prologue.norm.map(|norm| {
            let most = list.iter().map(|band| band.rows.count()).max().unwrap_or(0);
            (norm, self.scratch("normed", row_bytes * u64::from(most)))
        });
        for (index, band) in list.iter().enumerate() {
            match normed {
                Some((norm, scratch)) => {
                    self.apply_norm(conv.input, band.input, band.rows, (norm, conv.prologue.activate), scratch);
                    self.product(&product, *band, (Resource::Buffer(scratch), 0), &output);
                }
                None => self.product_of_band(&product, *band, &output),
            }
            if reader == Role::Other && completes_chunk(&list, index) {
                self.copy_halo(conv.output, &output, band.output);
            }
        }
        if reader == Role::Other {
            self.measure(conv.output, &output);
        }
        Ok(())
    }

    /// One product that reads the input tensor itself.
    pub(super) fn product_of_band(&mut self, product: &Product<'_>, band: Band, output: &Stored) {
        let shape = self.fused.shape(product.input);
        let input = &self.tensors[&product.input];
        let offset = (band.rows.start - input.rows(band.input).start) * shape.width * shape.channels4();
        let source = Resource::Buffer(input.chunks[band.input]);
        self.product(product, band, (source, offset), output);
    }

    fn product(&mut self, product: &Product<'_>, band: Band, (source, a_offset): (Resource, u32), output: &Stored) {
        let shape = self.fused.shape(product.input);
        let c_out = self.fused.shape(product.output).channels;
        let (k4, n4) = (shape.channels4(), c_out.div_ceil(4));
        let weight = self.weight(
            format!("{}.weight", product.name),
            Layout::Filter { filter: 1, c_in: shape.channels, c_out },
            1.0,
        );
        let bias =
            self.weight(format!("{}.bias", product.name), Layout::Vector { channels: c_out }, product.bias_scale);
        let tile = self.choice.matmul_tile;
        let m = band.rows.count() * shape.width;
        let first_pixel = (band.rows.start - output.rows(band.output).start) * shape.width;
        let transposed = product.epilogue == Epilogue::BiasTransposed;
        let own_pixels = output.partition.chunks[band.output].count() * shape.width;
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
                m_stored: if output.halo { m } else { m.next_multiple_of(4) },
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
        let target = Resource::Buffer(output.chunks[band.output]);
        self.launch(launch, &[source, weight, bias, Resource::Unused, target]);
    }

    /// Room for the keys of attention, `[c, pixels / 4]` for each chunk.
    fn allocate_transposed(&mut self, tensor: TensorId) -> Stored {
        let shape = self.fused.shape(tensor);
        let mut stored = Stored {
            partition: self.partition_of(tensor),
            chunks: Vec::new(),
            storage: self.storage_of(tensor),
            halo: false,
        };
        for index in 0..stored.partition.chunks.len() {
            let pixels4 = u64::from((stored.partition.chunks[index].count() * shape.width).div_ceil(4));
            let bytes = pixels4 * u64::from(shape.channels4() * 4) * stored.storage.vec4_bytes();
            let name = format!("{}[{index}]", self.plan.stages[self.plan.stages.len() - 1]);
            stored.chunks.push(self.buffer(name, Bytes(bytes)));
        }
        self.tensors.insert(tensor, stored.clone());
        stored
    }

    fn attention_role(&self, tensor: TensorId) -> Role {
        let role = self.fused.stages.iter().find_map(|stage| match stage {
            Stage::Attention { inputs, .. } => inputs.iter().position(|input| *input == tensor),
            _ => None,
        });
        match role {
            Some(0) => Role::Query,
            Some(1) => Role::Key,
            Some(_) => Role::Value,
            None => Role::Other,
        }
    }
}

/// What attention takes a tensor for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Query,
    Key,
    Value,
    Other,
}
