//! The download folder of Hugging Face's tools, in the layout of `huggingface_hub`, so that all of
//! them share it. `blobs/` has contents by hash. `snapshots/COMMIT/` has links to them under the
//! files' names. `refs/` has the commit of each branch or tag.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::hash::Commit;
use crate::error::{Error, Result};

/// Time between two tries to take a lock that another process holds.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The part of the cache for one repository.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    /// `models--OWNER--NAME`.
    folder: PathBuf,
    /// `.locks/models--OWNER--NAME`.
    locks: PathBuf,
}

impl Cache {
    /// Returns the part for repository `id`, `owner/name`, of the cache at `root`.
    pub(super) fn new(root: &Path, id: &str) -> Self {
        let folder = format!("models--{}", id.replace('/', "--"));
        Self { locks: root.join(".locks").join(&folder), folder: root.join(&folder) }
    }

    /// Returns the folder of a commit's files.
    pub(super) fn snapshot(&self, commit: &Commit) -> PathBuf {
        self.folder.join("snapshots").join(commit.as_str())
    }

    /// Returns the path of the content with this `hash`.
    pub(super) fn blob(&self, hash: &str) -> PathBuf {
        self.folder.join("blobs").join(hash)
    }

    /// Returns the path to which the content with this `hash` is downloaded.
    pub(super) fn part(&self, hash: &str) -> PathBuf {
        self.folder.join("blobs").join(format!("{hash}.incomplete"))
    }

    /// Returns the commit that `revision` named at its last download. A commit names itself.
    ///
    /// # Errors
    /// [`Error::Format`] if the cache has something other than a commit there.
    pub(super) fn commit_of(&self, revision: &str) -> Result<Option<Commit>> {
        let path = self.reference(revision);
        let Ok(text) = std::fs::read_to_string(&path) else { return Ok(Commit::parse(revision)) };
        let commit = Commit::parse(text.trim()).ok_or_else(|| {
            Error::format(path.display(), format!("expected a commit ({}), found {:?}", Commit::EXPECTED, text.trim()))
        })?;
        Ok(Some(commit))
    }

    /// Records that `revision` names `commit`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn note(&self, revision: &str, commit: &Commit) -> Result<()> {
        let path = self.reference(revision);
        if revision == commit.as_str() || std::fs::read(&path).is_ok_and(|text| text == commit.as_str().as_bytes()) {
            return Ok(());
        }
        let lock = self.open_lock("refs")?;
        lock.lock().map_err(|source| Error::io(path.display(), source))?;
        let new = self.reference(&format!("{revision}.incomplete"));
        create_folder_of(&new)?;
        std::fs::write(&new, commit.as_str())
            .and_then(|()| std::fs::rename(&new, &path))
            .map_err(|source| Error::io(path.display(), source))
    }

    /// Waits until no other process downloads the content with this `hash`, and locks it. The lock
    /// ends when the returned file is closed, or when the process ends. `file` is the name for the
    /// notice.
    ///
    /// # Errors
    /// [`Error::Io`], also on a file system without locks.
    pub(super) fn lock(&self, hash: &str, file: &str) -> Result<File> {
        let lock = self.open_lock(hash)?;
        let mut is_said = false;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::Error(source)) => return Err(Error::io(self.lock_file(hash).display(), source)),
                Err(TryLockError::WouldBlock) => {
                    if !std::mem::replace(&mut is_said, true) {
                        log::warn!("{file}: waiting for another process that is downloading it");
                    }
                    std::thread::sleep(LOOK_AGAIN);
                }
            }
        }
    }

    /// Moves the download `part` to the blob `hash`, and makes `file` of `commit` a link to it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn keep(&self, part: &Path, hash: &str, commit: &Commit, file: &str) -> Result<()> {
        let blob = self.blob(hash);
        std::fs::rename(part, &blob).map_err(|source| Error::io(blob.display(), source))?;
        self.link_or(hash, commit, file, |pointer| std::fs::rename(&blob, pointer))
    }

    /// Makes `file` of `commit` a link to the existing blob `hash`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn link(&self, hash: &str, commit: &Commit, file: &str) -> Result<()> {
        self.link_or(hash, commit, file, |pointer| std::fs::copy(self.blob(hash), pointer).map(drop))
    }

    /// Creates the link. If links are not available, as on Windows without a privilege, calls
    /// `otherwise`.
    fn link_or(
        &self,
        hash: &str,
        commit: &Commit,
        file: &str,
        otherwise: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> Result<()> {
        let pointer = self.snapshot(commit).join(file);
        create_folder_of(&pointer)?;
        remove(&pointer)?;
        // Go up from the file's folders, the commit and `snapshots`.
        let up = "../".repeat(file.matches('/').count() + 2);
        let target = PathBuf::from(format!("{up}blobs/{hash}"));
        symlink(&target, &pointer)
            .or_else(|_no_links| otherwise(&pointer))
            .map_err(|source| Error::io(pointer.display(), source))
    }

    fn reference(&self, revision: &str) -> PathBuf {
        self.folder.join("refs").join(revision)
    }

    fn lock_file(&self, name: &str) -> PathBuf {
        self.locks.join(format!("{name}.lock"))
    }

    fn open_lock(&self, name: &str) -> Result<File> {
        let path = self.lock_file(name);
        create_folder_of(&path)?;
        let opened = File::options().write(true).create(true).truncate(false).open(&path);
        opened.map_err(|source| Error::io(path.display(), source))
    }
}

/// Creates the folder of `path`.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn create_folder_of(path: &Path) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder).map_err(|source| Error::io(folder.display(), source))
}

/// Removes the file or link at `path`, if there is one.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(Error::io(path.display(), source)),
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn symlink(target: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(windows)]
fn symlink(target: &Path, link: &Path) -> std::io::Result<()> {
    // Links on Windows need its own path separators.
    std::os::windows::fs::symlink_file(target.components().collect::<PathBuf>(), link)
}

#[cfg(not(any(unix, windows)))]
fn symlink(_: &Path, _: &Path) -> std::io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}
