//! Code that all algorithms of a 3x3 convolution share.

use crate::kernels::choice::ConvAlgorithm;
use crate::kernels::weights::WeightLayout;
use crate::model::graph::Shape;
use crate::plan::Resource;
use crate::plan::fused::Conv;
use crate::plan::node::{Scratch, Shared};
use crate::plan::partition::{Partition, RowRange, reach};

use super::lowering::Lowering;
use super::seen;
use super::sizing::Sizing;

/// Returns the scratch memory for the input rows of one band of the output: rows gathered from
/// several chunks, and rows that are normalised before they are read. `bands` cuts the rows of a
/// chunk into bands.
pub(super) fn input_rows<B: Iterator<Item = RowRange>>(
    sizing: &Sizing<'_>,
    conv: &Conv,
    algorithm: ConvAlgorithm,
    output: &Partition,
    bands: impl Fn(RowRange) -> B,
) -> Scratch {
    let (input, row_bytes) = (sizing.partition(conv.input), sizing.row_bytes(conv.input));
    let past_bytes = conv.past.map_or(0, |past| sizing.row_bytes(past));
    let doubled = conv.prologue.doubling.is_some();
    let (mut all, mut straddling) = (0, 0);
    for band in (0..output.count()).flat_map(|chunk| bands(output.chunk(chunk))) {
        let rows = reach(band, input.height, conv.window, doubled);
        all = all.max(rows.count());
        if input.holding(rows).len() > 1 {
            straddling = straddling.max(rows.count());
        }
    }
    let normed = if seen::is_made(algorithm, conv) {
        u64::from(all) * seen::row_bytes(sizing.fused, conv, sizing.options)
    } else {
        0
    };
    let straddling = u64::from(straddling);
    Scratch::default()
        .with(Shared::Gathered, straddling * row_bytes)
        .with(Shared::GatheredPast, straddling * past_bytes)
        .with(Shared::Normed, normed)
}

impl Lowering<'_> {
    /// Returns the filter and the bias of a 3x3 convolution.
    pub(super) fn filter(&mut self, conv: &Conv) -> (Resource, Resource) {
        let (input, output) = self.fused.shapes_of(conv);
        let layout = WeightLayout::filter(conv.taps(), 3, input.channels, output.channels);
        (self.weight(&conv.weight, layout, 1.0), self.bias(conv))
    }

    /// Returns the bias of a convolution.
    pub(super) fn bias(&mut self, conv: &Conv) -> Resource {
        let (_, Shape { channels, .. }) = self.fused.shapes_of(conv);
        self.weight(&conv.bias, WeightLayout::Vector { channels }, conv.bias_scale)
    }
}
