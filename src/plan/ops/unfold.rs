//! 3x3 convolutions that move by more than one pixel. `unfold` writes what each output pixel sees,
//! and a product multiplies it with the filter.

use crate::kernels::choice::ConvAlgorithm;
use crate::kernels::matmul::{Epilogue, Matmul, MatmulParams};
use crate::kernels::unfold::{TAPS, UnfoldParams, unfold};
use crate::plan::Resource;
use crate::plan::fused::Conv;
use crate::plan::node::{Scratch, Shared};
use crate::plan::partition::{Partition, reach};

use super::filter::input_rows;
use super::lowering::Lowering;
use super::seen;
use super::sizing::Sizing;
use super::unfolding::Unfolding;

/// Returns the scratch memory of an unfolded convolution.
pub(super) fn scratch(sizing: &Sizing<'_>, conv: &Conv, output: &Partition) -> Scratch {
    let (input, shape) = sizing.fused.shapes_of(conv);
    let frames = seen::frames(sizing.fused, conv);
    let unfolding =
        Unfolding::new(frames * input.channels4(), shape, sizing.options.storage, &sizing.choice, sizing.limits);
    let seen = unfolding.most_pixels(output.rows) * unfolding.pixel_bytes;
    input_rows(sizing, conv, ConvAlgorithm::Unfold, output, |chunk| unfolding.bands(chunk)).with(Shared::V, seen)
}

impl Lowering<'_> {
    pub(super) fn unfold(&mut self, conv: &Conv, chunk: usize, measure: bool) {
        let (input, output) = self.fused.shapes_of(conv);
        let frames = seen::frames(self.fused, conv);
        let unfolding =
            Unfolding::new(frames * input.channels4(), output, self.options.storage, &self.choice, self.limits);
        let (weight, bias) = self.filter(conv);
        let target = Resource::Buffer(self.place(conv.output, chunk));
        let own = self.rows(chunk);
        let seen = Resource::Buffer(self.shared(Shared::V));
        let storage = self.tensor(conv.input).storage;
        for band in unfolding.bands(own) {
            let (source, row0) = self.seen(conv, reach(band, input.height, conv.window, false));
            for (first, pixels) in unfolding.launches(band) {
                let params = UnfoldParams {
                    pixels,
                    first,
                    width: output.width,
                    x_width: input.width,
                    x_height: input.height,
                    x_row0: row0,
                    channels4: input.channels4(),
                    frames,
                    frames_y: frames,
                    frame0: 0,
                };
                self.launch(unfold(storage, conv.window, params), &[Resource::Buffer(source), seen]);
                for frame in 0..output.frames {
                    let product = self.unfolded_product(conv, pixels, first - own.start * output.width, frame);
                    self.launch(product.launch(), &[seen, weight, bias, Resource::Unused, target]);
                }
            }
        }
        if measure {
            self.measure(conv.output, chunk);
        }
    }

    /// Returns the product of frame `frame` of `pixels` output pixels with the filter. `first` is
    /// the first of these pixels in the chunk.
    fn unfolded_product(&self, conv: &Conv, pixels: u32, first: u32, frame: u32) -> Matmul {
        let (input, output) = self.fused.shapes_of(conv);
        let (frame4, n4) = (TAPS * input.channels4(), output.channels4());
        let products = self.products(n4);
        Matmul {
            input: self.options.storage,
            output: self.output_of_stage().storage,
            epilogue: if conv.residual.is_some() { Epilogue::BiasAccumulate } else { Epilogue::Bias },
            products,
            frames: 1,
            params: MatmulParams {
                a_offset: frame * conv.step() * frame4,
                a_row: seen::frames(self.fused, conv) * frame4,
                c_offset: (first * output.frames + frame) * n4,
                c_row: output.frames * n4,
                scale: conv.scale,
                ..MatmulParams::rows(products, pixels, n4, conv.taps() * frame4)
            },
        }
    }
}
