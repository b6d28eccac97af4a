//! How the files of a clip get into their place.

use std::path::Path;

use super::super::part_file::PartFile;
use super::error::input;
use crate::error::{Error, Result};

/// Begins files, and puts them into their place when they are complete. Who wants to clean up after Ctrl-C does it here.
pub trait Files {
    /// Begins what is to replace `path`.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Cancelled`].
    fn create(&self, path: &Path) -> Result<PartFile>;

    /// Puts `file` into its place.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Cancelled`].
    fn place(&self, file: PartFile) -> Result<()>;
}

/// Begins and places files, no more.
#[derive(Debug, Clone, Copy, Default)]
pub struct Direct;

impl Files for Direct {
    fn create(&self, path: &Path) -> Result<PartFile> {
        PartFile::create(path)
    }

    fn place(&self, file: PartFile) -> Result<()> {
        file.persist()
    }
}

/// Begins a file that is not written from front to back, which a pipe or a device cannot be.
pub(super) fn create_seekable(files: &dyn Files, path: &Path) -> Result<PartFile> {
    let part = files.create(path)?;
    if part.part().is_some() {
        return Ok(part);
    }
    Err(unseekable(path))
}

fn unseekable(path: &Path) -> Error {
    input(format!("output {}", path.display()), "a file, which can be written in any order", "a pipe or a device")
}
