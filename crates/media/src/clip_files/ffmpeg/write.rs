//! Frames written to a video file.

use std::io::{ErrorKind, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use wgvae::{Error, Result, Size};

use super::super::super::part_file::PartFile;
use super::super::files::{Files, seekable};
use super::super::frame::{Frame, FrameFormat, FrameSink};
use super::super::options::{Bits, Fps};
use super::super::y4m::Y4mSink;
use super::codec::Codec;
use super::process::{Ffmpeg, Process, file_url, wait_until};

/// A sink that sends `ffmpeg` y4m with 12 bits, 4:4:4, for every codec. `ffmpeg` writes a temporary
/// file beside the output, which replaces it when complete.
///
/// RGB of 16 bits is not used: `ffmpeg` 9 makes it a quarter of an 8-bit level too bright (4 levels
/// of 12 bits in the mean). From y4m its mean is right.
#[derive(Debug)]
pub struct FfmpegSink<'a> {
    name: String,
    process: Process,
    /// `None` after the last frame.
    frames: Option<Y4mSink<'static>>,
    feeder: JoinHandle<()>,
    part: Option<PartFile>,
    files: &'a dyn Files,
    patience: Duration,
}

impl<'a> FfmpegSink<'a> {
    /// Starts `ffmpeg` for frames of `size`.
    ///
    /// # Errors
    /// [`Error::Input`] if there is no `ffmpeg`, or if the codec does not support the size;
    /// [`Error::Io`].
    pub fn start(
        ffmpeg: &Ffmpeg,
        path: &Path,
        codec: &Codec,
        (size, fps): (Size, Fps),
        files: &'a dyn Files,
    ) -> Result<Self> {
        codec.check_size(path, size)?;
        let name = path.display().to_string();
        let part = seekable(files.create_named(path)?, path)?;
        let mut arguments: Vec<std::ffi::OsString> = ["-f", "yuv4mpegpipe", "-i", "pipe:0"].map(Into::into).into();
        arguments.extend(codec.arguments().into_iter().map(Into::into));
        arguments.extend(["-y".into(), file_url(part.part().unwrap_or(path))]);
        let mut process = Process::start(ffmpeg, &arguments, path, (Stdio::piped(), Stdio::null()))?;
        let stdin = process.stdin()?;
        let (pieces, taken) = sync_channel(QUEUE);
        let feeder = std::thread::spawn(move || feed(stdin, &taken));
        let pipe = PatientPipe { pieces, patience: ffmpeg.patience };
        let frames = Y4mSink::to_writer(Box::new(pipe), &name, size, fps, Bits::Twelve)?;
        Ok(Self { name, process, frames: Some(frames), feeder, part: Some(part), files, patience: ffmpeg.patience })
    }

    /// Ends `ffmpeg` after it read nothing for `patience`, and returns the error.
    fn stalled(&mut self) -> Error {
        let seconds = self.patience.as_secs_f64();
        self.process.failed(&format!("ffmpeg hangs: it read no data for {seconds} s"), Duration::ZERO)
    }
}

impl FrameSink for FfmpegSink<'_> {
    fn wants(&self) -> FrameFormat {
        FrameFormat::Floats
    }

    fn frame(&mut self, frame: &Frame<'_>) -> Result<ControlFlow<()>> {
        let Some(frames) = &mut self.frames else {
            return Err(Error::format(&self.name, "the clip has ended already"));
        };
        match frames.frame(frame) {
            Ok(ControlFlow::Continue(())) => Ok(ControlFlow::Continue(())),
            Ok(ControlFlow::Break(())) => Err(self.process.failed("ffmpeg ended before the last frame", self.patience)),
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::TimedOut => Err(self.stalled()),
            Err(other) => Err(other),
        }
    }

    fn finish(&mut self) -> Result<()> {
        let Some(mut part) = self.part.take() else { return Ok(()) };
        self.frames = None;
        if !wait_until(self.patience, || self.feeder.is_finished()) {
            return Err(self.stalled());
        }
        self.process.finish()?;
        let written = part.file()?.map(|file| file.metadata()).transpose().map_err(|error| part.error(error))?;
        if written.is_none_or(|file| file.len() == 0) {
            return Err(Error::format(&self.name, "ffmpeg wrote nothing"));
        }
        self.files.place(part)
    }
}

/// Most pieces of a frame (its first line, its end, three planes) that wait for `ffmpeg`.
const QUEUE: usize = 5;

/// Writes pieces to `ffmpeg` until there are no more or the pipe closes. It runs in its own thread,
/// so that an `ffmpeg` that reads nothing is noticed.
fn feed(mut stdin: ChildStdin, pieces: &Receiver<Vec<u8>>) {
    // A write error is ignored: `ffmpeg` itself reports the cause.
    drop(pieces.iter().try_for_each(|piece| stdin.write_all(&piece)));
}

/// A pipe whose writes time out after `patience`.
struct PatientPipe {
    pieces: SyncSender<Vec<u8>>,
    patience: Duration,
}

impl Write for PatientPipe {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let (mut waiting, mut closed) = (Some(bytes.to_vec()), false);
        let taken = wait_until(self.patience, || {
            match waiting.take().map(|piece| self.pieces.try_send(piece)) {
                Some(Err(TrySendError::Full(piece))) => waiting = Some(piece),
                Some(Err(TrySendError::Disconnected(_))) => closed = true,
                Some(Ok(())) | None => {}
            }
            waiting.is_none()
        });
        match (taken, closed) {
            (true, false) => Ok(bytes.len()),
            (true, true) => Err(ErrorKind::BrokenPipe.into()),
            (false, _) => Err(ErrorKind::TimedOut.into()),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
