//! Clips as arrays of floats: `[1, 3, t, h, w]`, -1 to 1, in .npy and .safetensors files.

use std::ops::ControlFlow;
use std::path::Path;

use wgvae::files::ByteSource;
use wgvae::internals::array_file::ArrayFile;
use wgvae::internals::clips::{ClipArray, ClipAxes};
use wgvae::internals::images::TENSORS;
use wgvae::{Error, Result, Size};

use super::super::part_file::PartFile;
use super::files::Files;
use super::frame::{Frame, FrameFormat, FrameSink, FrameSource, PlanarFrame};
use super::planes_out::{ArrayFormat, PlanesFile};

/// Channels of a frame.
const CHANNELS: u32 = 3;

/// A sink that writes floats unchanged, neither clamped nor rounded.
#[derive(Debug)]
pub struct ArraySink<'a> {
    file: Option<PlanesFile>,
    size: Size,
    files: &'a dyn Files,
}

impl<'a> ArraySink<'a> {
    /// Begins a file for exactly `frames` frames of `size`.
    ///
    /// # Errors
    /// [`Error::Io`](wgvae::Error::Io), or [`Error::Input`](wgvae::Error::Input) if `path` is a
    /// pipe or a device.
    pub fn create(path: &Path, format: &ArrayFormat, size: Size, frames: u64, files: &'a dyn Files) -> Result<Self> {
        let axes = ClipAxes { channels: CHANNELS, frames, size };
        Ok(Self { file: Some(PlanesFile::create(path, format, axes, files)?), size, files })
    }
}

impl FrameSink for ArraySink<'_> {
    fn wants(&self) -> FrameFormat {
        FrameFormat::Floats
    }

    fn frame(&mut self, frame: &Frame<'_>) -> Result<ControlFlow<()>> {
        let values = frame.floats(self.size)?;
        self.file.as_mut().map_or(Ok(()), |file| file.write(values))?;
        Ok(ControlFlow::Continue(()))
    }

    fn finish(&mut self) -> Result<()> {
        let part: Option<PartFile> = self.file.take().map(PlanesFile::finish).transpose()?;
        part.map_or(Ok(()), |part| self.files.place(part))
    }
}

/// A source that reads `[1, 3, t, h, w]` or `[3, t, h, w]`, one frame at a time. `[n, 3, h, w]` are
/// images, not frames.
#[derive(Debug)]
pub struct ArraySource {
    array: ClipArray,
    read: u64,
}

impl ArraySource {
    /// Finds the array of a .npy file, or a tensor as [`wgvae::files::read_images`] does.
    ///
    /// # Errors
    /// [`Error::Format`](wgvae::Error::Format), [`Error::Io`](wgvae::Error::Io), or
    /// [`Error::Input`](wgvae::Error::Input) for another shape or a missing tensor.
    pub async fn open(source: Box<dyn ByteSource>, tensor: Option<&str>) -> Result<Self> {
        let file = ArrayFile::find(&*source, "images", tensor, TENSORS).await?;
        let shape = format!("{:?}", file.info().shape);
        let array = ClipArray::new(source, file, "image")?;
        if array.axes().channels != CHANNELS {
            let what = format!("image in {}", array.name());
            return Err(Error::input(what, "a clip [1, 3, t, h, w] or [3, t, h, w]", shape));
        }
        Ok(Self { array, read: 0 })
    }
}

/// Reads the shape of the images in `source`, from its header alone.
///
/// # Errors
/// The errors of [`wgvae::files::read_images`].
pub async fn images_shape(source: &dyn ByteSource, tensor: Option<&str>) -> Result<Vec<u64>> {
    ArrayFile::find(source, "images", tensor, TENSORS).await.map(|file| file.info().shape.clone())
}

impl FrameSource for ArraySource {
    fn name(&self) -> &str {
        self.array.name()
    }

    fn size(&self) -> Size {
        self.array.axes().size
    }

    fn frames(&self) -> Option<u64> {
        Some(self.array.axes().frames)
    }

    fn next(&mut self) -> Result<Option<PlanarFrame>> {
        if self.read == self.array.axes().frames {
            return Ok(None);
        }
        let data = pollster::block_on(self.array.read(self.read..self.read + 1))?;
        self.read += 1;
        Ok(Some(PlanarFrame { size: self.size(), data }))
    }
}
