//! Lowers 3x3 convolutions that move by more than a pixel: what each output pixel sees is written out, and multiplied.

use crate::kernels::matmul::{Epilogue, Matmul, MatmulParams};
use crate::kernels::unfold::{TAPS, UnfoldParams, unfold};
use crate::plan::Resource;
use crate::plan::fuse::Conv;
use crate::plan::partition::reach;
use crate::plan::unfolding::Unfolding;

use super::Lowering;

impl Lowering<'_> {
    pub(super) fn unfold(&mut self, conv: &Conv, chunk: usize, measure: bool) {
        let (input, output) = (self.fused.shape(conv.input), self.fused.shape(conv.output));
        let unfolding = Unfolding::new(input, output, self.options.storage, &self.choice, self.limits);
        let (weight, bias) = self.filter(conv);
        let target = Resource::Buffer(self.place(chunk));
        let own = self.stored[self.stage].partition.chunk(chunk);
        let bytes = self.pass.sizes.v;
        let seen = self.pass.v.unwrap_or_else(|| self.scratch("v", bytes));
        self.pass.v = Some(seen);
        let seen = Resource::Buffer(seen);
        let storage = self.tensor(conv.input).storage;
        for band in unfolding.bands(own) {
            let (source, row0) = self.source(conv.input, reach(band, input.height, conv.window, false));
            for (first, pixels) in unfolding.launches(band) {
                let params = UnfoldParams {
                    pixels,
                    first,
                    width: output.width,
                    x_width: input.width,
                    x_height: input.height,
                    x_row0: row0,
                    channels4: input.channels4(),
                    frames: 1,
                    frames_y: 1,
                    frame0: 0,
                };
                self.launch(unfold(storage, conv.window, params), &[Resource::Buffer(source), seen]);
                let product = self.unfolded_product(conv, pixels, first - own.start * output.width);
                self.launch(product.launch(), &[seen, weight, bias, Resource::Unused, target]);
            }
        }
        if measure {
            self.measure(conv.output, chunk);
        }
    }

    /// The product of `pixels` output pixels with the filter, from pixel `first` of the chunk on.
    fn unfolded_product(&self, conv: &Conv, pixels: u32, first: u32) -> Matmul {
        let (input, output) = (self.fused.shape(conv.input), self.fused.shape(conv.output));
        let (k4, n4) = (TAPS * input.channels4(), output.channels4());
        let tile = self.choice.matmul_tile;
        Matmul {
            input: self.options.storage,
            output: self.stored[self.stage].storage,
            epilogue: Epilogue::Bias,
            tile,
            batch: 1,
            params: MatmulParams {
                m: pixels,
                m_stored: pixels,
                n4,
                k4,
                a_offset: 0,
                a_row: k4,
                a_column: 1,
                a_batch: 0,
                b_offset: 0,
                b_row: n4,
                b_block: tile.columns4(),
                b_batch: 0,
                c_offset: first * n4,
                c_row: n4,
                c_batch: 0,
                scale: conv.scale,
            },
        }
    }
}
