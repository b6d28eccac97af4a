//! Frames read from a video file.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use wgvae::{Error, Result, Size};

use super::super::frame::{FrameSource, PlanarFrame};
use super::super::options::Fps;
use super::super::y4m::Y4mSource;
use super::patient_reader::PatientReader;
use super::probe::Probe;
use super::process::{Ffmpeg, Process, file_url, hangs};
use crate::picture::Remark;

/// Longest wait for error messages of `ffmpeg` after it has stopped delivering.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A source that lets `ffmpeg` convert the first video stream to y4m: 12 bits, 4:4:4, BT.709, every
/// frame exactly once. `ffmpeg` reports the size, reads the file's colour tags, and upsamples
/// chroma better than this crate does. Any error in the stream ends it, and so does a frame of
/// another size.
#[derive(Debug)]
pub struct FfmpegSource {
    name: String,
    process: Process,
    frames: Y4mSource,
    read: u64,
    remarks: Vec<(PathBuf, Remark)>,
    patience: Duration,
}

/// Demuxers that may read a file: containers and streams that hold their own frames. Playlists
/// (hls, dash, concat) are left out, because they would open other files.
const DEMUXERS: &str = "mov,mp4,matroska,webm,avi,gif,apng,flv,asf,mpeg,mpegts,mpegvideo,ogg,mxf,ivf,nut,rm,dv,\
                        h264,hevc,av1,obu,m4v,vc1,yuv4mpegpipe,webp_pipe";

const INPUT: &[&str] = &["-nostdin", "-xerror", "-protocol_whitelist", "file", "-format_whitelist", DEMUXERS, "-i"];

/// Arguments after the filters and the option that keeps every frame.
const OUTPUT: &[&str] = &["passthrough", "-f", "yuv4mpegpipe", "-strict", "-1", "pipe:1"];

/// Parts of messages, in small letters, that say that frames are missing. `ffmpeg` may print them
/// and still end well. Its other messages are about parts of a file that this crate does not need.
const LOSSES: &[&str] = &[
    "ended prematurely",
    "partial file",
    "read error",
    "truncated",
    "truncating",
    "corrupt input packet",
    "corrupt decoded frame",
    "error processing packet in decoder",
    "error submitting packet to decoder",
    "error while decoding stream",
    "lzw decode failed",
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
        let mut arguments: Vec<OsString> = INPUT.iter().map(Into::into).collect();
        arguments.push(file_url(path));
        let probe = Probe::of(ffmpeg, &arguments, path)?;
        let filters = probe.filters();
        arguments.extend(["-map", "0:v:0", "-vf", &filters, probe.every_frame()].map(Into::into));
        arguments.extend(OUTPUT.iter().map(Into::into));
        let mut process = Process::start(ffmpeg, &arguments, path, (Stdio::null(), Stdio::piped()))?;
        let patience = ffmpeg.patience;
        let stdout = PatientReader::new(process.stdout()?, patience);
        match Y4mSource::from_reader(Box::new(stdout), &name) {
            Ok(frames) => {
                let probed = probe.remarks().map(|remark| (path.to_owned(), remark));
                let remarks = frames.remarks().iter().cloned().chain(probed).collect();
                Ok(Self { name, process, frames, read: 0, remarks, patience })
            }
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

    fn fps(&self) -> Option<Fps> {
        self.frames.fps()
    }

    fn remarks(&self) -> &[(PathBuf, Remark)] {
        &self.remarks
    }

    fn next(&mut self) -> Result<Option<PlanarFrame>> {
        match self.frames.next() {
            Ok(Some(frame)) => {
                self.read += 1;
                Ok(Some(frame))
            }
            Ok(None) => {
                self.process.finish().map_err(|error| self.explained(error))?;
                self.check_messages()?;
                if self.read == 0 {
                    return Err(Error::input(format!("frames of {}", self.name), "at least one", "none"));
                }
                Ok(None)
            }
            Err(error) => {
                let error = failed(&mut self.process, error, self.patience);
                Err(self.explained(error))
            }
        }
    }
}

impl FfmpegSource {
    /// Fails if `ffmpeg` ended well, but says that frames are missing, as after a .mkv file that is
    /// cut short. Other messages are only a remark.
    fn check_messages(&mut self) -> Result<()> {
        let said = self.process.said();
        let lines = || said.lines().map(str::trim).filter(|line| !line.is_empty());
        let errors: Vec<&str> = lines().filter(|line| tells_of_loss(line)).take(4).collect();
        if !errors.is_empty() {
            let problem = format!("ffmpeg reports errors after frame {}: {}", self.read, errors.join("; "));
            return Err(Error::format(&self.name, problem));
        }
        self.remarks.extend(lines().next().map(|_| (PathBuf::from(&self.name), Remark::Messages)));
        Ok(())
    }

    /// Explains the failure of the filter that stops at a frame of another size.
    fn explained(&self, error: Error) -> Error {
        if !error.to_string().contains("Parsed_crop_0") {
            return error;
        }
        let found = format!("another size after at least {} frames", self.read);
        Error::input(format!("frames of {}", self.name), format!("{} throughout", self.frames.size()), found)
    }
}

/// True if the message of `ffmpeg` says that frames are missing.
fn tells_of_loss(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    LOSSES.iter().any(|loss| line.contains(loss))
}

/// Ends `process` after `error` while reading frames, and returns the error to report.
fn failed(process: &mut Process, error: Error, patience: Duration) -> Error {
    match error {
        Error::Io { source, .. } if source.kind() == ErrorKind::TimedOut => {
            process.failed(&hangs(patience), Duration::ZERO)
        }
        Error::Format { problem, .. } => process.failed(&format!("ffmpeg delivered wrong data: {problem}"), LAST_WORDS),
        // The frames are not what this crate can use. `ffmpeg` would only report the closed pipe.
        error @ (Error::Input { .. } | Error::HostMemory { .. }) => {
            process.end();
            error
        }
        other => process.failed(&other.to_string(), LAST_WORDS),
    }
}
