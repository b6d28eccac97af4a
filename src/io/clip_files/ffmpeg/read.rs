//! Frames of a video file.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::super::error::{input, io};
use super::super::frame::{FrameSource, PlanarFrame};
use super::super::y4m::Y4mSource;
use super::process::{Ffmpeg, Process, file_url};
use crate::error::{Error, Result};
use crate::tensor::Size;

/// How long `ffmpeg` may take to say what went wrong, once it has stopped delivering.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Has `ffmpeg` turn the first video stream into y4m of 12 bits, 4:4:4, BT.709, every frame once. It says the size, knows what the file says of its colours, and makes chroma
/// whole better than is done here. An error in the stream ends it.
#[derive(Debug)]
pub struct FfmpegSource {
    name: String,
    process: Process,
    frames: Y4mSource,
    read: u64,
}

const INPUT: &[&str] = &["-nostdin", "-xerror", "-protocol_whitelist", "file", "-i"];

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
    /// [`Error::Io`], [`Error::Format`] with what it says, or [`Error::Input`] where there is no `ffmpeg`.
    pub fn open(ffmpeg: &Ffmpeg, path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        // An error of its own, and no word about ffmpeg.
        std::fs::File::open(path).map_err(|error| io(&name, error))?;
        let mut arguments: Vec<std::ffi::OsString> = INPUT.iter().map(Into::into).collect();
        arguments.push(file_url(path));
        arguments.extend(OUTPUT.iter().map(Into::into));
        let mut process = Process::start(ffmpeg, &arguments, path, (Stdio::null(), Stdio::piped()))?;
        let stdout = process.stdout()?;
        match Y4mSource::from_reader(Box::new(stdout), &name) {
            Ok(frames) => Ok(Self { name, process, frames, read: 0 }),
            Err(error) => Err(process.failed(&problem_of(error), LAST_WORDS)),
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

    fn next(&mut self) -> Result<Option<PlanarFrame>> {
        match self.frames.next() {
            Ok(Some(frame)) => {
                self.read += 1;
                Ok(Some(frame))
            }
            Ok(None) => {
                self.process.finish()?;
                if self.read == 0 {
                    return Err(input(format!("frames of {}", self.name), "at least one", "none"));
                }
                Ok(None)
            }
            Err(error) => Err(self.process.failed(&problem_of(error), LAST_WORDS)),
        }
    }
}

/// What is wrong with what it delivers, without the file's name.
fn problem_of(error: Error) -> String {
    match error {
        Error::Format { problem, .. } => format!("what ffmpeg delivers is wrong: {problem}"),
        other => other.to_string(),
    }
}
