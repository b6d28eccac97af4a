//! Signals that ask wgvae to end (Ctrl-C, SIGTERM, SIGHUP): stop the work between two submissions,
//! and never in the middle of a file.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wgvae::internals::clip_files::{Files, end_processes};
use wgvae::internals::part_file::PartFile;
use wgvae::{Error, Result};

use super::signals::{self, exit_code};
use super::stderr::{complain, took};
use super::stdio;

/// How long work that was told to stop may take to do so. Reading weights and compiling do not
/// listen.
const PATIENCE: Duration = Duration::from_millis(600);

/// Tells work to stop after a signal, and knows the files that are begun.
#[derive(Debug, Default)]
pub(super) struct Interrupt {
    cancel: Arc<AtomicBool>,
    /// Names of files that are not complete. Locked while any is created or put into its place.
    parts: Arc<Mutex<Vec<PathBuf>>>,
}

impl Interrupt {
    /// Makes a signal set [`Self::cancel`], and end the process a little later if that has not
    /// happened by itself.
    pub(super) fn install() -> Self {
        let interrupt = Self::default();
        let (cancel, parts) = (Arc::clone(&interrupt.cancel), Arc::clone(&interrupt.parts));
        let ask = move || cancel.store(true, Ordering::Relaxed);
        let end = move || {
            // Waits for files that are being put into their place, and keeps others from being
            // begun.
            let parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
            end_processes();
            for part in parts.iter() {
                // Most are gone by now.
                drop(std::fs::remove_file(part));
            }
            complain("interrupted");
            std::process::exit(i32::from(exit_code()));
        };
        if let Err(error) = signals::watch(ask, PATIENCE, end) {
            log::warn!("signals will end wgvae at once: {error}");
        }
        interrupt
    }

    /// For [`wgvae::Control::cancel`].
    pub(super) fn cancel(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancel)
    }

    /// Begins a file that is to replace `path`, or go to stdout, and goes away if that never
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

    /// Puts all of `files` into their places, or after a signal none.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::Io`].
    pub(super) fn write(&self, mut files: Vec<PartFile>) -> Result<()> {
        let start = Instant::now();
        files.iter_mut().try_for_each(PartFile::complete)?;
        let placed: Vec<PathBuf> = files.iter().filter_map(|file| file.part().map(Path::to_owned)).collect();
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        self.check()?;
        files.into_iter().try_for_each(PartFile::persist)?;
        parts.retain(|part| !placed.contains(part));
        took("write", start.elapsed());
        Ok(())
    }

    /// Writes the whole of each file, or after a signal none.
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
