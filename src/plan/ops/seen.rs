//! Input of a convolution that must be made before the kernel reads it: rows after a norm, or rows
//! of several frames with the past in front.

use crate::kernels::choice::ConvAlgorithm;
use crate::kernels::frames::{self, CopyFramesParams};
use crate::kernels::group_norm::{ApplyParams, apply};
use crate::plan::algorithm::normalises_before;
use crate::plan::fused::{Conv, Fused, NormId, Normalize};
use crate::plan::node::Shared;
use crate::plan::partition::RowRange;
use crate::plan::{BufferId, PlanOptions, Resource};

use super::frame_rows::{FrameRows, FrameTarget};
use super::lowering::Lowering;
use super::pixel_norm::Application;

/// True if the input of `conv` must be made first.
pub(super) fn is_made(algorithm: ConvAlgorithm, conv: &Conv) -> bool {
    normalises_before(algorithm, conv) || (conv.before() > 0 && algorithm != ConvAlgorithm::Winograd)
}

/// Returns the bytes of one row of that input, of all frames.
pub(super) fn row_bytes(fused: &Fused, conv: &Conv, options: &PlanOptions) -> u64 {
    let frame = fused.row_bytes(conv.input, options.storage) / u64::from(fused.shape(conv.input).frames);
    frame * u64::from(frames(fused, conv))
}

/// Returns the number of frames that `conv` reads.
pub(super) fn frames(fused: &Fused, conv: &Conv) -> u32 {
    conv.before() + fused.shape(conv.input).frames
}

impl Lowering<'_> {
    /// Returns a buffer that holds the rows `rows` of the input of `conv`, as `conv` reads them,
    /// and the first row in that buffer.
    pub(super) fn seen(&mut self, conv: &Conv, rows: RowRange) -> (BufferId, u32) {
        let (buffer, row0) = self.source(conv.input, rows, Shared::Gathered);
        if conv.before() == 0 && conv.prologue.norm.is_none() {
            return (buffer, row0);
        }
        let shape = self.fused.shape(conv.input);
        let frame4 = shape.channels4();
        let group = match conv.prologue.norm {
            Some(Normalize::Group(norm)) => Some(norm),
            Some(Normalize::Pixel(_)) | None => None,
        };
        let target = self.shared(Shared::Normed);
        let pixel4 = frames(self.fused, conv) * frame4;
        let pixels = rows.count() * shape.width;
        let to = |frame: u32| FrameTarget { buffer: target, offset: frame * frame4, pixel4 };
        let offset = (rows.start - row0) * shape.width * shape.pixel4();
        let table = group.map(|norm: NormId| self.norms[&norm]);
        let own = FrameRows { buffer, offset, frames: shape.frames, pixels, table };
        if rows.end > shape.height {
            // The first rows follow the last, in a buffer that may begin with either.
            for (piece, before) in rows.pieces(shape.height) {
                let place = (piece.start + shape.height - row0) % shape.height;
                let offset = place * shape.width * shape.pixel4();
                let pixels = piece.count() * shape.width;
                let to = FrameTarget { offset: before * shape.width * pixel4, ..to(0) };
                self.bring(conv, FrameRows { offset, pixels, ..own }, to);
            }
            return (target, rows.start);
        }
        match conv.past {
            Some(past) => {
                let (buffer, row0) = self.source(past, rows, Shared::GatheredPast);
                let shape = self.fused.shape(past);
                let offset = (rows.start - row0) * shape.width * shape.pixel4();
                let table = group.map(|norm: NormId| self.past_norms[&norm]);
                self.bring(conv, FrameRows { buffer, offset, frames: shape.frames, pixels, table }, to(0));
            }
            // Copies of the first frame. The input has only this frame.
            None => (0..conv.before()).for_each(|frame| self.bring(conv, own, to(frame))),
        }
        self.bring(conv, own, to(conv.before()));
        (target, rows.start)
    }

    /// Normalises and activates `source` as `conv` reads it, or copies it if there is no norm.
    fn bring(&mut self, conv: &Conv, source: FrameRows, target: FrameTarget) {
        let (storage, channels4) = (self.tensor(conv.input).storage, self.fused.shape(conv.input).channels4());
        let pixel4 = source.frames * channels4;
        let (from, to) = (Resource::Buffer(source.buffer), Resource::Buffer(target.buffer));
        match (conv.prologue.norm, source.table) {
            (Some(Normalize::Pixel(norm)), _) => {
                let activation = conv.prologue.activation;
                let application = Application { norm, input: conv.input, activation, sum: None };
                self.pixel_norm(application, source, target);
            }
            (Some(Normalize::Group(_)), Some(table)) => {
                let params = ApplyParams {
                    elements: source.pixels * pixel4,
                    channels4: pixel4,
                    x_offset: source.offset,
                    y_offset: target.offset,
                    y_pixel4: target.pixel4,
                };
                let launch = apply(storage, conv.prologue.activation, params);
                self.launch(launch, &[from, Resource::Buffer(table), to]);
            }
            _ => {
                let params = CopyFramesParams {
                    pixels: source.pixels,
                    vec4s: pixel4,
                    x_offset: source.offset,
                    x_pixel4: pixel4,
                    y_offset: target.offset,
                    y_pixel4: target.pixel4,
                };
                self.launch(frames::copy(storage, params), &[from, to]);
            }
        }
    }
}
