//! Warnings of the library, which become warnings of Python.

use std::cell::RefCell;

use log::{Level, LevelFilter, Log, Metadata, Record};
use pyo3::prelude::*;

thread_local! {
    /// Warnings of this thread, or `None` if nobody collects them.
    static NOTES: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// The logger, which keeps a warning for the thread that causes it.
struct Notes;

impl Log for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Warn && metadata.target().starts_with("wgvae")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            add([record.args().to_string()]);
        }
    }

    fn flush(&self) {}
}

/// Begins to receive the library's warnings. Called once, when the module is imported.
pub(crate) fn listen() {
    if log::set_logger(&Notes).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}

/// Runs `work` and returns its result and the warnings that it caused on this thread.
pub(crate) fn collected<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    let outer = NOTES.replace(Some(Vec::new()));
    let result = work();
    (result, NOTES.replace(outer).unwrap_or_default())
}

/// Adds warnings of another thread to those of this one.
pub(crate) fn add(notes: impl IntoIterator<Item = String>) {
    NOTES.with_borrow_mut(|kept| {
        if let Some(kept) = kept {
            kept.extend(notes);
        }
    });
}

/// Warns the caller of the package.
///
/// # Errors
/// The exception that a filter of warnings makes of it.
pub(crate) fn warn(py: Python<'_>, text: &str) -> PyResult<()> {
    py.import("wgvae._warnings")?.getattr("warn")?.call1((text,)).map(drop)
}
