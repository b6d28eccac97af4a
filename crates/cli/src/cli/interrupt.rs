//! Stopping on a signal (Ctrl-C, SIGTERM, SIGHUP): work stops between two submissions, and never in
//! the middle of a file.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wgvae::{Error, Result};
use wgvae_media::clip_files::{Files, end_processes};
use wgvae_media::part_file::PartFile;

use super::signals::{self, exit_code};
use super::stderr::{complain, took};
use super::stdio;

/// Time that work gets to stop by itself after a signal. Reading weights and compiling do not check
/// for the signal.
const PATIENCE: Duration = Duration::from_millis(600);

/// Flag that tells work to stop after a signal, and the list of unfinished files.
#[derive(Debug, Default)]
pub(super) struct Interrupt {
    cancel: Arc<AtomicBool>,
    /// Names of unfinished files. Locked while a file is created or moved into its place.
    parts: Arc<Mutex<Vec<PathBuf>>>,
}

impl Interrupt {
    /// Makes a signal set [`Self::cancel`], and end the process a little later if it has not ended
    /// by itself.
    pub(super) fn install() -> Self {
        let interrupt = Self::default();
        let (cancel, parts) = (Arc::clone(&interrupt.cancel), Arc::clone(&interrupt.parts));
        let ask = move || cancel.store(true, Ordering::Relaxed);
        let end = move || {
            // Waits for files that are being moved into place, and keeps new ones from being begun.
            let parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
            end_processes();
            for part in parts.iter() {
                // Most of them are gone by now.
                drop(std::fs::remove_file(part));
            }
            complain("interrupted");
            // Without the handlers of `exit`: a driver's handler frees what its threads still use.
            signal_hook::low_level::exit(i32::from(exit_code()));
        };
        if let Err(error) = signals::watch(ask, PATIENCE, end) {
            log::warn!("signals will end wgvae at once: {error}");
        }
        interrupt
    }

    /// Returns the flag for [`wgvae::Control::cancel`].
    pub(super) fn cancel(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancel)
    }

    /// Begins a file that will replace `path`, or go to stdout. It is deleted if that never
    /// happens.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::Io`].
    pub(super) fn begin(&self, path: &Path) -> Result<PartFile> {
        self.begin_by(|| if stdio::is_meant(path) { PartFile::stdout() } else { PartFile::create(path) })
    }

    fn begin_by(&self, create: impl FnOnce() -> Result<PartFile>) -> Result<PartFile> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        self.check()?;
        let file = create()?;
        parts.extend(file.part().map(Path::to_owned));
        Ok(file)
    }

    /// Moves all `files` into place; after a signal, moves none.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::Io`].
    pub(super) fn write(&self, mut files: Vec<PartFile>) -> Result<()> {
        let start = Instant::now();
        files.iter_mut().try_for_each(PartFile::complete)?;
        let (files, pipes): (Vec<PartFile>, Vec<PartFile>) = files.into_iter().partition(PartFile::is_seekable);
        let placed: Vec<PathBuf> = files.iter().filter_map(|file| file.part().map(Path::to_owned)).collect();
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        self.check()?;
        files.into_iter().try_for_each(PartFile::persist)?;
        parts.retain(|part| !placed.contains(part));
        drop(parts);
        // Without the lock, as the reader of a pipe may keep it waiting when a signal comes.
        pipes.into_iter().try_for_each(PartFile::persist)?;
        took("write", start.elapsed());
        Ok(())
    }

    /// Writes all `files` with their contents; after a signal, writes none.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::Io`].
    pub(super) fn write_all(&self, files: &[(PathBuf, Vec<u8>)]) -> Result<()> {
        let mut begun = Vec::new();
        for (path, content) in files {
            let mut file = self.begin(path)?;
            file.write_all(content).map_err(|error| file.error(error))?;
            begun.push(file);
        }
        self.write(begun)
    }

    fn check(&self) -> Result<()> {
        if self.cancel.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }
}

impl Files for Interrupt {
    fn create(&self, path: &Path) -> Result<PartFile> {
        self.begin(path)
    }

    fn create_named(&self, path: &Path) -> Result<PartFile> {
        self.begin_by(|| PartFile::create_named(path))
    }

    fn place(&self, file: PartFile) -> Result<()> {
        self.write(vec![file])
    }
}
