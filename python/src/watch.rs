//! Work that Python waits for. It runs without the GIL, reports progress, and stops after signals
//! and exceptions of callbacks.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use wgvae::{Control, Progress, Result};

use crate::errors::{Stop, internal};
use crate::notes::{self, collected};

/// The observation of a running call.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Callback. Its arguments: index of the image, number of images, multiply-adds done,
    /// multiply-adds in all, stage.
    callback: Option<Py<PyAny>>,
    cancel: Arc<AtomicBool>,
    raised: Option<PyErr>,
    /// Index of the image, or of the part of a clip, that is being worked on.
    pub(crate) image: u32,
    /// Number of images, or of parts.
    pub(crate) images: u32,
}

/// Runs `work` without the GIL. A panic becomes an exception, and warnings of the library become
/// warnings of Python.
///
/// # Errors
/// The error of `work`, or the exception of a signal handler, of `progress`, or of a filter of
/// warnings.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&mut Watch) -> std::result::Result<T, Stop> + Send,
) -> PyResult<T> {
    let cancel = Arc::new(AtomicBool::new(false));
    let mut watch = Watch { callback: progress, cancel, raised: None, image: 0, images: 1 };
    let run = || collected(|| catch_unwind(AssertUnwindSafe(|| work(&mut watch))));
    let (result, notes) = py.detach(run);
    let warned = notes.iter().try_for_each(|note| notes::warn(py, note));
    let result = match result {
        Ok(result) => result.map_err(|stop| stop.into_exception(py))?,
        Err(panic) => return Err(internal(py, &format!("a bug in wgvae: {}", said(&*panic)))),
    };
    warned.map(|()| result)
}

impl Watch {
    /// Runs `work` of the crate. It stops when a signal handler or the callback raises an
    /// exception.
    ///
    /// # Errors
    /// That exception, or the error of `work`.
    pub(crate) fn control<T>(
        &mut self,
        work: impl FnOnce(&mut Control<'_>) -> Result<T>,
    ) -> std::result::Result<T, Stop> {
        let cancel = Arc::clone(&self.cancel);
        let mut tell = |progress: Progress<'_>| self.tell(progress);
        let result = work(&mut Control { progress: Some(&mut tell), cancel: Some(cancel), submission_target: None });
        match self.raised.take() {
            Some(error) => Err(Stop::Python(error)),
            None => Ok(result?),
        }
    }

    /// Runs the handlers of pending signals on Python's main thread. Does nothing on other threads.
    ///
    /// # Errors
    /// Exceptions of the handlers.
    pub(crate) fn signals() -> PyResult<()> {
        // `None` means that the interpreter is ending.
        Python::try_attach(|py| py.check_signals()).unwrap_or(Ok(()))
    }

    /// Warns the caller of the package.
    ///
    /// # Errors
    /// The exception that a filter of warnings makes of it.
    pub(crate) fn warn(text: &str) -> PyResult<()> {
        Python::try_attach(|py| notes::warn(py, text)).unwrap_or(Ok(()))
    }

    fn tell(&mut self, progress: Progress<'_>) {
        if self.raised.is_some() {
            return;
        }
        let told = Python::try_attach(|py| {
            py.check_signals()?;
            let Some(callback) = &self.callback else { return Ok(()) };
            let Progress { done, total, stage, .. } = progress;
            callback.call1(py, (self.image, self.images, done, total, stage)).map(drop)
        });
        if let Some(Err(error)) = told {
            self.raised = Some(error);
            self.cancel.store(true, Ordering::Relaxed);
        }
    }
}

/// Returns the message of a panic.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}
