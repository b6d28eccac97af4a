//! 3x3 convolutions in one launch for each band. A norm is applied to the band's rows and their
//! halo first.

use crate::kernels::choice::{ConvAlgorithm, KernelChoice};
use crate::kernels::conv2d_direct::{Conv2dDirect, Conv2dDirectParams};
use crate::plan::fused::Conv;
use crate::plan::node::Scratch;
use crate::plan::partition::{Partition, RowRange, reach};
use crate::plan::{BufferId, Resource};

use super::filter::input_rows;
use super::lowering::Lowering;
use super::seen;
use super::sizing::Sizing;

/// Returns the rows of a band that reads rows of `row_bytes` bytes.
pub(super) fn band_rows(choice: &KernelChoice, row_bytes: u64) -> u32 {
    u32::try_from(choice.winograd_scratch_bytes * 2 / row_bytes).unwrap_or(u32::MAX)
}

/// Returns the scratch memory of a direct convolution.
pub(super) fn scratch(sizing: &Sizing<'_>, conv: &Conv, output: &Partition) -> Scratch {
    let most = band_rows(&sizing.choice, seen::row_bytes(sizing.fused, conv, sizing.options));
    input_rows(sizing, conv, ConvAlgorithm::Direct, output, |chunk| chunk.bands(most))
}

impl Lowering<'_> {
    pub(super) fn direct(&mut self, conv: &Conv, chunk: usize, measure: bool) {
        let height = self.fused.shape(conv.input).height;
        let weights = self.filter(conv);
        let most = band_rows(&self.choice, seen::row_bytes(self.fused, conv, self.options));
        let target = self.place(conv.output, chunk);
        let own = self.rows(chunk);
        for rows in own.bands(most) {
            let reach = reach(rows, height, conv.window, conv.prologue.doubling.is_some());
            let source = self.seen(conv, reach);
            self.direct_band(conv, rows, source, weights, (target, own.start));
        }
        if measure {
            self.measure(conv.output, chunk);
        }
    }

    fn direct_band(
        &mut self,
        conv: &Conv,
        rows: RowRange,
        (source, x_row0): (BufferId, u32),
        (weight, bias): (Resource, Resource),
        (target, y_row0): (BufferId, u32),
    ) {
        let (input, output) = self.fused.shapes_of(conv);
        let launch = Conv2dDirect {
            input: self.tensor(conv.input).storage,
            output: self.output_of_stage().storage,
            upsample: conv.prologue.doubling.is_some(),
            relu: conv.relu,
            border: conv.window.border,
            tile: self.choice.direct_tile,
            times: conv.taps(),
            params: Conv2dDirectParams {
                spans: 0,
                rows: rows.count(),
                y0: rows.start,
                width: output.width,
                height: output.height,
                x_width: input.width,
                x_row0: x_row0.cast_signed(),
                y_row0: y_row0.cast_signed(),
                c_in4: input.channels4(),
                c_out4: output.channels4(),
                frames_in: seen::frames(self.fused, conv),
                frames: output.frames,
                scale: conv.scale,
            },
        }
        .launch();
        self.launch(launch, &[Resource::Buffer(source), weight, bias, Resource::Buffer(target)]);
    }
}
