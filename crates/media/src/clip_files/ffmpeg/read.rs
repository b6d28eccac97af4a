//! Frames read from a video file.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use wgvae::{Error, Result, Size};

use super::super::frame::{FrameSource, PlanarFrame};
use super::super::y4m::Y4mSource;
use super::patient_reader::PatientReader;
use super::process::{Ffmpeg, Process, file_url};
use crate::picture::Remark;

/// Longest wait for error messages of `ffmpeg` after it has stopped delivering.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A source that lets `ffmpeg` convert the first video stream to y4m: 12 bits, 4:4:4, BT.709, every
/// frame exactly once. `ffmpeg` reports the size, reads the file's colour tags, and upsamples
/// chroma better than this crate does. Any error in the stream ends it.
#[derive(Debug)]
pub struct FfmpegSource {
    name: String,
    process: Process,
    frames: Y4mSource,
    read: u64,
    patience: Duration,
}

/// Demuxers that may read a file: containers and streams that hold their own frames. Playlists
/// (hls, dash, concat) are left out, because they would open other files.
const DEMUXERS: &str = "mov,mp4,matroska,webm,avi,gif,apng,flv,asf,mpeg,mpegts,mpegvideo,ogg,mxf,ivf,nut,rm,dv,\
                        h264,hevc,av1,obu,m4v,vc1,yuv4mpegpipe,webp_pipe";

const INPUT: &[&str] = &["-nostdin", "-xerror", "-protocol_whitelist", "file", "-format_whitelist", DEMUXERS, "-i"];

const OUTPUT: &[&str] = &[
    "-map",
    "0:v:0",
    "-vf",
    "scale=out_color_matrix=bt709:out_range=tv:flags=bicubic+accurate_rnd+full_chroma_int,format=yuv444p12le",
    "-fps_mode",
    "passthrough",
    "-f",
    "yuv4mpegpipe",
    "-strict",
    "-1",
    "pipe:1",
];

impl FfmpegSource {
    /// Starts `ffmpeg` on the file at `path`.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Format`] with the messages of `ffmpeg`, or [`Error::Input`] if there
    /// is no `ffmpeg`.
    pub fn open(ffmpeg: &Ffmpeg, path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        // A missing file gets its own error, which does not mention ffmpeg.
        std::fs::File::open(path).map_err(|error| Error::io(&name, error))?;
        let mut arguments: Vec<std::ffi::OsString> = INPUT.iter().map(Into::into).collect();
        arguments.push(file_url(path));
        arguments.extend(OUTPUT.iter().map(Into::into));
        let mut process = Process::start(ffmpeg, &arguments, path, (Stdio::null(), Stdio::piped()))?;
        let patience = ffmpeg.patience;
        let stdout = PatientReader::new(process.stdout()?, patience);
        match Y4mSource::from_reader(Box::new(stdout), &name) {
            Ok(frames) => Ok(Self { name, process, frames, read: 0, patience }),
            Err(error) => Err(failed(&mut process, error, patience)),
        }
    }
}

impl FrameSource for FfmpegSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> Size {
        self.frames.size()
    }

    fn frames(&self) -> Option<u64> {
        None
    }

    fn remarks(&self) -> &[(PathBuf, Remark)] {
        self.frames.remarks()
    }

    fn next(&mut self) -> Result<Option<PlanarFrame>> {
        match self.frames.next() {
            Ok(Some(frame)) => {
                self.read += 1;
                Ok(Some(frame))
            }
            Ok(None) => {
                self.process.finish()?;
                if self.read == 0 {
                    return Err(Error::input(format!("frames of {}", self.name), "at least one", "none"));
                }
                Ok(None)
            }
            Err(error) => Err(failed(&mut self.process, error, self.patience)),
        }
    }
}

/// Ends `process` after `error` while reading frames, and returns the error to report.
fn failed(process: &mut Process, error: Error, patience: Duration) -> Error {
    match error {
        Error::Io { source, .. } if source.kind() == ErrorKind::TimedOut => {
            let problem = format!("ffmpeg hangs: it delivered no data for {} s", patience.as_secs_f64());
            process.failed(&problem, Duration::ZERO)
        }
        Error::Format { problem, .. } => process.failed(&format!("ffmpeg delivered wrong data: {problem}"), LAST_WORDS),
        other => process.failed(&other.to_string(), LAST_WORDS),
    }
}
