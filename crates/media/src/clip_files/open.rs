//! Construction of the sink or the source for a file name.

use std::collections::BTreeMap;

use wgvae::files::FileSource;
use wgvae::{Error, Result, Size};

use super::arrays::{ArraySink, ArraySource};
use super::ffmpeg::{Codec, Ffmpeg, FfmpegSink, FfmpegSource};
use super::files::Files;
use super::frame::{FrameSink, FrameSource};
use super::name::ClipName;
use super::options::{Bits, Fps};
use super::pictures::{PictureSink, PictureSource};
use super::planes_out::ArrayFormat;
use super::y4m::{Y4mSink, Y4mSource};

/// Name of the tensor in a .safetensors file of frames.
const TENSOR: &str = "image";

/// Properties of a clip that a sink needs.
#[derive(Debug, Clone, Copy)]
pub struct SinkOptions<'a> {
    /// Extent of every frame.
    pub size: Size,
    /// Number of frames that will come.
    pub frames: u64,
    /// `--fps`: 24 by default, not available for pictures and arrays.
    pub fps: Option<Fps>,
    /// `--bits`: 8 by default for y4m, the default of [`Codec`] for videos, not available for
    /// others.
    pub bits: Option<Bits>,
    /// Creation and placement of files.
    pub files: &'a dyn Files,
    /// The `ffmpeg` for videos.
    pub ffmpeg: &'a Ffmpeg,
}

/// Begins the clip called `name`.
///
/// # Errors
/// If the format cannot be written, does not support this size or these bits, or needs an `ffmpeg`
/// that is not installed.
pub fn create_sink<'a>(name: &ClipName, options: SinkOptions<'a>) -> Result<Box<dyn FrameSink + 'a>> {
    let SinkOptions { size, frames, fps, bits, files, ffmpeg } = options;
    if matches!(name, ClipName::Pictures(_) | ClipName::Array(_)) {
        let expected = "y4m or a video: pictures have 8 bits, arrays are floats";
        bits.map_or(Ok(()), |bits| Err(Error::input("--bits", expected, bits.get().to_string())))?;
        let expected = "y4m or a video: pictures and arrays have no frames per second";
        fps.map_or(Ok(()), |fps| Err(Error::input("--fps", expected, fps.to_string())))?;
    }
    let fps = fps.unwrap_or_default();
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

/// Opens the clip called `name`. `tensor` selects the tensor of a .safetensors file.
///
/// # Errors
/// If the file does not exist, is not a clip, or needs an `ffmpeg` that is not installed.
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
