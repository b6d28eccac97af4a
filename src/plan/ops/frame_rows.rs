//! Rows of some frames, and where a launch puts them.

use crate::plan::BufferId;

/// Rows of some frames in a buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameRows {
    pub(super) buffer: BufferId,
    /// First element of the rows.
    pub(super) offset: u32,
    pub(super) frames: u32,
    pub(super) pixels: u32,
    /// Factors and summands of a group norm for these frames.
    pub(super) table: Option<BufferId>,
}

/// The target of frames that are made.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameTarget {
    pub(super) buffer: BufferId,
    /// First element of the first pixel.
    pub(super) offset: u32,
    /// Elements from pixel to pixel.
    pub(super) pixel4: u32,
}
