//! Groups of measurements for tables: decodes or encodes, of images or of clips.

use crate::Measurement;
use wgvae::Direction;

/// Kind of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Runs {
    pub(super) operation: Direction,
    pub(super) are_clips: bool,
}

impl Runs {
    /// Returns all kinds, images before clips.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let both = |operation| [false, true].map(|are_clips| Self { operation, are_clips });
        Direction::ALL.into_iter().flat_map(both)
    }

    /// Returns the kind of `row`.
    pub(super) fn of(row: &Measurement) -> Self {
        Self { operation: row.operation, are_clips: row.is_clip() }
    }

    /// Returns the name of these runs.
    pub(super) fn name(self) -> String {
        format!("{}s{}", self.operation.name(), if self.are_clips { " of clips" } else { "" })
    }
}
