//! Clips as numbered pictures, one file for each frame.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use wgvae::{Error, Result, Size};

use super::super::image_file::{ImageFormat, Pixels, encode_image};
use super::super::part_file::check_writable;
use super::super::picture::{PictureFile, Remark};
use super::files::Files;
use super::frame::{Frame, FrameFormat, FrameSink, FrameSource, PlanarFrame};
use super::pattern::Pattern;

/// A sink that writes each frame to its own file, numbered from 1. Each file is complete or absent.
#[derive(Debug)]
pub struct PictureSink<'a> {
    pattern: Pattern,
    format: ImageFormat,
    size: Size,
    files: &'a dyn Files,
    written: u64,
}

impl<'a> PictureSink<'a> {
    /// Creates a sink for frames of `size`.
    ///
    /// # Errors
    /// [`Error::Input`](wgvae::Error::Input) for an ending that is no picture format, or a size
    /// that the format cannot hold. [`Error::Io`](wgvae::Error::Io) if no file can be written.
    pub fn new(pattern: Pattern, size: Size, files: &'a dyn Files) -> Result<Self> {
        let format = ImageFormat::from_path(pattern.path())?;
        format.check_size(pattern.path(), size)?;
        check_writable(&pattern.file(1))?;
        Ok(Self { pattern, format, size, files, written: 0 })
    }
}

impl FrameSink for PictureSink<'_> {
    fn wants(&self) -> FrameFormat {
        FrameFormat::Rgba8
    }

    fn frame(&mut self, frame: &Frame<'_>) -> Result<ControlFlow<()>> {
        let data = frame.rgba8(self.size)?;
        let file = encode_image(self.format, &Pixels { size: self.size, data })?;
        let mut part = self.files.create(&self.pattern.file(self.written + 1))?;
        part.write_all(&file).map_err(|error| part.error(error))?;
        self.files.place(part)?;
        self.written += 1;
        Ok(ControlFlow::Continue(()))
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

/// A source that reads numbered pictures (PNG, JPEG, WebP), from the lowest existing number to the
/// highest.
#[derive(Debug)]
pub struct PictureSource {
    pattern: Pattern,
    name: String,
    size: Size,
    frames: u64,
    numbers: std::ops::RangeInclusive<u64>,
    /// Each remark with the first file that it is about.
    remarks: Vec<(PathBuf, Remark)>,
}

impl PictureSource {
    /// Finds the files and reads the header of the first.
    ///
    /// # Errors
    /// [`Error::Input`](wgvae::Error::Input) if there are none or one in between is missing, and
    /// the errors of [`PictureFile::open`].
    pub fn open(pattern: Pattern) -> Result<Self> {
        let found = pattern.find_all()?;
        let file = pattern.file(found.first);
        let first = PictureFile::open(&file)?;
        let name = pattern.path().display().to_string();
        let (numbers, remarks) = (found.first..=found.last, Vec::new());
        let mut source = Self { pattern, name, size: first.size(), frames: found.count, numbers, remarks };
        source.remark(&file, &first);
        Ok(source)
    }

    fn remark(&mut self, file: &Path, picture: &PictureFile) {
        for remark in picture.remarks() {
            if self.remarks.iter().all(|(_, known)| known != remark) {
                self.remarks.push((file.to_owned(), *remark));
            }
        }
    }
}

impl FrameSource for PictureSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> Size {
        self.size
    }

    fn frames(&self) -> Option<u64> {
        Some(self.frames)
    }

    fn remarks(&self) -> &[(PathBuf, Remark)] {
        &self.remarks
    }

    fn next(&mut self) -> Result<Option<PlanarFrame>> {
        let Some(number) = self.numbers.next() else { return Ok(None) };
        let file = self.pattern.file(number);
        let picture = PictureFile::open(&file)?;
        self.check_size(&file, picture.size())?;
        self.remark(&file, &picture);
        Ok(Some(PlanarFrame { size: picture.size(), data: picture.read()?.to_floats() }))
    }
}

impl PictureSource {
    fn check_size(&self, file: &Path, size: Size) -> Result<()> {
        if size == self.size() {
            return Ok(());
        }
        let expected = format!("{}, as the first frame of {} has", self.size(), self.name);
        Err(Error::input(format!("size of {}", file.display()), expected, size.to_string()))
    }
}
