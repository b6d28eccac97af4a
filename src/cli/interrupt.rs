//! Ctrl-C: stops a decode between two submissions, and never in the middle of a file.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use wgvae::internals::image_file::write_atomically;
use wgvae::{Error, Result};

use super::INTERRUPTED;

/// How long work that was told to stop may take to do so. Reading weights and compiling do not listen.
const PATIENCE: Duration = Duration::from_millis(600);

/// Whether Ctrl-C was pressed, and the lock on writing files.
#[derive(Debug, Default)]
pub(super) struct Interrupt {
    cancel: Arc<AtomicBool>,
    writing: Arc<Mutex<()>>,
}

impl Interrupt {
    /// From now on Ctrl-C sets [`Self::cancel`], and ends the process a little later if that has not happened by itself.
    pub(super) fn install() -> Self {
        let interrupt = Self::default();
        let (cancel, writing) = (Arc::clone(&interrupt.cancel), Arc::clone(&interrupt.writing));
        let handler = move || {
            cancel.store(true, Ordering::Relaxed);
            std::thread::sleep(PATIENCE);
            // Waits for files that are being written, and keeps others from being begun.
            let _writing = writing.lock().unwrap_or_else(PoisonError::into_inner);
            drop(writeln!(std::io::stderr(), "interrupted"));
            std::process::exit(i32::from(INTERRUPTED));
        };
        if let Err(error) = ctrlc::set_handler(handler) {
            log::warn!("Ctrl-C will end wgvae at once: {error}");
        }
        interrupt
    }

    /// For [`wgvae::Control::cancel`].
    pub(super) fn cancel(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancel)
    }

    /// Writes all of `files`, each atomically, or after Ctrl-C none.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::Io`].
    pub(super) fn write(&self, files: &[(PathBuf, Vec<u8>)]) -> Result<()> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        files.iter().try_for_each(|(path, bytes)| write_atomically(path, bytes))
    }
}
