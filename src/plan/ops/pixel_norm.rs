//! Norms of pixels: before a convolution reads them, and as a summand.

use crate::kernels::pixel_norm::{self, PixelNormParams};
use crate::kernels::weights::WeightLayout;
use crate::model::graph::{Activation, TensorId};
use crate::plan::Resource;
use crate::plan::fused::{NormedSum, PixelNormId};
use crate::plan::node::Node;

use super::frame_rows::{FrameRows, FrameTarget};
use super::lowering::Lowering;
use super::sizing::{Reach, Sizing};

/// The use of a norm.
#[derive(Debug, Clone, Copy)]
pub(super) struct Application {
    pub(super) norm: PixelNormId,
    /// Tensor that is read: in an estimate, not the one that the norm names.
    pub(super) input: TensorId,
    /// Function that follows the norm.
    pub(super) activation: Option<Activation>,
    /// Factor of the norm if it is added to what is there. `None` if it replaces that.
    pub(super) sum: Option<f32>,
}

/// Returns the node of a sum with a norm.
pub(super) fn node(sizing: &Sizing<'_>, sum: &NormedSum) -> Node {
    let partition = sizing.partition(sum.sum).clone();
    let reads = vec![sizing.read(&partition, sum.input, Reach::Same)];
    Node { replaces: Some(sizing.producer(sum.sum)), ..sizing.storing(sum.output, partition, reads) }
}

impl Lowering<'_> {
    /// Adds the norm to chunk `chunk` of the summand, with a launch for each chunk of its input.
    pub(super) fn normed_sum(&mut self, sum: &NormedSum, chunk: usize, measure: bool) {
        let shape = self.fused.shape(sum.input);
        let target = self.place(sum.output, chunk);
        let own = self.rows(chunk);
        let source = self.tensor(sum.input).clone();
        let row4 = shape.width * shape.pixel4();
        for index in source.partition.holding(own) {
            let held = source.partition.chunk(index);
            let rows = held.intersect(own);
            let from = FrameRows {
                buffer: source.chunk(index),
                offset: (rows.start - held.start) * row4,
                frames: shape.frames,
                pixels: rows.count() * shape.width,
                table: None,
            };
            let to = FrameTarget { buffer: target, offset: (rows.start - own.start) * row4, pixel4: shape.pixel4() };
            let (norm, input) = (sum.norm, sum.input);
            self.pixel_norm(Application { norm, input, activation: None, sum: Some(sum.scale) }, from, to);
        }
        if measure {
            self.measure(sum.output, chunk);
        }
    }

    /// Launches a norm of each pixel of `source`.
    pub(super) fn pixel_norm(&mut self, application: Application, source: FrameRows, target: FrameTarget) {
        let norm = &self.fused.pixel_norms[application.norm];
        let shape = self.fused.shape(application.input);
        #[expect(clippy::cast_precision_loss, reason = "channel counts are small")]
        let channels = shape.channels as f32;
        let params = PixelNormParams {
            pixels: source.pixels,
            frames: source.frames,
            channels4: shape.channels4(),
            x_offset: source.offset,
            y_offset: target.offset,
            y_pixel4: target.pixel4,
            root: channels.sqrt(),
            least: norm.least,
            eps: channels * norm.eps,
        };
        let (layout, factor) = (WeightLayout::Vector { channels: shape.channels }, application.sum.unwrap_or(1.0));
        let gamma = self.weight(&norm.gamma, layout, factor);
        let beta = norm.beta.as_ref().map(|beta| self.weight(beta, layout, factor));
        let launch = pixel_norm::PixelNorm {
            storage: self.tensor(application.input).storage,
            activation: application.activation,
            lanes: pixel_norm::lanes(self.limits.kind),
            has_beta: beta.is_some(),
            sum: application.sum.is_some(),
            params,
        }
        .launch();
        let bindings =
            [Resource::Buffer(source.buffer), gamma, beta.unwrap_or(Resource::Unused), Resource::Buffer(target.buffer)];
        self.launch(launch, &bindings);
    }
}
