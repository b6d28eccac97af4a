//! Convolutions of each channel by itself, in one launch for each band.

use crate::kernels::choice::ConvAlgorithm;
use crate::kernels::conv2d_depthwise::{Depthwise, DepthwiseParams};
use crate::kernels::weights::WeightLayout;
use crate::plan::Resource;
use crate::plan::fused::Conv;
use crate::plan::node::Scratch;
use crate::plan::partition::{Partition, reach};

use super::direct::band_rows;
use super::filter::input_rows;
use super::lowering::Lowering;
use super::seen;
use super::sizing::Sizing;

/// Returns the scratch memory of a convolution of each channel.
pub(super) fn scratch(sizing: &Sizing<'_>, conv: &Conv, output: &Partition) -> Scratch {
    let most = band_rows(&sizing.choice, seen::row_bytes(sizing.fused, conv, sizing.options));
    input_rows(sizing, conv, ConvAlgorithm::Depthwise, output, |chunk| chunk.bands(most))
}

impl Lowering<'_> {
    pub(super) fn depthwise(&mut self, conv: &Conv, chunk: usize, measure: bool) {
        let (input, output) = self.fused.shapes_of(conv);
        let layout = WeightLayout::Depthwise { filter: conv.window.side, channels: input.channels };
        let (weights, bias) = (self.weight(&conv.weight, layout, 1.0), self.bias(conv));
        let most = band_rows(&self.choice, seen::row_bytes(self.fused, conv, self.options));
        let target = self.place(conv.output, chunk);
        let own = self.rows(chunk);
        for rows in own.bands(most) {
            let (source, x_row0) = self.seen(conv, reach(rows, input.height, conv.window, false));
            let launch = Depthwise {
                input: self.tensor(conv.input).storage,
                output: self.output_of_stage().storage,
                side: conv.window.side,
                activation: conv.prologue.activation,
                gated: conv.gated,
                params: DepthwiseParams {
                    spans: 0,
                    rows: rows.count(),
                    y0: rows.start,
                    width: output.width,
                    height: output.height,
                    x_row0,
                    y_row0: own.start,
                    x_channels4: input.channels4(),
                    y_channels4: self.fused.shape(conv.output).channels4(),
                    scale: conv.scale,
                    gate_scale: conv.gate_scale,
                },
            }
            .launch();
            self.launch(launch, &[Resource::Buffer(source), weights, bias, Resource::Buffer(target)]);
        }
        if measure {
            self.measure(conv.output, chunk);
        }
    }
}
