//! Windows: the frames of a tensor, with the last frames of the part before in front.
//!
//! At both ends of a clip, copies of its first or last frame take the place of frames that do not
//! exist. The steps that put them there run in the parts in which these frames come.

use crate::error::Result;
use crate::kernels::frames::{self, CopyFramesParams};
use crate::model::graph::{TensorId, WINDOW};
use crate::plan::fused::FrameWindow;
use crate::plan::node::{Node, Scratch, Shared};
use crate::plan::turns::{Turns, WindowTurns};
use crate::plan::{Action, BufferId, Resource, StatePart};

use super::lowering::Lowering;
use super::sizing::{Reach, Sizing};

/// Returns the node of a window.
///
/// # Errors
/// [`crate::Error::TooLarge`] if four rows of its output exceed a binding.
pub(super) fn node(sizing: &Sizing<'_>, window: &FrameWindow) -> Result<Node> {
    let partition = sizing.cut(window.output, Some(window.input), 0)?;
    let reads = vec![sizing.read(&partition, window.input, Reach::Same)];
    let frame = sizing.row_bytes(window.output) / u64::from(sizing.fused.shape(window.output).frames);
    // Frames that the part before has kept, and frames that are kept for the next.
    let kept = u64::from(partition.rows) * frame * u64::from(WINDOW);
    let scratch = Scratch::default().with(Shared::Kept, kept).with(Shared::GatheredPast, kept);
    Ok(Node { scratch, ..sizing.storing(window.output, partition, reads) })
}

/// A frame of some rows in a buffer, from which copies are made.
#[derive(Debug, Clone, Copy)]
struct Source {
    buffer: BufferId,
    /// Element of its first pixel.
    offset: u32,
    /// Number of frames in the buffer.
    frames: u32,
    /// First frame that is copied, and number of frames that are.
    frame: u32,
    count: u32,
    pixels: u32,
}

impl Lowering<'_> {
    /// Makes chunk `chunk` of a window.
    pub(super) fn window(&mut self, window: &FrameWindow, chunk: usize) {
        let own = self.fused.shape(window.input);
        let turns = WindowTurns::of(own, self.turns.unwrap_or(Turns::of(own)));
        let target = self.place(window.output, chunk);
        let rows = self.rows(chunk);
        let all = Source { buffer: target, offset: 0, frames: WINDOW, frame: 0, count: WINDOW, pixels: 0 };
        let past = Source { pixels: rows.count() * own.width, ..all };
        let past = Source { buffer: self.recalled(window, chunk, turns.past), ..past };
        self.copy(window.output, past, target, (0, 0), turns.past);
        for frame in WINDOW..WINDOW + own.frames {
            let last = Source { frame: WINDOW - 1, count: 1, ..past };
            self.copy(window.output, last, target, (0, frame), turns.after);
        }
        let input = self.tensor(window.input).clone();
        for index in input.partition.holding(rows) {
            let held = input.partition.chunk(index);
            let piece = held.intersect(rows);
            let source = Source {
                buffer: input.chunk(index),
                offset: (piece.start - held.start) * own.width * own.pixel4(),
                frames: own.frames,
                frame: 0,
                count: own.frames,
                pixels: piece.count() * own.width,
            };
            let row = piece.start - rows.start;
            self.copy(window.output, source, target, (row, WINDOW), turns.own);
            let end = Source { frame: turns.index, count: 1, ..source };
            for frame in turns.before() {
                self.copy(window.output, end, target, (row, frame), turns.first);
            }
            for frame in WINDOW + turns.index + 1..WINDOW + own.frames {
                self.copy(window.output, end, target, (row, frame), turns.last);
            }
        }
    }

    /// Returns a buffer with the rows of chunk `chunk` of the frames that the part before kept.
    fn recalled(&mut self, window: &FrameWindow, chunk: usize, turns: Turns) -> BufferId {
        let state = self.state(window.output, false, &window.name, WINDOW);
        let (rows, row_bytes) = (self.rows(chunk), self.plan.states[state.0].row_bytes.0);
        let past = self.scratch("past", u64::from(rows.count()) * row_bytes);
        self.turns = Some(turns);
        self.step(Action::Recall { state, part: StatePart::Frames(u64::from(rows.start) * row_bytes), to: past }, 0);
        past
    }

    /// Copies frames to the chunk `target` of a window, from its row and frame `to` on.
    fn copy(&mut self, output: TensorId, source: Source, target: BufferId, (row, frame): (u32, u32), turns: Turns) {
        let shape = self.fused.shape(output);
        let frame4 = shape.channels4();
        let params = CopyFramesParams {
            pixels: source.pixels,
            vec4s: source.count * frame4,
            x_offset: source.offset + source.frame * frame4,
            x_pixel4: source.frames * frame4,
            y_offset: row * shape.width * shape.pixel4() + frame * frame4,
            y_pixel4: shape.pixel4(),
        };
        self.turns = Some(turns);
        let launch = frames::copy(self.output_of_stage().storage, params);
        self.launch(launch, &[Resource::Buffer(source.buffer), Resource::Buffer(target)]);
    }
}
