//! The parts of a clip in which a step runs. One plan is for several parts: the executor skips
//! steps whose turn it is not.
//!
//! In a network that sees frames of later parts, a tensor lags behind the latents. So its stage
//! begins some parts after the first, and ends as many parts after the last latent. Attention that
//! sees all earlier frames has steps for each of them, which run once that frame has come.

use serde::Serialize;

use crate::model::graph::{Shape, WINDOW};

/// A part of a clip that is being run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Turn {
    /// Number of parts before it.
    pub part: u64,
    /// Number of latents of the clip, if all have been decoded.
    pub latents: Option<u64>,
}

/// A part, counted from the first or from the last latent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// This many parts after that of the first latent.
    First(u32),
    /// This many parts after that of the last latent.
    Last(u32),
}

/// The parts in which a step runs: both ends, and all between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Turns {
    /// First part.
    pub from: Edge,
    /// Last part.
    pub to: Edge,
}

impl Edge {
    /// Returns the number of parts before this one. `None` if the clip's end is not known, and so
    /// not reached.
    fn part(self, latents: Option<u64>) -> Option<u64> {
        match self {
            Self::First(later) => Some(u64::from(later)),
            Self::Last(later) => Some((latents? + u64::from(later)).saturating_sub(1)),
        }
    }
}

impl Turns {
    /// Returns the parts in which a tensor of this shape has frames of the clip.
    pub(super) fn of(tensor: Shape) -> Self {
        Self { from: Edge::First(tensor.delay()), to: Edge::Last(tensor.delay()) }
    }

    /// Returns the part of latent `latent`.
    pub(super) fn at(latent: u32) -> Self {
        Self { from: Edge::First(latent), to: Edge::First(latent) }
    }

    /// Returns the parts after that of latent `latent`.
    pub(super) fn after(latent: u32) -> Self {
        Self { from: Edge::First(latent + 1), to: Edge::Last(0) }
    }

    /// Returns the shortest span that contains both.
    #[must_use]
    pub(super) fn and(self, other: Self) -> Self {
        Self { from: self.from.min(other.from), to: self.to.max(other.to) }
    }

    /// True if a step with these turns runs in this part.
    pub fn contain(self, turn: Turn) -> bool {
        self.from.part(turn.latents).is_some_and(|first| first <= turn.part)
            && self.to.part(turn.latents).is_none_or(|last| turn.part <= last)
    }
}

/// The turns of the steps that make a window, and the frames that they copy.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowTurns {
    /// Turns of the steps that bring past frames.
    pub(super) past: Turns,
    /// Turns of the steps that bring the input's frames.
    pub(super) own: Turns,
    /// Turns of the steps that put copies of the first frame before it.
    pub(super) first: Turns,
    /// Turns of the steps that put copies of the last frame after it.
    pub(super) last: Turns,
    /// Turns of the steps that replace all frames of the input by copies of the last frame, which
    /// is a past one then.
    pub(super) after: Turns,
    /// Index of the clip's first frame, and of its last one, among the input's frames of the part
    /// in which it comes.
    pub(super) index: u32,
}

impl WindowTurns {
    /// Returns the turns of a window of `input` whose stage runs in `all` parts.
    pub(super) fn of(input: Shape, all: Turns) -> Self {
        let delay = input.delay();
        let (at_first, at_last) = (Edge::First(delay), Edge::Last(delay));
        Self {
            past: Turns { from: Edge::First(delay + 1), to: all.to },
            own: Turns { from: at_first, to: at_last },
            first: Turns { from: at_first, to: at_first },
            last: Turns { from: at_last, to: at_last },
            after: Turns { from: Edge::Last(delay + 1), to: all.to },
            index: input.first.unsigned_abs() % input.frames,
        }
    }

    /// Returns the frames of the window that are before the clip's first frame in its part.
    pub(super) fn before(self) -> std::ops::Range<u32> {
        0..WINDOW + self.index
    }
}
