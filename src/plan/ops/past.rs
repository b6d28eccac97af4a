//! States of a clip. A part recalls the frames that the part before kept, and keeps frames for the
//! next part.
//!
//! A chunk is kept after the last task that reads it. So recomputing it later, in any pass, still
//! finds what the part before kept.

use crate::kernels::frames::{self, CopyFramesParams};
use crate::kernels::group_norm::NORM_VEC4_BYTES;
use crate::model::graph::{Shape, TensorId};
use crate::plan::fused::{Conv, KeptFrames, Normalize, Stage};
use crate::plan::node::{Node, Shared};
use crate::plan::{Action, BufferId, Resource, StateId, StatePart, StateUse};
use crate::tensor::Bytes;

use super::lowering::Lowering;
use super::sizing::Sizing;

/// Returns the node that recalls frames like those of `like`.
pub(super) fn node(sizing: &Sizing<'_>, like: TensorId, output: TensorId) -> Node {
    // Cut like `like`: both chunks can be freed at the same time.
    sizing.storing(output, sizing.partition(like).clone(), Vec::new())
}

/// Returns the bytes of the frames of a chunk of `input` that a stage keeps, if they are first
/// copied together.
pub(super) fn kept_bytes(sizing: &Sizing<'_>, input: TensorId, keeps: &[KeptFrames]) -> u64 {
    let shape = sizing.fused.shape(input);
    let rows = u64::from(sizing.partition(input).rows);
    let frame = sizing.row_bytes(input) / u64::from(shape.frames);
    let frames = keeps.iter().map(|keep| keep.frames).filter(|frames| *frames != shape.frames);
    rows * frame * u64::from(frames.max().unwrap_or(0))
}

/// A copy of some frames, of a chunk or of a norm's factors and summands: `count` frames of `from`,
/// from frame `first` on. They become the frames of the target from frame `to` on.
#[derive(Debug, Clone, Copy)]
struct PastPiece {
    from: BufferId,
    /// Number of frames in `from`.
    frames: u32,
    first: u32,
    count: u32,
    to: u32,
}

/// Returns the pieces that make the last `kept` frames of `own`, with frames of `past` in front. If
/// there is no past, copies of the first frame of `own` are in front.
fn last(kept: u32, own: (BufferId, u32), past: Option<(BufferId, u32)>) -> Vec<PastPiece> {
    let count = own.1.min(kept);
    let missing = kept - count;
    let mut pieces = match past {
        Some((from, frames)) if missing > 0 => {
            vec![PastPiece { from, frames, first: frames - missing, count: missing, to: 0 }]
        }
        _ => (0..missing).map(|to| PastPiece { from: own.0, frames: own.1, first: 0, count: 1, to }).collect(),
    };
    pieces.push(PastPiece { from: own.0, frames: own.1, first: own.1 - count, count, to: missing });
    pieces
}

/// True if a group norm is applied to the input of `conv`.
fn is_normed(conv: &Conv) -> bool {
    matches!(conv.prologue.norm, Some(Normalize::Group(_)))
}

impl Lowering<'_> {
    /// Recalls chunk `chunk` of the frames that the convolution `by` reads.
    pub(super) fn past(&mut self, by: &str, output: TensorId, chunk: usize) {
        let Some(conv) = self.fused.conv_named(by) else { return };
        let state = self.state(conv.input, is_normed(conv), by, self.fused.shape(output).frames);
        let (rows, row_bytes) = (self.rows(chunk), self.nodes[self.stage].row_bytes);
        let to = self.new_chunk(chunk, u64::from(rows.count()) * row_bytes);
        let part = StatePart::Frames(u64::from(rows.start) * row_bytes);
        self.step(Action::Recall { state, part, to }, 0);
    }

    /// Keeps frames of chunk `chunk` of the input of stage `index`. The stage has read the chunk
    /// for the last time.
    pub(in crate::plan) fn keep(&mut self, index: usize, chunk: usize) {
        let stage = self.begin_stage(index);
        let (input, conv) = match stage {
            Stage::Conv(conv) => (conv.input, Some(&**conv)),
            Stage::Shortcut(shortcut) => (shortcut.input, None),
            // Its own last frames.
            Stage::Window(window) => (window.output, None),
            Stage::Input { .. }
            | Stage::Past { .. }
            | Stage::NormedSum(_)
            | Stage::LinearAttention(_)
            | Stage::Attention { .. }
            | Stage::Output { .. } => return,
        };
        for keep in stage.keeps() {
            self.keep_chunk(input, conv, keep, chunk);
        }
    }

    fn keep_chunk(&mut self, input: TensorId, conv: Option<&Conv>, keep: &KeptFrames, chunk: usize) {
        let shape = self.fused.shape(input);
        let stored = self.tensor(input);
        let (own, rows, storage) = (stored.chunk(chunk), stored.partition.chunk(chunk), stored.storage);
        let past =
            conv.and_then(|conv| conv.past).map(|past| (self.tensor(past).chunk(chunk), self.fused.shape(past).frames));
        let pixels = rows.count() * shape.width;
        let mut from = own;
        if keep.frames != shape.frames {
            from = self.shared(Shared::Kept);
            for piece in last(keep.frames, (own, shape.frames), past) {
                let params = CopyFramesParams {
                    pixels,
                    vec4s: piece.count * shape.channels4(),
                    x_offset: piece.first * shape.channels4(),
                    x_pixel4: piece.frames * shape.channels4(),
                    y_offset: piece.to * shape.channels4(),
                    y_pixel4: keep.frames * shape.channels4(),
                };
                let bindings = [Resource::Buffer(piece.from), Resource::Buffer(from)];
                self.launch(frames::copy(storage, params), &bindings);
            }
        }
        let normed = conv.is_some_and(|conv| is_normed(conv) && conv.name == keep.by);
        let state = self.state(input, normed, &keep.by, keep.frames);
        let row_bytes = self.plan.states[state.0].row_bytes.0;
        let part = StatePart::Frames(u64::from(rows.start) * row_bytes);
        self.step(Action::Keep { from, state, part, bytes: u64::from(rows.count()) * row_bytes }, 0);
    }

    /// Keeps the table of norm `id` for the next part, if a convolution in time applies that norm.
    /// Recalls the table of the part before, if the convolution reads past frames. `table` has the
    /// factors and summands for a tensor of `shape`.
    pub(super) fn keep_norm(&mut self, id: usize, table: BufferId, shape: Shape) {
        let reader = self.fused.stages.iter().find_map(|stage| match stage {
            Stage::Conv(conv) if conv.prologue.norm == Some(Normalize::Group(id)) => conv.time.map(|time| (conv, time)),
            _ => None,
        });
        let Some((conv, time)) = reader else { return };
        let state = self.state(conv.input, is_normed(conv), &conv.name, time.kept());
        let frame_bytes = u64::from(shape.channels4()) * NORM_VEC4_BYTES;
        let past = conv.past.map(|past| {
            let frames = self.fused.shape(past).frames;
            let to = self.scratch("past_norm", u64::from(frames) * frame_bytes);
            self.step(Action::Recall { state, part: StatePart::Table, to }, 0);
            self.past_norms.insert(id, to);
            (to, frames)
        });
        let bytes = u64::from(time.kept()) * frame_bytes;
        let from = self.scratch("kept_norm", bytes);
        for piece in last(time.kept(), (table, shape.frames), past) {
            let [first, to, count] = [piece.first, piece.to, piece.count].map(|frames| u64::from(frames) * frame_bytes);
            self.step(Action::Copy { from: (piece.from, first), to: (from, to), bytes: count }, 0);
        }
        self.step(Action::Keep { from, state, part: StatePart::Table, bytes }, 0);
    }

    /// Returns the state of `frames` frames like `input`, for the convolution `by`. If `normed`, a
    /// group norm is applied to them.
    pub(super) fn state(&mut self, input: TensorId, normed: bool, by: &str, frames: u32) -> StateId {
        let shape = self.fused.shape(input);
        let frame = self.fused.row_bytes(input, self.options.storage) / u64::from(shape.frames);
        let table = if normed { u64::from(frames * shape.channels4()) * NORM_VEC4_BYTES } else { 0 };
        self.state_of_rows(input, by, (shape.height, Bytes(frame * u64::from(frames))), Bytes(table))
    }

    /// Returns the state called `name`, of so many rows of so many bytes, and a norm's table of
    /// `table` bytes. Its content is stored as `like` is.
    pub(super) fn state_of_rows(
        &mut self,
        like: TensorId,
        name: &str,
        (rows, row_bytes): (u32, Bytes),
        table: Bytes,
    ) -> StateId {
        if let Some(state) = self.states.get(name) {
            return *state;
        }
        self.plan.states.push(StateUse {
            name: name.to_owned(),
            rows,
            row_bytes,
            table,
            factor: self.fused.factors[like.0],
            home: self.options.host_states.home(name),
        });
        let state = StateId(self.plan.states.len() - 1);
        self.states.insert(name.to_owned(), state);
        state
    }
}
