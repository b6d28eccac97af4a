//! Frames read from a y4m file or a pipe.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufReader, Chain, Cursor, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use wgvae::{Error, Result, Size};
use y4m::{Decoder, Limits};

use super::super::chroma::expand;
use super::super::frame::{FrameSource, PlanarFrame};
use super::super::options::{Bits, Fps};
use super::header::Header;
use crate::picture::{Remark, check_memory};

/// The line before every frame.
const FRAME_LINE: &[u8] = b"FRAME\n";

/// Size of the read buffer in bytes.
const BUFFER: usize = 1 << 16;

/// A source that reads y4m: 4:2:0, 4:2:2, 4:4:4 and grey, 8 to 12 bits, as BT.709. The range is
/// limited unless the file says `XCOLORRANGE=FULL`.
pub struct Y4mSource {
    name: String,
    header: Header,
    frames: Option<u64>,
    decoder: Decoder<Input>,
    /// Number of bytes that the decoder has read.
    taken: Rc<Cell<u64>>,
    read: u64,
    remarks: Vec<(PathBuf, Remark)>,
}

type Input = Counted<Chain<Cursor<Vec<u8>>, BufReader<Box<dyn Read>>>>;

impl std::fmt::Debug for Y4mSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Y4mSource").field("name", &self.name).field("size", &self.header.size).finish_non_exhaustive()
    }
}

impl Y4mSource {
    /// Opens the file at `path`, which may be a pipe.
    ///
    /// # Errors
    /// See [`Self::from_reader`].
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let open = || {
            let file = File::open(path)?;
            let metadata = file.metadata()?;
            Ok((file, metadata.is_file().then_some(metadata.len())))
        };
        let (file, bytes) = open().map_err(|source| Error::io(&name, source))?;
        let mut source = Self::from_reader(Box::new(file), &name)?;
        source.frames = bytes.and_then(|bytes| source.header.frames(bytes));
        Ok(source)
    }

    /// Reads from `reader`, called `name` in errors.
    ///
    /// # Errors
    /// [`Error::Format`], [`Error::Io`]; [`Error::Input`] for an unsupported colour space, or a
    /// frame of 0 or more than 2^30 pixels; [`Error::HostMemory`].
    pub fn from_reader(reader: Box<dyn Read>, name: &str) -> Result<Self> {
        let mut reader = BufReader::with_capacity(BUFFER, reader);
        let header = Header::read(&mut reader, name)?;
        let bytes = header.layout.bytes(header.size);
        check_memory(format!("a frame of {name}"), bytes)?;
        let taken = Rc::new(Cell::new(0));
        let input = Counted { reader: Cursor::new(header.line.clone()).chain(reader), taken: Rc::clone(&taken) };
        let limits = Limits { bytes: usize::try_from(bytes).unwrap_or(usize::MAX) };
        let decoder = Decoder::new_with_limits(input, limits).map_err(|error| unreadable(name, "its header", error))?;
        let aspect = header.aspect.map(|(width, height)| Remark::PixelAspect(width, height));
        let remarks = aspect.map(|remark| (PathBuf::from(name), remark)).into_iter().collect();
        Ok(Self { name: name.to_owned(), header, frames: None, decoder, taken, read: 0, remarks })
    }
}

impl FrameSource for Y4mSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> Size {
        self.header.size
    }

    fn frames(&self) -> Option<u64> {
        self.frames
    }

    fn fps(&self) -> Option<Fps> {
        self.header.fps
    }

    fn remarks(&self) -> &[(PathBuf, Remark)] {
        &self.remarks
    }

    fn next(&mut self) -> Result<Option<PlanarFrame>> {
        let before = self.taken.get();
        let frame = match self.decoder.read_frame() {
            Ok(frame) => frame,
            Err(y4m::Error::EOF) if self.taken.get() == before => return Ok(None),
            Err(error) => return Err(unreadable(&self.name, &format!("frame {}", self.read + 1), error)),
        };
        self.header.check_levels(&frame, &format!("frame {} of {}", self.read + 1, self.name))?;
        let data = self.header.planes(&frame);
        self.read += 1;
        Ok(Some(PlanarFrame { size: self.header.size, data }))
    }
}

impl Header {
    /// Returns the number of frames in a file of `bytes` bytes. `None` if they are not whole frames
    /// without parameters.
    fn frames(&self, bytes: u64) -> Option<u64> {
        let frame = FRAME_LINE.len() as u64 + self.layout.bytes(self.size);
        let rest = bytes.checked_sub(self.line.len() as u64)?;
        rest.is_multiple_of(frame).then_some(rest / frame)
    }

    /// Checks that no sample exceeds the bits of the colour space.
    fn check_levels(&self, frame: &y4m::Frame<'_>, what: &str) -> Result<()> {
        let bits = self.layout.bits;
        let planes = [("Y", frame.get_y_plane()), ("U", frame.get_u_plane()), ("V", frame.get_v_plane())];
        for (name, plane) in planes.into_iter().filter(|_| bits != Bits::Eight) {
            let most = bits.greatest();
            let samples = plane.as_chunks().0.iter().map(|&sample| u16::from_le_bytes(sample));
            if let Some((index, sample)) = samples.enumerate().find(|(_, sample)| *sample > most) {
                let found = format!("{sample} at sample {index} of plane {name}");
                return Err(Error::input(what, format!("levels of at most {most}"), found));
            }
        }
        Ok(())
    }

    /// Converts a frame to RGB, `[3, h, w]`, -1 to 1.
    fn planes(&self, frame: &y4m::Frame<'_>) -> Vec<f32> {
        let plane = |bytes: &[u8]| levels(bytes, self.layout.bits);
        let luma = plane(frame.get_y_plane());
        let Some((across, down)) = self.layout.chroma else {
            let grey: Vec<f32> = luma.into_iter().map(|level| 2.0 * self.quantiser.grey(level) - 1.0).collect();
            return [grey.as_slice(), &grey, &grey].concat();
        };
        let expanded = |bytes| expand(plane(bytes), self.size, across, down);
        let [mut red, mut green, mut blue] = [luma, expanded(frame.get_u_plane()), expanded(frame.get_v_plane())];
        for ((red, green), blue) in red.iter_mut().zip(&mut green).zip(&mut blue) {
            [*red, *green, *blue] = self.quantiser.rgb([*red, *green, *blue]).map(|value| 2.0 * value - 1.0);
        }
        [red, green, blue].concat()
    }
}

fn levels(bytes: &[u8], bits: Bits) -> Vec<f32> {
    match bits {
        Bits::Eight => bytes.iter().map(|&level| level.into()).collect(),
        Bits::Ten | Bits::Twelve => bytes.as_chunks().0.iter().map(|&level| u16::from_le_bytes(level).into()).collect(),
    }
}

fn unreadable(name: &str, place: &str, error: y4m::Error) -> Error {
    match error {
        y4m::Error::EOF => Error::format(name, format!("cut short within {place}")),
        y4m::Error::IoError(source) => Error::io(name, source),
        other => Error::format(name, format!("{place} is not that of a y4m file: {other}")),
    }
}

/// A reader that counts bytes. The decoder reports an end between two frames and an end within a
/// frame as the same error; the count tells them apart.
struct Counted<R> {
    reader: R,
    taken: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let count = self.reader.read(bytes)?;
        self.taken.set(self.taken.get() + count as u64);
        Ok(count)
    }
}
