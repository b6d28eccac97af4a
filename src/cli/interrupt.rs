//! Ctrl-C: stops a decode between two submissions, and never in the middle of a file.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use wgvae::internals::clip_files::Files;
use wgvae::internals::part_file::PartFile;
use wgvae::{Error, Result};

use super::stderr::{complain, took};
use super::{INTERRUPTED, stdio};

/// How long work that was told to stop may take to do so. Reading weights and compiling do not listen.
const PATIENCE: Duration = Duration::from_millis(600);

/// Whether Ctrl-C was pressed, and files that are begun.
#[derive(Debug, Default)]
pub(super) struct Interrupt {
    cancel: Arc<AtomicBool>,
    /// Where they lie until they are complete. Locked while any is created or put into its place.
    parts: Arc<Mutex<Vec<PathBuf>>>,
}

impl Interrupt {
    /// From now on Ctrl-C sets [`Self::cancel`], and ends the process a little later if that has not happened by itself.
    pub(super) fn install() -> Self {
        let interrupt = Self::default();
        let (cancel, parts) = (Arc::clone(&interrupt.cancel), Arc::clone(&interrupt.parts));
        let handler = move || {
            cancel.store(true, Ordering::Relaxed);
            std::thread::sleep(PATIENCE);
            // Waits for files that are being put into their place, and keeps others from being begun.
            let parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
            for part in parts.iter() {
                // Most are gone by now.
                drop(std::fs::remove_file(part));
            }
            complain("interrupted");
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

    /// Begins a file that is to replace `path`, or go to stdout, and goes away if that never happens.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::Io`].
    pub(super) fn begin(&self, path: &Path) -> Result<PartFile> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        self.check()?;
        let file = if stdio::is_meant(path) { PartFile::stdout()? } else { PartFile::create(path)? };
        parts.extend(file.part().map(Path::to_owned));
        Ok(file)
    }

    /// Puts all of `files` into their places, or after Ctrl-C none.
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

    /// Writes the whole of each file, or after Ctrl-C none.
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

    fn place(&self, file: PartFile) -> Result<()> {
        self.write(vec![file])
    }
}
