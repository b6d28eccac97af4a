//! Cache of the kernels that were measured to be fastest on this machine's devices: a file in the
//! user's cache folder.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;

use wgvae::tuning::Tuning;
use wgvae::{Error, Gpu, Result};
use wgvae_media::part_file::write_atomically;

use super::stderr::{note, say};

/// Measured kernels by [`Gpu::tuning_key`], and the path of their file.
#[derive(Debug)]
pub(super) struct Tuned {
    pub(super) path: PathBuf,
    known: BTreeMap<String, Tuning>,
}

impl Tuned {
    /// Reads the file. A file that is damaged, or of another version, counts as empty: the next
    /// measurement replaces it.
    ///
    /// # Errors
    /// [`Error::Io`] if there is no cache folder, or the file cannot be read.
    pub(super) fn read() -> Result<Self> {
        let none = || std::io::Error::new(ErrorKind::NotFound, "there is none: set XDG_CACHE_HOME or HOME");
        let folder = dirs::cache_dir().ok_or_else(|| Error::io("the cache folder of this user", none()))?;
        let path = folder.join("wgvae").join("kernels.json");
        let known = match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).unwrap_or_else(|error| {
                note(
                    &path,
                    &format!("`wgvae tune` did not write this file; the next measurement replaces it: {error}"),
                );
                BTreeMap::new()
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => BTreeMap::new(),
            Err(source) => return Err(Error::io(path.display(), source)),
        };
        Ok(Self { path, known })
    }

    /// Adds the result for `gpu` and rewrites the file.
    pub(super) fn keep(&mut self, gpu: &Gpu, tuning: Tuning) -> Result<()> {
        // Another process may have added its result since.
        let now = std::fs::read_to_string(&self.path).ok().and_then(|text| serde_json::from_str(&text).ok());
        self.known = now.unwrap_or_default();
        self.known.insert(gpu.tuning_key(), tuning);
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(|source| Error::io(folder.display(), source))?;
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
