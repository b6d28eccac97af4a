//! Frames to a video file.

use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::super::super::part_file::PartFile;
use super::super::error::format;
use super::super::files::{Files, create_seekable};
use super::super::frame::{Frame, FrameFormat, FrameSink, to_unit};
use super::super::options::Fps;
use super::codec::Codec;
use super::process::{Ffmpeg, Process, file_url, wait_until};
use crate::error::{Error, Result};
use crate::tensor::Size;

/// Feeds `ffmpeg` RGB of 16 bits, whatever the codec makes of it. It writes beside the file, which appears when it is complete.
///
/// A thread of its own writes to the pipe, so that an `ffmpeg` that takes no frames is noticed.
pub struct FfmpegSink<'a> {
    name: String,
    size: Size,
    process: Process,
    frames: Option<SyncSender<Vec<u8>>>,
    feeder: JoinHandle<std::io::Result<()>>,
    part: Option<PartFile>,
    files: &'a dyn Files,
    patience: Duration,
}

impl std::fmt::Debug for FfmpegSink<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FfmpegSink").field("name", &self.name).field("size", &self.size).finish_non_exhaustive()
    }
}

impl<'a> FfmpegSink<'a> {
    /// Starts `ffmpeg` for frames of `size`.
    ///
    /// # Errors
    /// [`Error::Input`] where there is no `ffmpeg`, or the codec does not take the size; [`Error::Io`].
    pub fn start(
        ffmpeg: &Ffmpeg,
        path: &Path,
        codec: &Codec,
        (size, fps): (Size, Fps),
        files: &'a dyn Files,
    ) -> Result<Self> {
        codec.check_size(path, size)?;
        let part = create_seekable(files, path)?;
        let (size_text, fps) = (size.to_string(), fps.to_string());
        let mut arguments: Vec<std::ffi::OsString> =
            ["-f", "rawvideo", "-pix_fmt", "rgb48le", "-video_size", &size_text, "-framerate", &fps, "-i", "pipe:0"]
                .map(Into::into)
                .into();
        arguments.extend(codec.arguments().into_iter().map(Into::into));
        arguments.extend(["-y".into(), file_url(part.part().unwrap_or(path))]);
        let mut process = Process::start(ffmpeg, &arguments, path, (Stdio::piped(), Stdio::null()))?;
        let stdin = process.stdin()?;
        let (frames, taken) = sync_channel(1);
        let feeder = std::thread::spawn(move || feed(stdin, &taken));
        Ok(Self {
            name: path.display().to_string(),
            size,
            process,
            frames: Some(frames),
            feeder,
            part: Some(part),
            files,
            patience: ffmpeg.patience,
        })
    }

    /// Why a frame was not taken.
    fn stalled(&mut self) -> Error {
        let seconds = self.patience.as_secs_f64();
        self.process.failed(&format!("ffmpeg takes no frames: none for {seconds} s"), Duration::ZERO)
    }

    /// Its own error: it ended before the last frame.
    fn ended(&mut self) -> Error {
        self.process.failed("ffmpeg ended before the last frame", self.patience)
    }

    /// Hands over the bytes of a frame.
    fn send(&mut self, frame: Vec<u8>) -> Result<()> {
        let Some(frames) = &self.frames else { return Err(format(&self.name, "the clip has ended already")) };
        let (mut waiting, mut closed) = (Some(frame), false);
        let taken = wait_until(self.patience, || {
            match waiting.take().map(|frame| frames.try_send(frame)) {
                Some(Err(TrySendError::Full(frame))) => waiting = Some(frame),
                Some(Err(TrySendError::Disconnected(_))) => closed = true,
                Some(Ok(())) | None => {}
            }
            waiting.is_none()
        });
        match (taken, closed) {
            (true, false) => Ok(()),
            (true, true) => Err(self.ended()),
            (false, _) => Err(self.stalled()),
        }
    }
}

impl FrameSink for FfmpegSink<'_> {
    fn wants(&self) -> FrameFormat {
        FrameFormat::Floats
    }

    fn frame(&mut self, frame: &Frame<'_>) -> Result<ControlFlow<()>> {
        let bytes = rgb48(frame.floats(self.size)?);
        self.send(bytes)?;
        Ok(ControlFlow::Continue(()))
    }

    fn finish(&mut self) -> Result<()> {
        let Some(mut part) = self.part.take() else { return Ok(()) };
        self.frames = None;
        if !wait_until(self.patience, || self.feeder.is_finished()) {
            return Err(self.stalled());
        }
        self.process.finish()?;
        // What was written is in a file that another process has opened.
        let written = part.file()?.map(|file| file.metadata()).transpose().map_err(|error| part.error(error))?;
        if written.is_none_or(|file| file.len() == 0) {
            return Err(format(&self.name, "ffmpeg wrote nothing"));
        }
        self.files.place(part)
    }
}

/// Writes frames to `ffmpeg` until there are no more, or it wants no more.
fn feed(mut stdin: ChildStdin, frames: &Receiver<Vec<u8>>) -> std::io::Result<()> {
    frames.iter().try_for_each(|frame| stdin.write_all(&frame))
}

/// `[h, w, 3]` of 16 bits, little-endian.
fn rgb48(values: &[f32]) -> Vec<u8> {
    let plane = values.len() / 3;
    let mut bytes = Vec::with_capacity(values.len() * 2);
    for index in 0..plane {
        for channel in 0..3 {
            let unit = to_unit(values[channel * plane + index]);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 65535")]
            let level = (unit * 65_535.0).round() as u16;
            bytes.extend(level.to_le_bytes());
        }
    }
    bytes
}
