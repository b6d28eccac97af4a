//! The latents of a clip, written block by block into an array `[1, c, t, h, w]`.
//!
//! Channels come before frames, so the place of a block depends on the total number of frames. If
//! that number is known, each block goes to its place at once. If it is not (the input is a pipe),
//! the blocks wait in a temporary file and move to their places at the end, one by one. Memory
//! never holds more than one block, but for a moment the disk holds the latents twice.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use wgvae::files::DType;
use wgvae::internals::clips::ClipAxes;
use wgvae::internals::convert::{to_bytes, to_f32};
use wgvae::{Error, Result, Size};

use super::super::part_file::PartFile;
use super::files::{Files, seekable};
use super::planes_out::{ArrayFormat, PlanesFile, frames_of};

/// Writes the latents of a clip, first to last.
#[derive(Debug)]
pub struct LatentsWriter<'a> {
    path: PathBuf,
    format: ArrayFormat,
    axes: ClipAxes,
    files: &'a dyn Files,
    target: Target,
}

#[derive(Debug)]
enum Target {
    Places(PlanesFile),
    /// The temporary file of blocks in order, and the number of frames of each block.
    Spool {
        part: PartFile,
        blocks: Vec<u64>,
    },
}

impl<'a> LatentsWriter<'a> {
    /// Begins a file for latents of `channels` and `size`. `frames` is the total number of latent
    /// frames, if known.
    ///
    /// # Errors
    /// [`Error::Io`](wgvae::Error::Io), or [`Error::Input`](wgvae::Error::Input) if `path` is a
    /// pipe or a device.
    pub fn create(
        path: &Path,
        format: ArrayFormat,
        (channels, size): (u32, Size),
        frames: Option<u64>,
        files: &'a dyn Files,
    ) -> Result<Self> {
        let axes = ClipAxes { channels, frames: frames.unwrap_or(0), size };
        let target = match frames {
            Some(_) => Target::Places(PlanesFile::create(path, &format, axes, files)?),
            None => Target::Spool { part: seekable(files.create(path)?, path)?, blocks: Vec::new() },
        };
        Ok(Self { path: path.to_owned(), format, axes, files, target })
    }

    /// Adds a block, `[c, frames, h, w]`.
    ///
    /// # Errors
    /// [`Error::Io`](wgvae::Error::Io), or [`Error::Input`](wgvae::Error::Input) if more frames
    /// come than announced.
    pub fn write(&mut self, block: &[f32]) -> Result<()> {
        match &mut self.target {
            Target::Places(file) => file.write(block),
            Target::Spool { part, blocks } => {
                blocks.push(frames_of(block.len(), self.axes)?);
                part.write_all(&to_bytes(block)).map_err(|error| part.error(error))
            }
        }
    }

    /// Moves the file into its place.
    ///
    /// # Errors
    /// [`Error::Io`](wgvae::Error::Io), or [`Error::Input`](wgvae::Error::Input) if there are no
    /// frames, or fewer than announced.
    pub fn finish(self) -> Result<()> {
        let file = match self.target {
            Target::Places(file) => file,
            Target::Spool { mut part, blocks } => {
                let axes = ClipAxes { frames: blocks.iter().sum(), ..self.axes };
                if blocks.is_empty() {
                    return Err(Error::input(format!("frames for {}", self.path.display()), "at least one", "none"));
                }
                let mut file = PlanesFile::create(&self.path, &self.format, axes, self.files)?;
                let mut spool = open_again(&mut part)?;
                for frames in blocks {
                    let values = u64::from(axes.channels) * frames * axes.size.pixels();
                    file.write(&next_values(&mut spool, values).map_err(|error| part.error(error))?)?;
                }
                file
            }
        };
        self.files.place(file.finish()?)
    }
}

/// Returns the file of `part`, at its start.
fn open_again(part: &mut PartFile) -> Result<File> {
    let Some(mut file) = part.file()? else { return Err(part.error(std::io::ErrorKind::NotSeekable.into())) };
    file.rewind().map_err(|error| part.error(error))?;
    Ok(file)
}

fn next_values(file: &mut File, count: u64) -> std::io::Result<Vec<f32>> {
    let mut bytes = Vec::new();
    let wanted = count * DType::F32.size();
    file.take(wanted).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == wanted {
        Ok(to_f32(&bytes, DType::F32))
    } else {
        Err(std::io::ErrorKind::UnexpectedEof.into())
    }
}
