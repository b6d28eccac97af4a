//! What is said beside the result: remarks, and phases with their bars and times. `--quiet` and
//! `--verbose` say how much.

use std::io::Write as _;
use std::path::Path;
use std::sync::{LazyLock, OnceLock};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use wgvae::Result;
use wgvae::internals::Printable;

/// How much is said beside the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Errors.
    Quiet,
    /// What users should know, and bars where stderr is a terminal.
    Normal,
    /// What each phase took, too.
    Verbose,
}

static VERBOSITY: OnceLock<Verbosity> = OnceLock::new();

/// All bars, so that lines are written above them. They show nothing where stderr is no terminal.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

impl Verbosity {
    /// Makes it that of the process. The first one stays.
    pub(crate) fn apply(self) {
        let _ = VERBOSITY.set(self);
    }

    fn now() -> Self {
        VERBOSITY.get().copied().unwrap_or(Self::Normal)
    }
}

/// Writes a line to stderr whatever was asked for, or nothing if stderr is closed, where
/// `eprintln!` would panic.
pub(crate) fn complain(text: &str) {
    BARS.suspend(|| drop(writeln!(std::io::stderr(), "{}", Printable(text))));
}

/// Writes a line to stderr unless it is to be quiet.
pub(crate) fn say(text: &str) {
    if Verbosity::now() != Verbosity::Quiet {
        complain(text);
    }
}

/// A remark about the file at `path`.
pub(super) fn note(path: &Path, text: &str) {
    say(&format!("note: {}: {text}", path.display()));
}

/// What a phase took, for those who want to know.
pub(super) fn took(phase: &str, time: Duration) {
    if Verbosity::now() == Verbosity::Verbose {
        complain(&format!("{:>8.2} s  {phase}", time.as_secs_f64()));
    }
}

/// Work of which the end is known only when it is there.
pub(super) async fn timed<T>(phase: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    let start = Instant::now();
    let done = work.await?;
    took(phase, start.elapsed());
    Ok(done)
}

/// A phase with a bar while it lasts, which goes away when this does.
#[derive(Debug)]
pub(super) struct Phase {
    name: &'static str,
    start: Instant,
    bar: ProgressBar,
}

impl Phase {
    /// One that counts work.
    pub(super) fn begin(name: &'static str) -> Self {
        Self::with_template(name, "{prefix:8} {wide_bar} {percent:>3} % {elapsed} {msg:40}")
    }

    /// One that counts bytes.
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
        // However short the phase is.
        bar.force_draw();
        Self { name, start: Instant::now(), bar }
    }

    /// Where its bar is drawn, for those who work at it.
    pub(super) fn bar(&self) -> Bar {
        Bar(self.bar.clone())
    }

    /// Ends it, and says what it took.
    pub(super) fn end(self) {
        self.end_without(Duration::ZERO);
    }

    /// Ends it, and says what it took but for what another phase took in it.
    pub(super) fn end_without(self, other: Duration) {
        took(self.name, self.start.elapsed().saturating_sub(other));
    }
}

impl Drop for Phase {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A phase's bar.
#[derive(Debug, Clone)]
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// `done` of `total`, at `what`.
    pub(super) fn show(&self, done: u64, total: u64, what: &str) {
        self.0.set_length(total);
        self.0.set_position(done);
        self.0.set_message(what.to_owned());
        if done == 0 {
            self.0.force_draw();
        }
    }
}
