//! Cache of the kernels that were measured to be fastest on this machine's devices: a file in the
//! user's cache folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wgvae::tuning::Tuning;
use wgvae::{Error, Gpu, Result};
use wgvae_media::part_file::write_atomically;

use super::stderr::{note, say};

/// Measured kernels by [`Gpu::tuning_key`], and the path of their file.
#[derive(Debug)]
pub(super) struct Tuned {
    path: PathBuf,
    known: BTreeMap<String, Tuning>,
}

impl Tuned {
    /// Reads the file. A file that is damaged, or of another version, counts as empty: the next
    /// measurement replaces it.
    ///
    /// # Errors
    /// [`Error::Io`] if there is no cache folder, or the file cannot be read.
    pub(super) fn read() -> Result<Self> {
        let folder = dirs::cache_dir().ok_or_else(|| Error::Io {
            path: "the cache folder of this user".to_owned(),
            source: std::io::Error::new(std::io::ErrorKind::NotFound, "there is none: set XDG_CACHE_HOME or HOME"),
        })?;
        let path = folder.join("wgvae").join("kernels.json");
        let known = match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).unwrap_or_else(|error| {
                note(
                    &path,
                    &format!("`wgvae tune` did not write this file; the next measurement replaces it: {error}"),
                );
                BTreeMap::new()
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(source) => return Err(Error::Io { path: path.display().to_string(), source }),
        };
        Ok(Self { path, known })
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds the result for `gpu` and rewrites the file.
    pub(super) fn keep(&mut self, gpu: &Gpu, tuning: Tuning) -> Result<()> {
        self.known.insert(gpu.tuning_key(), tuning);
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|source| Error::Io { path: folder.display().to_string(), source })?;
        }
        write_atomically(&self.path, super::to_json(&serde_json::json!(self.known)).as_bytes())
    }
}

/// Returns `gpu` with the kernels that `wgvae tune` measured on it, if it did. An error here only
/// costs speed, so it is printed as a note.
pub(super) fn tuned(gpu: Gpu) -> Gpu {
    let found = Tuned::read().and_then(|tuned| match tuned.known.get(&gpu.tuning_key()) {
        Some(tuning) => gpu.clone().with_kernels(tuning.kernels),
        None => Ok(gpu.clone()),
    });
    found.unwrap_or_else(|error| {
        say(&format!("note: using the kernels that rules choose, as measured ones cannot be had: {error}"));
        gpu
    })
}
