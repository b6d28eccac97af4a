//! Frames written to a y4m file or a pipe.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::ops::ControlFlow;
use std::path::Path;

use wgvae::{Error, Result, Size};
use y4m::{Colorspace, Encoder, EncoderBuilder, Ratio, VendorExtensionString};

use super::super::super::part_file::PartFile;
use super::super::bt709::Quantiser;
use super::super::files::Files;
use super::super::frame::{Frame, FrameFormat, FrameSink, to_unit};
use super::super::options::{Bits, Fps};

/// A sink that writes y4m: 4:4:4, BT.709, limited range.
pub struct Y4mSink<'a> {
    name: String,
    size: Size,
    bits: Bits,
    quantiser: Quantiser,
    /// `None` after the reader has closed the pipe.
    encoder: Option<Encoder<Box<dyn Write + Send>>>,
    part: Option<(PartFile, &'a dyn Files)>,
    planes: [Vec<u8>; 3],
}

impl std::fmt::Debug for Y4mSink<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Y4mSink").field("name", &self.name).field("size", &self.size).finish_non_exhaustive()
    }
}

impl<'a> Y4mSink<'a> {
    /// Creates the file at `path`, which appears when it is complete. A pipe or a device receives
    /// each frame at once.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(path: &Path, size: Size, fps: Fps, bits: Bits, files: &'a dyn Files) -> Result<Self> {
        let name = path.display().to_string();
        let is_stream = std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        if is_stream {
            let file = OpenOptions::new().write(true).open(path).map_err(|source| Error::io(&name, source))?;
            return Self::to_writer(Box::new(file), &name, size, fps, bits);
        }
        let mut part = files.create(path)?;
        let file = part.file()?.ok_or_else(|| Error::format(&name, "something that is not a file replaced it"))?;
        let sink = Self::to_writer(Box::new(file), &name, size, fps, bits)?;
        Ok(Self { part: Some((part, files)), ..sink })
    }

    /// Writes to stdout.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn to_stdout(size: Size, fps: Fps, bits: Bits) -> Result<Self> {
        Self::to_writer(Box::new(Flushed(std::io::stdout())), "stdout", size, fps, bits)
    }

    /// Writes to `writer`, called `name` in errors. A closed pipe is not an error:
    /// [`FrameSink::frame`] then returns `Break`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn to_writer(writer: Box<dyn Write + Send>, name: &str, size: Size, fps: Fps, bits: Bits) -> Result<Self> {
        let encoder = builder(size, fps, bits).write_header(writer);
        Ok(Self {
            encoder: unless_closed(encoder, name)?,
            name: name.to_owned(),
            size,
            bits,
            quantiser: Quantiser::limited(bits),
            part: None,
            planes: Default::default(),
        })
    }

    fn convert(&mut self, values: &[f32]) {
        let plane = values.len() / 3;
        self.planes.iter_mut().for_each(Vec::clear);
        for index in 0..plane {
            let rgb = [0, 1, 2].map(|channel| to_unit(values[channel * plane + index]));
            for (plane, level) in self.planes.iter_mut().zip(self.quantiser.levels(rgb)) {
                let [low, high] = level.to_le_bytes();
                plane.push(low);
                if self.bits != Bits::Eight {
                    plane.push(high);
                }
            }
        }
    }
}

impl FrameSink for Y4mSink<'_> {
    fn wants(&self) -> FrameFormat {
        FrameFormat::Floats
    }

    fn frame(&mut self, frame: &Frame<'_>) -> Result<ControlFlow<()>> {
        let values = frame.floats(self.size)?;
        if self.encoder.is_some() {
            self.convert(values);
        }
        let Some(encoder) = &mut self.encoder else { return Ok(ControlFlow::Break(())) };
        let [luma, cb, cr] = &self.planes;
        let written = encoder.write_frame(&y4m::Frame::new([luma, cb, cr], None));
        if unless_closed(written, &self.name)?.is_some() {
            return Ok(ControlFlow::Continue(()));
        }
        self.encoder = None;
        Ok(ControlFlow::Break(()))
    }

    fn finish(&mut self) -> Result<()> {
        self.encoder = None;
        self.part.take().map_or(Ok(()), |(part, files)| files.place(part))
    }
}

fn builder(size: Size, fps: Fps, bits: Bits) -> EncoderBuilder {
    let space = match bits {
        Bits::Eight => Colorspace::C444,
        Bits::Ten => Colorspace::C444p10,
        Bits::Twelve => Colorspace::C444p12,
    };
    let fps = Ratio::new(fps.frames as usize, fps.seconds as usize);
    let builder = EncoderBuilder::new(size.width as usize, size.height as usize, fps).with_colorspace(space);
    // The tag that ffmpeg understands for the range. It has none for the matrix.
    match VendorExtensionString::new(b"COLORRANGE=LIMITED".to_vec()) {
        Ok(range) => builder.append_vendor_extension(range),
        Err(_) => builder,
    }
}

/// Returns the value of a write, or `None` if the reader has closed the pipe.
fn unless_closed<T>(written: std::result::Result<T, y4m::Error>, name: &str) -> Result<Option<T>> {
    match written {
        Ok(written) => Ok(Some(written)),
        Err(y4m::Error::IoError(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(None),
        Err(y4m::Error::IoError(error)) => Err(Error::io(name, error)),
        Err(other) => Err(unwritable(name, &other)),
    }
}

fn unwritable(name: &str, error: &y4m::Error) -> Error {
    Error::format(name, format!("a frame cannot be written: {error}"))
}

/// A flushing writer, because stdout holds back the bytes after the last line end.
struct Flushed<W>(W);

impl<W: Write> Write for Flushed<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.0.write(bytes)?;
        self.0.flush()?;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}
