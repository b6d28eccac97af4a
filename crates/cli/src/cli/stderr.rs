//! Output on stderr: notes, and phases with progress bars and times. `--quiet` and `--verbose`
//! choose how much.

use std::io::Write as _;
use std::path::Path;
use std::sync::{LazyLock, OnceLock};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use wgvae::Result;
use wgvae::internals::Printable;

/// Amount of output on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Errors only.
    Quiet,
    /// Errors, notes, and progress bars if stderr is a terminal.
    Normal,
    /// Also the time of each phase.
    Verbose,
}

static VERBOSITY: OnceLock<Verbosity> = OnceLock::new();

/// All progress bars, so that lines are written above them. They show nothing if stderr is no
/// terminal.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

impl Verbosity {
    /// Sets the verbosity of this process. Only the first call has an effect.
    pub(crate) fn apply(self) {
        let _ = VERBOSITY.set(self);
    }

    fn now() -> Self {
        VERBOSITY.get().copied().unwrap_or(Self::Normal)
    }
}

/// Writes a line to stderr at any verbosity. Does nothing if stderr is closed, where `eprintln!`
/// would panic.
pub(crate) fn complain(text: &str) {
    BARS.suspend(|| drop(writeln!(std::io::stderr(), "{}", Printable(text))));
}

/// Writes a line to stderr unless `--quiet` was given.
pub(crate) fn say(text: &str) {
    if Verbosity::now() != Verbosity::Quiet {
        complain(text);
    }
}

/// Prints a note about the file at `path`.
pub(super) fn note(path: &Path, text: &str) {
    say(&format!("note: {}: {text}", path.display()));
}

/// Prints the time of a phase with `--verbose`.
pub(super) fn took(phase: &str, time: Duration) {
    if Verbosity::now() == Verbosity::Verbose {
        complain(&format!("{:>8.2} s  {phase}", time.as_secs_f64()));
    }
}

/// Runs `work` without a progress bar and prints its time with `--verbose`.
pub(super) async fn timed<T>(phase: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    let start = Instant::now();
    let done = work.await?;
    took(phase, start.elapsed());
    Ok(done)
}

/// Phase with a progress bar, which disappears when this is dropped.
#[derive(Debug)]
pub(super) struct Phase {
    name: &'static str,
    start: Instant,
    bar: ProgressBar,
}

impl Phase {
    /// Begins a phase that counts units of work.
    pub(super) fn begin(name: &'static str) -> Self {
        Self::with_template(name, "{prefix:8} {wide_bar} {percent:>3} % {elapsed} {msg:40}")
    }

    /// Begins a phase that counts bytes.
    pub(super) fn of_bytes(name: &'static str) -> Self {
        Self::with_template(name, "{prefix:8} {wide_bar} {bytes}/{total_bytes} {eta} {msg:40}")
    }

    fn with_template(name: &'static str, template: &str) -> Self {
        let bar =
            if Verbosity::now() == Verbosity::Quiet { ProgressBar::hidden() } else { BARS.add(ProgressBar::new(1)) };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(name);
        // Draw at once, so that even a short phase is seen.
        bar.force_draw();
        Self { name, start: Instant::now(), bar }
    }

    /// Returns a handle of the progress bar, for the code that does the work.
    pub(super) fn bar(&self) -> Bar {
        Bar(self.bar.clone())
    }

    /// Ends the phase and prints its time with `--verbose`.
    pub(super) fn end(self) {
        self.end_without(Duration::ZERO);
    }

    /// Ends the phase. Prints its time with `--verbose`, less the time `other` of another phase
    /// inside it.
    pub(super) fn end_without(self, other: Duration) {
        took(self.name, self.start.elapsed().saturating_sub(other));
    }
}

impl Drop for Phase {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Handle of a phase's progress bar.
#[derive(Debug, Clone)]
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// Shows `done` of `total`, with the text `what`.
    pub(super) fn show(&self, done: u64, total: u64, what: &str) {
        self.0.set_length(total);
        self.0.set_position(done);
        self.0.set_message(what.to_owned());
        if done == 0 {
            self.0.force_draw();
        }
    }
}
