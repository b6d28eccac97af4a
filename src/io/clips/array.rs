//! A clip as one array of a file, `[1, c, t, h, w]` or `[c, t, h, w]`. A read takes some frames:
//! one range of bytes for each channel.

use std::ops::Range;

use super::super::array_file::ArrayFile;
use super::super::convert::first_non_finite;
use super::super::source::ByteSource;
use crate::error::{Error, Result};
use crate::tensor::{MAX_PIXELS, Size};

/// The axes of a clip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClipAxes {
    /// Channels of a frame.
    pub channels: u32,
    /// Number of frames.
    pub frames: u64,
    /// Extent of a frame.
    pub size: Size,
}

impl ClipAxes {
    /// Returns the axes of a shape `[1, c, t, h, w]` or `[c, t, h, w]`. `None` for any other shape,
    /// for an empty axis and for frames of more than 2^30 pixels.
    pub fn of(shape: &[u64]) -> Option<Self> {
        let (&[1, channels, frames, height, width] | &[channels, frames, height, width]) = shape else { return None };
        let size = Size { width: width.try_into().ok()?, height: height.try_into().ok()? };
        let channels = channels.try_into().ok()?;
        let usable = channels > 0 && frames > 0 && (1..=MAX_PIXELS).contains(&size.pixels());
        usable.then_some(Self { channels, frames, size })
    }
}

/// A clip in a file that is not read yet.
pub struct ClipArray {
    source: Box<dyn ByteSource>,
    file: ArrayFile,
    axes: ClipAxes,
    what: &'static str,
}

impl std::fmt::Debug for ClipArray {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClipArray").field("file", &self.source.name()).field("axes", &self.axes).finish_non_exhaustive()
    }
}

impl ClipArray {
    /// Takes the array `file` of `source`. `what` names the content in errors: `latents` or
    /// `image`.
    ///
    /// # Errors
    /// [`Error::Input`](crate::Error::Input) if the array is not a clip.
    pub fn new(source: Box<dyn ByteSource>, file: ArrayFile, what: &'static str) -> Result<Self> {
        let shape = &file.info().shape;
        match ClipAxes::of(shape) {
            Some(axes) => Ok(Self { source, file, axes, what }),
            None => Err(Error::input(
                format!("{what} in {}", source.name()),
                "a clip [1, c, t, h, w] or [c, t, h, w], no axis of extent 0",
                format!("{shape:?}"),
            )),
        }
    }

    /// Returns the axes of the clip.
    pub fn axes(&self) -> ClipAxes {
        self.axes
    }

    /// Returns the name of the file.
    pub fn name(&self) -> &str {
        self.source.name()
    }

    /// Reads `frames` as `[c, frames, h, w]`.
    ///
    /// # Errors
    /// [`Error::Input`](crate::Error::Input) for frames that the clip does not have, and the errors
    /// of a read.
    pub async fn read(&self, frames: Range<u64>) -> Result<Vec<f32>> {
        let ClipAxes { channels, frames: all, size } = self.axes;
        if frames.is_empty() || frames.end > all {
            let found = format!("{} to {}", frames.start, frames.end);
            return Err(Error::input(format!("frames of {}", self.name()), format!("some of {all}"), found));
        }
        let count = (frames.end - frames.start) * size.pixels();
        let mut values = Vec::new();
        for channel in 0..u64::from(channels) {
            let first = (channel * all + frames.start) * size.pixels();
            let plane = self.file.read_elements(&*self.source, first, count).await?;
            if let Some((index, value)) = first_non_finite(&plane) {
                let what = format!("{} in {}", self.what, self.name());
                return Err(Error::input(
                    what,
                    "finite values",
                    format!("{value} at element {}", first + index as u64),
                ));
            }
            values.extend(plane);
        }
        Ok(values)
    }
}
