//! Arrays `[1, c, t, h, w]` of floats in files. Frames are written in groups, and each plane goes
//! to its own place.

use std::collections::BTreeMap;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use wgvae::internals::clips::ClipAxes;
use wgvae::internals::convert::to_bytes;
use wgvae::internals::latents::{TENSOR, metadata};
use wgvae::internals::npy::npy_header;
use wgvae::internals::safetensors::header_with_metadata;
use wgvae::{Error, LatentSpace, Result};

use super::super::part_file::PartFile;
use super::files::{Files, seekable};

/// File format of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArrayFormat {
    /// The .npy format of `NumPy`.
    Npy,
    /// A .safetensors file with one tensor and metadata.
    Safetensors {
        /// Name of the tensor.
        tensor: String,
        /// Free-form metadata of the file.
        metadata: BTreeMap<&'static str, String>,
    },
}

impl ArrayFormat {
    /// Chooses the format by the ending of `path`: .npy, or .safetensors with this `tensor` and
    /// this metadata.
    ///
    /// # Errors
    /// [`Error::Input`](wgvae::Error::Input) for any other ending.
    pub fn of(path: &Path, tensor: &str, metadata: BTreeMap<&'static str, String>) -> Result<Self> {
        match path.extension().unwrap_or_default().to_string_lossy().to_lowercase().as_str() {
            "npy" => Ok(Self::Npy),
            "safetensors" => Ok(Self::Safetensors { tensor: tensor.to_owned(), metadata }),
            found => {
                let what = format!("ending of output file {}", path.display());
                Err(Error::input(what, "one of safetensors, npy", format!("\"{found}\"")))
            }
        }
    }

    /// Chooses the format of latents. A .safetensors file also stores their space, which
    /// [`wgvae::files::read_latents`] reads back, and `facts` for people. A .npy file has no room
    /// for either.
    ///
    /// # Errors
    /// See [`Self::of`].
    pub fn of_latents(path: &Path, space: LatentSpace, facts: &[(&'static str, String)]) -> Result<Self> {
        Self::of(path, TENSOR, metadata(space, facts))
    }

    /// Makes the bytes before the values.
    fn header(&self, axes: ClipAxes) -> Result<Vec<u8>> {
        let ClipAxes { channels, frames, size } = axes;
        let shape = [1, channels.into(), frames, size.height.into(), size.width.into()];
        let addressable: Option<Vec<usize>> = shape.iter().map(|&axis: &u64| usize::try_from(axis).ok()).collect();
        let bytes = shape.iter().try_fold(size_of::<f32>() as u64, |bytes, &axis| bytes.checked_mul(axis));
        let (Some(shape), true) = (addressable, bytes.is_some_and(|bytes| i64::try_from(bytes).is_ok())) else {
            return Err(Error::input("array to be written", "at most 2^63 bytes", format!("a shape of {shape:?}")));
        };
        match self {
            Self::Npy => Ok(npy_header(&shape)),
            Self::Safetensors { tensor, metadata } => header_with_metadata(&[(tensor, &shape)], metadata),
        }
    }
}

/// An array that is being written to a file.
#[derive(Debug)]
pub(super) struct PlanesFile {
    part: PartFile,
    start: u64,
    axes: ClipAxes,
    written: u64,
}

impl PlanesFile {
    /// Begins the file that will replace `path`.
    pub(super) fn create(path: &Path, format: &ArrayFormat, axes: ClipAxes, files: &dyn Files) -> Result<Self> {
        let header = format.header(axes)?;
        let mut part = seekable(files.create(path)?, path)?;
        part.write_all(&header).map_err(|error| part.error(error))?;
        Ok(Self { part, start: header.len() as u64, axes, written: 0 })
    }

    /// Adds frames, `[c, frames, h, w]`.
    pub(super) fn write(&mut self, values: &[f32]) -> Result<()> {
        let ClipAxes { channels, frames: all, size } = self.axes;
        let frames = frames_of(values.len(), self.axes)?;
        if frames > all - self.written {
            return Err(wrong_count(all, self.written + frames));
        }
        let plane = values.len() / channels as usize;
        for (channel, values) in (0_u64..).zip(values.chunks_exact(plane)) {
            let element = (channel * all + self.written) * size.pixels();
            let place = SeekFrom::Start(self.start + element * size_of::<f32>() as u64);
            let written = self.part.seek(place).and_then(|_| self.part.write_all(&to_bytes(values)));
            written.map_err(|error| self.part.error(error))?;
        }
        self.written += frames;
        Ok(())
    }

    /// Returns the complete file, ready to be moved into its place.
    pub(super) fn finish(self) -> Result<PartFile> {
        if self.written == self.axes.frames { Ok(self.part) } else { Err(wrong_count(self.axes.frames, self.written)) }
    }
}

/// Returns the number of frames of `axes` that `values` floats make.
pub(super) fn frames_of(values: usize, axes: ClipAxes) -> Result<u64> {
    let frame = u64::from(axes.channels) * axes.size.pixels();
    let values = values as u64;
    if values > 0 && values.is_multiple_of(frame) {
        return Ok(values / frame);
    }
    let expected = format!("whole frames of {} channels of {}, {frame} values each", axes.channels, axes.size);
    Err(Error::input("block of frames", expected, format!("{values} values")))
}

fn wrong_count(expected: u64, found: u64) -> wgvae::Error {
    Error::input("frames of the clip to be written", expected.to_string(), found.to_string())
}
