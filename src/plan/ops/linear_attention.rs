//! Linear attention. Its inputs were measured when they were made: sums over all pixels, which each
//! query then meets. So it takes no memory but that of its result.

use crate::error::Result;
use crate::kernels::linear_attention::{ApplyParams, apply};
use crate::plan::Resource;
use crate::plan::fused::LinearAttention;
use crate::plan::node::Node;

use super::lowering::Lowering;
use super::sizing::{Reach, Sizing};

/// Returns the node of linear attention.
///
/// # Errors
/// [`crate::Error::TooLarge`] if four rows of its output exceed a binding.
pub(super) fn node(sizing: &Sizing<'_>, attention: &LinearAttention) -> Result<Node> {
    let LinearAttention { inputs, head_dim, output, .. } = attention;
    let partition = sizing.cut(*output, inputs.first().copied(), 0)?;
    let reads = inputs.iter().map(|input| sizing.read(&partition, *input, Reach::Same)).collect();
    let shape = sizing.fused.shape(*output);
    // Each query meets a row of values for each channel. Making these rows takes as long.
    let row_macs = u64::from(shape.width) * u64::from(shape.channels) * u64::from(*head_dim) * 2;
    Ok(Node { row_macs, ..sizing.storing(*output, partition, reads) })
}

impl Lowering<'_> {
    /// Computes chunk `chunk`, with a launch for each chunk of each input.
    pub(super) fn linear_attention(&mut self, attention: &LinearAttention, chunk: usize) {
        let target = self.place(attention.output, chunk);
        let own = self.rows(chunk);
        let y_channels4 = self.fused.shape(attention.output).channels4();
        let mut channel4 = 0;
        for &input in &attention.inputs {
            let shape = self.fused.shape(input);
            let source = self.tensor(input).clone();
            let table = self.tables[&input];
            for index in source.partition.holding(own) {
                let held = source.partition.chunk(index);
                let rows = held.intersect(own);
                let params = ApplyParams {
                    pixels: rows.count() * shape.width,
                    heads: shape.channels / (3 * attention.head_dim),
                    x_offset: (rows.start - held.start) * shape.width * shape.channels4(),
                    y_offset: (rows.start - own.start) * shape.width * y_channels4 + channel4,
                    y_channels4,
                    eps: attention.eps,
                };
                let bindings =
                    [Resource::Buffer(source.chunk(index)), Resource::Buffer(table), Resource::Buffer(target)];
                self.launch(apply(source.storage, attention.head_dim / 4, params), &bindings);
            }
            channel4 += shape.channels4() / 3;
        }
    }
}
