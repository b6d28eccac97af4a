//! Creation and placement of the files of a clip.

use std::path::Path;

use wgvae::{Error, Result};

use super::super::part_file::PartFile;

/// Creates files, and moves them into place when they are complete. A program that cleans up after
/// a signal implements this trait.
pub trait Files: std::fmt::Debug + Sync {
    /// Begins the file that will replace `path`.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Cancelled`].
    fn create(&self, path: &Path) -> Result<PartFile>;

    /// Begins the file that will replace `path`, under a name that another program can open.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Cancelled`].
    fn create_named(&self, path: &Path) -> Result<PartFile>;

    /// Moves `file` into its place.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Cancelled`].
    fn place(&self, file: PartFile) -> Result<()>;
}

/// The plain implementation of [`Files`], without any cleaning up.
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

/// Returns `part` if it can be written in any order, unlike a pipe or a device.
pub(super) fn seekable(part: PartFile, path: &Path) -> Result<PartFile> {
    if part.is_seekable() { Ok(part) } else { Err(unseekable(path)) }
}

fn unseekable(path: &Path) -> Error {
    Error::input(
        format!("output {}", path.display()),
        "a file, which can be written in any order",
        "a pipe or a device",
    )
}
