//! Frames, their sources and their sinks.

use std::ops::ControlFlow;
use std::path::PathBuf;

use wgvae::{Error, Result, Size};

use super::super::picture::Remark;
use super::options::Fps;

/// Pixel format that a sink takes.
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
    /// See [`FrameFormat::Floats`]. Values outside the range are clamped, except where floats are
    /// written.
    Floats(&'a [f32]),
}

impl<'a> Frame<'a> {
    /// Returns the pixels of a frame of `size`.
    pub(super) fn rgba8(self, size: Size) -> Result<&'a [u8]> {
        match self {
            Self::Rgba8(pixels) if pixels.len() as u64 == size.pixels() * 4 => Ok(pixels),
            other => Err(other.unfit(size, "8-bit RGBA")),
        }
    }

    /// Returns the planes of a frame of `size`.
    pub(super) fn floats(self, size: Size) -> Result<&'a [f32]> {
        match self {
            Self::Floats(values) if values.len() as u64 == size.pixels() * 3 => Ok(values),
            other => Err(other.unfit(size, "planar RGB floats")),
        }
    }

    fn unfit(self, size: Size, wanted: &str) -> wgvae::Error {
        let found = match self {
            Self::Rgba8(pixels) => format!("{} bytes of 8-bit RGBA", pixels.len()),
            Self::Floats(values) => format!("{} floats", values.len()),
        };
        Error::input("frame", format!("{size} of {wanted}"), found)
    }
}

/// Takes the frames of a clip, first to last.
pub trait FrameSink: std::fmt::Debug + Send {
    /// Returns the format in which it takes frames.
    fn wants(&self) -> FrameFormat;

    /// Takes the next frame. `Break` means that the reader has closed the pipe, and the caller may
    /// stop without an error.
    ///
    /// # Errors
    /// If the frame cannot be written. Earlier frames stay complete.
    fn frame(&mut self, frame: &Frame<'_>) -> Result<ControlFlow<()>>;

    /// Ends the clip. A sink that does not write a file for each frame puts its file in place here;
    /// without this call it leaves no file.
    ///
    /// # Errors
    /// If the clip cannot be completed, or frames are missing.
    fn finish(&mut self) -> Result<()>;
}

/// A frame from a source.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanarFrame {
    /// Extent in pixels.
    pub size: Size,
    /// RGB, `[3, h, w]`, -1 to 1.
    pub data: Vec<f32>,
}

/// Yields the frames of a clip, first to last.
pub trait FrameSource: std::fmt::Debug {
    /// Returns the name for errors.
    fn name(&self) -> &str;

    /// Returns the extent of every frame.
    fn size(&self) -> Size;

    /// Returns the number of frames, if it is known before the end.
    fn frames(&self) -> Option<u64>;

    /// Returns the frames per second, if the source names them.
    fn fps(&self) -> Option<Fps> {
        None
    }

    /// Returns remarks for the user about what has been read so far, each with its file. More may
    /// be appended by [`Self::next`].
    fn remarks(&self) -> &[(PathBuf, Remark)] {
        &[]
    }

    /// Reads the next frame, or `None` after the last.
    ///
    /// # Errors
    /// For a truncated file, a frame of another size, values that are not finite, or a read error.
    fn next(&mut self) -> Result<Option<PlanarFrame>>;
}

/// Maps -1..1 to 0..1 and clamps the rest.
pub(super) fn to_unit(value: f32) -> f32 {
    (value.clamp(-1.0, 1.0) + 1.0) / 2.0
}
