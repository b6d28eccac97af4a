//! How the files of a clip get into their place.

use std::path::Path;

use super::super::part_file::PartFile;
use super::error::input;
use crate::error::{Error, Result};

/// Begins files, and puts them into their place when they are complete. Whoever cleans up after a
/// signal does it here.
pub trait Files {
    /// Begins what is to replace `path`.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Cancelled`].
    fn create(&self, path: &Path) -> Result<PartFile>;

    /// Begins the file that replaces `path`, under a name that another program can open.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Cancelled`].
    fn create_named(&self, path: &Path) -> Result<PartFile>;

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

    fn create_named(&self, path: &Path) -> Result<PartFile> {
        PartFile::create_named(path)
    }

    fn place(&self, file: PartFile) -> Result<()> {
        file.persist()
    }
}

/// Returns `part` if it may be written in any order, unlike a pipe or a device.
pub(super) fn seekable(part: PartFile, path: &Path) -> Result<PartFile> {
    if part.is_seekable() { Ok(part) } else { Err(unseekable(path)) }
}

fn unseekable(path: &Path) -> Error {
    input(format!("output {}", path.display()), "a file, which can be written in any order", "a pipe or a device")
}
