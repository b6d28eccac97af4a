//! The sink or the source for a name.

use std::collections::BTreeMap;

use super::super::file::FileSource;
use super::arrays::{ArraySink, ArraySource};
use super::error::input;
use super::ffmpeg::{Codec, Ffmpeg, FfmpegSink, FfmpegSource};
use super::files::Files;
use super::frame::{FrameSink, FrameSource};
use super::name::ClipName;
use super::options::{Bits, Fps};
use super::pictures::{PictureSink, PictureSource};
use super::planes_out::ArrayFormat;
use super::y4m::{Y4mSink, Y4mSource};
use crate::error::Result;
use crate::tensor::Size;

/// Name of the tensor in a .safetensors file of frames.
const TENSOR: &str = "image";

/// What a sink has to know.
#[derive(Clone, Copy)]
pub struct SinkOptions<'a> {
    /// Extent of every frame.
    pub size: Size,
    /// How many frames will come.
    pub frames: u64,
    /// How fast they are shown.
    pub fps: Fps,
    /// `--bits`: of y4m, 8 without; of videos as [`Codec`] has it. Others have no choice.
    pub bits: Option<Bits>,
    /// How files get into their place.
    pub files: &'a dyn Files,
    /// For videos.
    pub ffmpeg: &'a Ffmpeg,
}

impl std::fmt::Debug for SinkOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SinkOptions").field("size", &self.size).field("frames", &self.frames).finish_non_exhaustive()
    }
}

/// Begins the clip called `name`.
///
/// # Errors
/// For what cannot be written, cannot have this size or these bits, or needs an `ffmpeg` that is
/// not there.
pub fn create_sink<'a>(name: &ClipName, options: SinkOptions<'a>) -> Result<Box<dyn FrameSink + 'a>> {
    let SinkOptions { size, frames, fps, bits, files, ffmpeg } = options;
    if let (ClipName::Pictures(_) | ClipName::Array(_), Some(bits)) = (name, bits) {
        return Err(input("--bits", "y4m or a video: pictures have 8 bits, arrays are floats", bits.get().to_string()));
    }
    let y4m_bits = bits.unwrap_or(Bits::Eight);
    Ok(match name {
        ClipName::Standard => Box::new(Y4mSink::to_stdout(size, fps, y4m_bits)?),
        ClipName::Y4m(path) => Box::new(Y4mSink::create(path, size, fps, y4m_bits, files)?),
        ClipName::Pictures(pattern) => Box::new(PictureSink::new(pattern.clone(), size, files)?),
        ClipName::Array(path) => {
            let format = ArrayFormat::of(path, TENSOR, BTreeMap::new())?;
            Box::new(ArraySink::create(path, &format, size, frames, files)?)
        }
        ClipName::Video(path) => {
            Box::new(FfmpegSink::start(ffmpeg, path, &Codec::of(path, bits)?, (size, fps), files)?)
        }
    })
}

/// Opens the clip called `name`; of a .safetensors file the `tensor`.
///
/// # Errors
/// For what is not there, is no clip, or needs an `ffmpeg` that is not there.
pub fn open_source(name: &ClipName, tensor: Option<&str>, ffmpeg: &Ffmpeg) -> Result<Box<dyn FrameSource>> {
    Ok(match name {
        ClipName::Standard => Box::new(Y4mSource::from_reader(Box::new(std::io::stdin()), "stdin")?),
        ClipName::Y4m(path) => Box::new(Y4mSource::open(path)?),
        ClipName::Pictures(pattern) => Box::new(PictureSource::open(pattern.clone())?),
        ClipName::Array(path) => {
            Box::new(pollster::block_on(ArraySource::open(Box::new(FileSource::open(path)?), tensor))?)
        }
        ClipName::Video(path) => Box::new(FfmpegSource::open(ffmpeg, path)?),
    })
}
