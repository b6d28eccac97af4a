//! The process: started, listened to, and ended.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::super::error::{format, input, io};
use crate::error::{Error, Result};

/// Where `ffmpeg` is, and how long it may stand still.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ffmpeg {
    /// Its name, to be looked for on the path, or where it is.
    pub program: PathBuf,
    /// The longest that it may take for a frame. Then it hangs, and is ended.
    pub patience: Duration,
}

impl Default for Ffmpeg {
    fn default() -> Self {
        Self { program: PathBuf::from("ffmpeg"), patience: Duration::from_secs(300) }
    }
}

/// Arguments before all others: it says nothing but errors.
const QUIET: [&str; 3] = ["-hide_banner", "-loglevel", "error"];

/// How often a process is looked at that is waited for.
pub(super) const GLANCE: Duration = Duration::from_millis(2);

/// How long the rest of its last words may take once it has ended: a child of its own may hold the
/// pipe.
const REST: Duration = Duration::from_millis(500);

/// Every `ffmpeg` that this process has started, until a later start forgets those that are
/// dropped.
static STARTED: Mutex<Vec<Weak<Mutex<Child>>>> = Mutex::new(Vec::new());

/// Ends every `ffmpeg` that runs. For a process that ends without dropping its values.
pub fn end_processes() {
    for child in locked(&STARTED).iter().filter_map(Weak::upgrade) {
        end(&child);
    }
}

/// A running `ffmpeg`. Ended when it is dropped.
#[derive(Debug)]
pub(super) struct Process {
    /// Locked for moments only, so that [`end_processes`] never waits.
    child: Arc<Mutex<Child>>,
    words: LastWords,
    file: String,
}

impl Process {
    /// Starts it for `file`, for errors. What it says is read as it says it, so that it never waits
    /// for that.
    pub(super) fn start(
        ffmpeg: &Ffmpeg,
        arguments: &[OsString],
        file: &Path,
        (stdin, stdout): (Stdio, Stdio),
    ) -> Result<Self> {
        let mut command = Command::new(&ffmpeg.program);
        command.args(QUIET).args(arguments).stdin(stdin).stdout(stdout).stderr(Stdio::piped());
        // A terminal's signals are for whoever started it, who then ends it.
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
        locked(&self.child).stdin.take().ok_or_else(|| format(&self.file, "ffmpeg has no stdin"))
    }

    pub(super) fn stdout(&mut self) -> Result<ChildStdout> {
        locked(&self.child).stdout.take().ok_or_else(|| format(&self.file, "ffmpeg has no stdout"))
    }

    /// Waits until it ends by itself, as long as that takes: whatever it has to read or write is
    /// with it.
    pub(super) fn finish(&mut self) -> Result<()> {
        wait_until(Duration::MAX, || self.has_ended());
        let status = locked(&self.child).wait().map_err(|error| io(&self.file, error))?;
        if status.success() { Ok(()) } else { Err(self.failure(&format!("ffmpeg failed ({status})"))) }
    }

    /// Ends it, unless it ends by itself within `patience`. The error is its own where it failed,
    /// else `problem`.
    pub(super) fn failed(&mut self, problem: &str, patience: Duration) -> Error {
        match wait_until(patience, || self.has_ended()) {
            true => self.finish().err().unwrap_or_else(|| self.failure(problem)),
            false => {
                end(&self.child);
                self.failure(problem)
            }
        }
    }

    /// What went wrong, and what it said last.
    fn failure(&mut self, problem: &str) -> Error {
        let words = self.words.text();
        format(&self.file, if words.is_empty() { problem.to_owned() } else { format!("{problem}: {words}") })
    }

    /// True if it has ended, or nobody can say.
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
    // It may have ended by itself.
    drop(child.kill());
    drop(child.wait());
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks until `done`, and no longer than `patience`. Whether it was.
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

/// A path as `ffmpeg` takes it, whatever is in it: it would read options and protocols there.
pub(super) fn file_url(path: &Path) -> OsString {
    let mut url = OsString::from("file:");
    url.push(path);
    url
}

fn not_started(ffmpeg: &Ffmpeg, file: &Path, error: std::io::Error) -> Error {
    let program = ffmpeg.program.display();
    if error.kind() != ErrorKind::NotFound {
        return io(&program.to_string(), error);
    }
    let expected = format!("{program} on the path");
    input(file.display().to_string(), expected, "none: install it, or use .y4m or numbered pictures (%05d.png)")
}

/// The end of what a process says on stderr.
#[derive(Debug)]
struct LastWords {
    heard: Arc<Mutex<VecDeque<u8>>>,
    listener: Option<JoinHandle<()>>,
}

/// Bytes that are kept, and lines that are shown.
const KEPT: usize = 4096;
const LINES: usize = 6;

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

    /// Its last lines, in one. For after its end.
    fn text(&self) -> String {
        wait_until(REST, || self.listener.as_ref().is_none_or(JoinHandle::is_finished));
        let heard: Vec<u8> = locked(&self.heard).iter().copied().collect();
        let text = String::from_utf8_lossy(&heard);
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(LINES)..].join("; ")
    }
}
