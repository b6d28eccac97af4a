//! Files as byte sources. Native only.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::source::{ByteSource, ReadFuture, check_range};
use crate::error::{Error, Result};

/// A file, opened once and read in pieces. It must stay as it was when it was opened.
#[derive(Debug)]
pub struct FileSource {
    name: String,
    len: u64,
    /// Time of the last change, where the system tells it.
    changed: Option<SystemTime>,
    // The lock makes seek and read one step, because they share the cursor of the file.
    file: Mutex<File>,
}

impl FileSource {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// [`Error::Io`], also for a folder; [`Error::Input`] for a pipe, which cannot be read at any
    /// position.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let name = path.as_ref().display().to_string();
        let open = || {
            // Opening a pipe waits until something writes to it.
            let metadata = std::fs::metadata(path.as_ref())?;
            if metadata.is_dir() {
                return Err(std::io::ErrorKind::IsADirectory.into());
            }
            if !metadata.is_file() {
                return Ok(None);
            }
            let file = File::open(path.as_ref())?;
            Ok(Some((file.metadata()?, file)))
        };
        match open() {
            Ok(Some((metadata, file))) => {
                let (len, changed) = (metadata.len(), metadata.modified().ok());
                Ok(Self { name, len, changed, file: Mutex::new(file) })
            }
            Ok(None) => Err(Error::input(name, "a file, which can be read at any position", "a pipe or a device")),
            Err(source) => Err(Error::io(name, source)),
        }
    }

    /// Reads bytes, and returns true with them if the file has changed since it was opened.
    fn read_range(&self, range: &Range<usize>) -> std::io::Result<(Vec<u8>, bool)> {
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(range.len())
            .map_err(|error| std::io::Error::new(std::io::ErrorKind::OutOfMemory, error))?;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(range.start as u64))?;
        file.by_ref().take(range.len() as u64).read_to_end(&mut bytes)?;
        let has_changed = file.metadata()?.modified().ok() != self.changed;
        Ok((bytes, has_changed))
    }
}

impl ByteSource for FileSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, len: u64) -> ReadFuture<'_> {
        let bytes = check_range(self, offset, len).and_then(|range| {
            let (bytes, has_changed) = self.read_range(&range).map_err(|source| Error::io(&self.name, source))?;
            if bytes.len() < range.len() {
                return Err(Error::Format {
                    file: self.name.clone(),
                    problem: format!(
                        "the file shrank while it was read: expected bytes {}..{} of {}, found an end at {}",
                        range.start,
                        range.end,
                        self.len,
                        range.start + bytes.len()
                    ),
                });
            }
            if has_changed {
                return Err(Error::format(&self.name, "the file has changed since it was opened: open it again"));
            }
            Ok(bytes)
        });
        Box::pin(std::future::ready(bytes))
    }
}
