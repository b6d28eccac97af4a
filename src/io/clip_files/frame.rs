//! One frame, where frames come from and where they go.

use std::ops::ControlFlow;

use super::super::picture::Remark;
use super::error::input;
use crate::error::Result;
use crate::tensor::Size;

/// How a sink wants its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameFormat {
    /// 8-bit `[h, w, 4]`.
    Rgba8,
    /// f32 `[3, h, w]`, -1 to 1.
    Floats,
}

/// A frame for a sink.
#[derive(Debug, Clone, Copy)]
pub enum Frame<'a> {
    /// See [`FrameFormat::Rgba8`].
    Rgba8(&'a [u8]),
    /// See [`FrameFormat::Floats`]. What is beyond the range is cut off, except where floats are
    /// written.
    Floats(&'a [f32]),
}

impl<'a> Frame<'a> {
    /// The pixels of a frame of `size`.
    pub(super) fn rgba8(self, size: Size) -> Result<&'a [u8]> {
        match self {
            Self::Rgba8(pixels) if pixels.len() as u64 == size.pixels() * 4 => Ok(pixels),
            other => Err(other.unfit(size, "8-bit RGBA")),
        }
    }

    /// The planes of a frame of `size`.
    pub(super) fn floats(self, size: Size) -> Result<&'a [f32]> {
        match self {
            Self::Floats(values) if values.len() as u64 == size.pixels() * 3 => Ok(values),
            other => Err(other.unfit(size, "planar RGB floats")),
        }
    }

    fn unfit(self, size: Size, wanted: &str) -> crate::error::Error {
        let found = match self {
            Self::Rgba8(pixels) => format!("{} bytes of 8-bit RGBA", pixels.len()),
            Self::Floats(values) => format!("{} floats", values.len()),
        };
        input("frame", format!("{size} of {wanted}"), found)
    }
}

/// Takes the frames of a clip, first to last.
pub trait FrameSink {
    /// How it wants them.
    fn wants(&self) -> FrameFormat;

    /// Takes the next frame. `Break`: nobody reads any more, and the work may end in peace.
    ///
    /// # Errors
    /// When it cannot be written. What was written before is whole.
    fn frame(&mut self, frame: &Frame<'_>) -> Result<ControlFlow<()>>;

    /// Ends the clip. A file appears under its name here, if not frame by frame; a sink that is
    /// dropped before leaves none.
    ///
    /// # Errors
    /// When the clip cannot be completed, or frames are missing.
    fn finish(&mut self) -> Result<()>;
}

/// A frame of a source.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanarFrame {
    /// Extent in pixels.
    pub size: Size,
    /// RGB, `[3, h, w]`, -1 to 1.
    pub data: Vec<f32>,
}

/// Gives the frames of a clip, first to last.
pub trait FrameSource {
    /// What errors call it.
    fn name(&self) -> &str;

    /// Extent of every frame.
    fn size(&self) -> Size;

    /// Number of frames, where that is known beforehand.
    fn frames(&self) -> Option<u64>;

    /// What is to be said about how its pictures are read.
    fn remarks(&self) -> &[Remark] {
        &[]
    }

    /// Reads the next frame; none after the last.
    ///
    /// # Errors
    /// For a file that is cut short, frames of another size, values that are not finite, and what
    /// cannot be read.
    fn next(&mut self) -> Result<Option<PlanarFrame>>;
}

/// -1..1 as 0..1; what is beyond is cut off.
pub(super) fn to_unit(value: f32) -> f32 {
    (value.clamp(-1.0, 1.0) + 1.0) / 2.0
}
