//! The folder that Hugging Face's tools keep downloads in, laid out as `huggingface_hub` lays it
//! out, so that all of them share it. Contents are in `blobs/`, by their hash; `snapshots/COMMIT/`
//! has links to them under the files' names; `refs/` notes the commit of a branch or tag.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::hash::Commit;
use crate::error::{Error, Result};

/// Time between two looks at a lock that another process has.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The part of the cache that one repository has.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    /// `models--OWNER--NAME`.
    folder: PathBuf,
    /// `.locks/models--OWNER--NAME`.
    locks: PathBuf,
}

impl Cache {
    /// The part of repository `id`, `owner/name`, in the cache at `root`.
    pub(super) fn new(root: &Path, id: &str) -> Self {
        let folder = format!("models--{}", id.replace('/', "--"));
        Self { locks: root.join(".locks").join(&folder), folder: root.join(&folder) }
    }

    /// Folder of a commit's files.
    pub(super) fn snapshot(&self, commit: &Commit) -> PathBuf {
        self.folder.join("snapshots").join(commit.as_str())
    }

    /// File with the content that hashes to `hash`.
    pub(super) fn blob(&self, hash: &str) -> PathBuf {
        self.folder.join("blobs").join(hash)
    }

    /// File that the content which hashes to `hash` is downloaded to.
    pub(super) fn part(&self, hash: &str) -> PathBuf {
        self.folder.join("blobs").join(format!("{hash}.incomplete"))
    }

    /// Returns the commit that `revision` stood for when it was downloaded last. A commit stands
    /// for itself.
    ///
    /// # Errors
    /// [`Error::Format`] if the cache notes something other than a commit.
    pub(super) fn commit_of(&self, revision: &str) -> Result<Option<Commit>> {
        let path = self.reference(revision);
        let Ok(text) = std::fs::read_to_string(&path) else { return Ok(Commit::parse(revision)) };
        let commit = Commit::parse(text.trim()).ok_or_else(|| Error::Format {
            file: path.display().to_string(),
            problem: format!("expected a commit ({}), found {:?}", Commit::EXPECTED, text.trim()),
        })?;
        Ok(Some(commit))
    }

    /// Notes that `revision` stands for `commit`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn note(&self, revision: &str, commit: &Commit) -> Result<()> {
        let path = self.reference(revision);
        if revision == commit.as_str() || std::fs::read(&path).is_ok_and(|text| text == commit.as_str().as_bytes()) {
            return Ok(());
        }
        let lock = self.open_lock("refs")?;
        lock.lock().map_err(|source| io_error(&path, source))?;
        let new = self.reference(&format!("{revision}.incomplete"));
        create_folder_of(&new)?;
        std::fs::write(&new, commit.as_str())
            .and_then(|()| std::fs::rename(&new, &path))
            .map_err(|source| io_error(&path, source))
    }

    /// Waits until no other process downloads the content that hashes to `hash`, and keeps others
    /// from it until the returned file is closed, which the end of a process does, too. `file` is
    /// the name for the notice.
    ///
    /// # Errors
    /// [`Error::Io`], also on a file system without locks.
    pub(super) fn lock(&self, hash: &str, file: &str) -> Result<File> {
        let lock = self.open_lock(hash)?;
        let mut is_said = false;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::Error(source)) => return Err(io_error(&self.lock_file(hash), source)),
                Err(TryLockError::WouldBlock) => {
                    if !std::mem::replace(&mut is_said, true) {
                        log::warn!("{file}: waiting for another process that is downloading it");
                    }
                    std::thread::sleep(LOOK_AGAIN);
                }
            }
        }
    }

    /// Makes what was downloaded to `part` the blob `hash`, and `file` of `commit` a link to it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn keep(&self, part: &Path, hash: &str, commit: &Commit, file: &str) -> Result<()> {
        let blob = self.blob(hash);
        std::fs::rename(part, &blob).map_err(|source| io_error(&blob, source))?;
        self.link_or(hash, commit, file, |pointer| std::fs::rename(&blob, pointer))
    }

    /// Makes `file` of `commit` a link to the blob `hash`, which is there already.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn link(&self, hash: &str, commit: &Commit, file: &str) -> Result<()> {
        self.link_or(hash, commit, file, |pointer| std::fs::copy(self.blob(hash), pointer).map(drop))
    }

    /// Links, or does as `otherwise` says where there are no links: on Windows they need a
    /// privilege.
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
        // Out of the file's folders, of the commit and of `snapshots`.
        let up = "../".repeat(file.matches('/').count() + 2);
        let target = PathBuf::from(format!("{up}blobs/{hash}"));
        symlink(&target, &pointer).or_else(|_no_links| otherwise(&pointer)).map_err(|source| io_error(&pointer, source))
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
        opened.map_err(|source| io_error(&path, source))
    }
}

/// Creates the folder that `path` is to be in.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn create_folder_of(path: &Path) -> Result<()> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder).map_err(|source| io_error(folder, source))
}

/// Removes the file or link at `path`, if there is one.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(io_error(path, source)),
        _ => Ok(()),
    }
}

/// The error of the operating system about `path`.
pub(super) fn io_error(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.display().to_string(), source }
}

#[cfg(unix)]
fn symlink(target: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(windows)]
fn symlink(target: &Path, link: &Path) -> std::io::Result<()> {
    // Windows wants its own separators in links.
    std::os::windows::fs::symlink_file(target.components().collect::<PathBuf>(), link)
}

#[cfg(not(any(unix, windows)))]
fn symlink(_: &Path, _: &Path) -> std::io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}
