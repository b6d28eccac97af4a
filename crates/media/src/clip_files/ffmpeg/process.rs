//! The `ffmpeg` process: start it, read its messages, and end it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use wgvae::{Error, Result};

/// The `ffmpeg` program and its time limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ffmpeg {
    /// Name of the program to find on the path, or its full path.
    pub program: PathBuf,
    /// Longest time for one frame. After that the process is considered hung, and is killed.
    pub patience: Duration,
}

impl Default for Ffmpeg {
    fn default() -> Self {
        Self { program: PathBuf::from("ffmpeg"), patience: Duration::from_secs(300) }
    }
}

/// First arguments, which silence everything but errors.
const QUIET: [&str; 3] = ["-hide_banner", "-loglevel", "error"];

/// First arguments of a probe. Each message begins with its level, so that errors can be told
/// apart.
const TALKATIVE: [&str; 2] = ["-loglevel", "level+info"];

/// Time between two looks at a process that we wait for.
pub(super) const GLANCE: Duration = Duration::from_millis(2);

/// Longest wait for the last messages of a process that has ended. A child process of its own may
/// keep the pipe open.
const REST: Duration = Duration::from_millis(500);

/// Every `ffmpeg` that this process has started. Each start removes the entries that were dropped.
static STARTED: Mutex<Vec<Weak<Mutex<Child>>>> = Mutex::new(Vec::new());

/// Kills every running `ffmpeg`, for a program that exits without dropping its values.
pub fn end_processes() {
    for child in locked(&STARTED).iter().filter_map(Weak::upgrade) {
        end(&child);
    }
}

/// A running `ffmpeg`, which is killed on drop.
#[derive(Debug)]
pub(super) struct Process {
    /// Locked only for moments, so that [`end_processes`] never waits.
    child: Arc<Mutex<Child>>,
    words: LastWords,
    file: String,
}

impl Process {
    /// Starts `ffmpeg`. `file` is its name in errors. A thread reads its messages at once, so that
    /// `ffmpeg` never blocks on them.
    pub(super) fn start(ffmpeg: &Ffmpeg, arguments: &[OsString], file: &Path, pipes: (Stdio, Stdio)) -> Result<Self> {
        Self::spawn(ffmpeg, &QUIET, arguments, file, pipes)
    }

    /// Runs `ffmpeg` without input and output until it ends, and returns its messages.
    ///
    /// # Errors
    /// [`Error::Format`] if `ffmpeg` fails or takes longer than its patience.
    pub(super) fn messages(ffmpeg: &Ffmpeg, arguments: &[OsString], file: &Path) -> Result<String> {
        let pipes = (Stdio::null(), Stdio::null());
        let mut process = Self::spawn(ffmpeg, &TALKATIVE, arguments, file, pipes)?;
        let patience = ffmpeg.patience;
        if !wait_until(patience, || process.has_ended()) {
            return Err(process.failed(&hangs(patience), Duration::ZERO));
        }
        process.finish()?;
        Ok(process.words.all())
    }

    /// Starts `ffmpeg` with these `first` arguments.
    fn spawn(
        ffmpeg: &Ffmpeg,
        first: &[&str],
        arguments: &[OsString],
        file: &Path,
        (stdin, stdout): (Stdio, Stdio),
    ) -> Result<Self> {
        let mut command = Command::new(&ffmpeg.program);
        // Colours are escape codes within the messages.
        command.env_remove("AV_LOG_FORCE_COLOR").env("AV_LOG_FORCE_NOCOLOR", "1");
        command.args(first).args(arguments).stdin(stdin).stdout(stdout).stderr(Stdio::piped());
        // A separate process group: signals of the terminal reach only our process, which then ends
        // `ffmpeg`.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|error| not_started(ffmpeg, file, error))?;
        let words = LastWords::of(child.stderr.take());
        let child = Arc::new(Mutex::new(child));
        let mut started = locked(&STARTED);
        started.retain(|earlier| earlier.strong_count() > 0);
        started.push(Arc::downgrade(&child));
        Ok(Self { child, words, file: file.display().to_string() })
    }

    pub(super) fn stdin(&mut self) -> Result<ChildStdin> {
        locked(&self.child).stdin.take().ok_or_else(|| Error::format(&self.file, "ffmpeg has no stdin"))
    }

    pub(super) fn stdout(&mut self) -> Result<ChildStdout> {
        locked(&self.child).stdout.take().ok_or_else(|| Error::format(&self.file, "ffmpeg has no stdout"))
    }

    /// Waits without a time limit until the process ends. All its input or output has already
    /// passed.
    pub(super) fn finish(&mut self) -> Result<()> {
        wait_until(Duration::MAX, || self.has_ended());
        let status = locked(&self.child).wait().map_err(|error| Error::io(&self.file, error))?;
        if status.success() { Ok(()) } else { Err(self.failure(&format!("ffmpeg failed ({status})"))) }
    }

    /// Waits up to `patience` for the process to end, else kills it. Returns the error of `ffmpeg`
    /// if it failed, else `problem`.
    pub(super) fn failed(&mut self, problem: &str, patience: Duration) -> Error {
        match wait_until(patience, || self.has_ended()) {
            true => self.finish().err().unwrap_or_else(|| self.failure(problem)),
            false => {
                end(&self.child);
                self.failure(problem)
            }
        }
    }

    /// Kills the process, if it still runs.
    pub(super) fn end(&mut self) {
        end(&self.child);
    }

    /// Returns the last messages of `ffmpeg`, each in its own line. To be called after it has
    /// ended.
    pub(super) fn said(&self) -> String {
        self.words.all()
    }

    /// Makes an error of `problem` and the last messages of `ffmpeg`.
    fn failure(&mut self, problem: &str) -> Error {
        let words = self.words.text();
        Error::format(&self.file, if words.is_empty() { problem.to_owned() } else { format!("{problem}: {words}") })
    }

    /// True if the process has ended, or its state is unknown.
    fn has_ended(&self) -> bool {
        !matches!(locked(&self.child).try_wait(), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        end(&self.child);
    }
}

fn end(child: &Mutex<Child>) {
    let mut child = locked(child);
    // Errors are ignored: it may have ended by itself.
    drop(child.kill());
    drop(child.wait());
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Polls until `done` returns true, at most for `patience`. Returns false if the time ran out.
pub(super) fn wait_until(patience: Duration, mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !done() {
        if start.elapsed() >= patience {
            return false;
        }
        std::thread::sleep(GLANCE);
    }
    true
}

/// Returns `path` in a form that `ffmpeg` cannot mistake for an option or a protocol.
pub(super) fn file_url(path: &Path) -> OsString {
    let mut url = OsString::from("file:");
    url.push(path);
    url
}

fn not_started(ffmpeg: &Ffmpeg, file: &Path, error: std::io::Error) -> Error {
    let program = ffmpeg.program.display();
    if error.kind() != ErrorKind::NotFound {
        return Error::io(program, error);
    }
    let expected = format!("{program} on the path");
    Error::input(file.display().to_string(), expected, "none: install it, or use .y4m or numbered pictures (%05d.png)")
}

/// The last bytes that a process wrote to stderr.
#[derive(Debug)]
struct LastWords {
    heard: Arc<Mutex<VecDeque<u8>>>,
    listener: Option<JoinHandle<()>>,
}

/// Number of bytes that are kept, and number of lines that are shown. A probe prints all metadata
/// of a file, and many messages of a decoder may follow the one that says that frames are missing.
const KEPT: usize = 1 << 20;
const LINES: usize = 8;

/// Marks of errors in messages that begin with their level.
const ERRORS: [&str; 3] = ["[error] ", "[fatal] ", "[panic] "];

impl LastWords {
    fn of(stderr: Option<impl Read + Send + 'static>) -> Self {
        let heard = Arc::<Mutex<VecDeque<u8>>>::default();
        let kept = Arc::clone(&heard);
        let listener = stderr.map(|mut stderr| {
            std::thread::spawn(move || {
                let mut bytes = [0; 1024];
                while let Ok(count @ 1..) = stderr.read(&mut bytes) {
                    let mut kept = locked(&kept);
                    kept.extend(&bytes[..count]);
                    let surplus = kept.len().saturating_sub(KEPT);
                    kept.drain(..surplus);
                }
            })
        });
        Self { heard, listener }
    }

    /// Returns everything that is kept. To be called after the process has ended.
    fn all(&self) -> String {
        wait_until(REST, || self.listener.as_ref().is_none_or(JoinHandle::is_finished));
        let heard: Vec<u8> = locked(&self.heard).iter().copied().collect();
        String::from_utf8_lossy(&heard).into_owned()
    }

    /// Returns the last lines, joined into one. If levels mark some lines as errors, only these
    /// count. To be called after the process has ended.
    fn text(&self) -> String {
        let text = self.all();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let unmarked = |line: &&str| {
            let mark = ERRORS.into_iter().find(|mark| line.contains(mark))?;
            Some(line.replacen(mark, "", 1))
        };
        let errors: Vec<String> = lines.iter().filter_map(unmarked).collect();
        let lines = if errors.is_empty() { lines.into_iter().map(str::to_owned).collect() } else { errors };
        lines[lines.len().saturating_sub(LINES)..].join("; ")
    }
}

/// Describes an `ffmpeg` that delivers nothing.
pub(super) fn hangs(patience: Duration) -> String {
    format!("ffmpeg hangs: it delivered no data for {} s", patience.as_secs_f64())
}
