//! Norms and activations that are applied to the rows of a band before a convolution reads them.

use crate::kernels::group_norm::{ApplyParams, apply};
use crate::kernels::pixel_norm::{self, PixelNormParams};
use crate::kernels::weights::Layout;
use crate::model::graph::Weight;
use crate::plan::fused::{Conv, Normalize};
use crate::plan::partition::Rows;
use crate::plan::{BufferId, Resource};

use super::lowering::Lowering;
use super::pass::Shared;

impl Lowering<'_> {
    /// Normalises and activates `rows` of what `conv` reads, if they are to be: `source` holds them and starts with row `row0`. Returns where they are then.
    pub(super) fn normalised(&mut self, conv: &Conv, (source, row0): (BufferId, u32), rows: Rows) -> (BufferId, u32) {
        let (Some(norm), activation) = (conv.prologue.norm, conv.prologue.activation) else { return (source, row0) };
        let shape = self.fused.shape(conv.input);
        let target = self.shared(Shared::Normed);
        let x_offset = (rows.start - row0) * shape.width * shape.channels4();
        match norm {
            Normalize::Group(norm) => {
                let elements = rows.count() * shape.width * shape.channels4();
                let params = ApplyParams { elements, channels4: shape.channels4(), x_offset };
                let launch = apply(self.tensor(conv.input).storage, activation, params);
                let table = Resource::Buffer(self.norms[&norm]);
                self.launch(launch, &[Resource::Buffer(source), table, Resource::Buffer(target)]);
            }
            Normalize::Pixel(norm) => self.pixel_norm(conv, norm, (source, x_offset), rows, target),
        }
        (target, rows.start)
    }

    fn pixel_norm(
        &mut self,
        conv: &Conv,
        norm: usize,
        (source, x_offset): (BufferId, u32),
        rows: Rows,
        target: BufferId,
    ) {
        let shape = self.fused.shape(conv.input);
        let norm = &self.fused.pixel_norms[norm];
        let gamma = Weight::all(format!("{}.gamma", norm.name));
        #[expect(clippy::cast_precision_loss, reason = "channel counts are small")]
        let root = (shape.channels as f32).sqrt();
        let params = PixelNormParams {
            pixels: rows.count() * shape.width,
            channels4: shape.channels4(),
            x_offset,
            root,
            least: norm.least,
        };
        let gamma = self.weight(&gamma, Layout::Vector { channels: shape.channels }, 1.0);
        let launch = pixel_norm::apply(self.tensor(conv.input).storage, conv.prologue.activation, params);
        self.launch(launch, &[Resource::Buffer(source), gamma, Resource::Buffer(target)]);
    }
}
