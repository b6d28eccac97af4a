//! The files of a repository, from the hub or from the cache, and the files that a model needs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::cache::Cache;
use super::hash::{Commit, Digest};
use super::name::HubName;
use crate::error::{Error, Result};
use crate::io::shard_index::is_plain;
use crate::io::{Variant, weight_files};
use crate::tensor::Bytes;

/// The files of a commit.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) commit: Commit,
    /// Files by path.
    pub(super) files: BTreeMap<String, Listed>,
}

/// The known facts about a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Listed {
    pub(super) bytes: Option<Bytes>,
    pub(super) digest: Option<Digest>,
}

/// The parsed part of the hub's answer.
#[derive(Deserialize)]
struct Answer {
    sha: Option<String>,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    /// Git blob id. For a large file, the id of its LFS pointer.
    blob_id: Option<String>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    sha256: Option<String>,
}

impl Listing {
    /// Parses the hub's `answer` about `name`. Skips files whose paths lead elsewhere or have
    /// control characters.
    ///
    /// # Errors
    /// [`Error::Format`] for an answer that is not a listing, lacks a commit, or has malformed
    /// hashes.
    pub(super) fn read(name: &HubName, answer: &[u8]) -> Result<Self> {
        let wrong = |problem: String| Error::format(name, format!("the hub's listing: {problem}"));
        let answer: Answer = serde_json::from_slice(answer).map_err(|error| wrong(error.to_string()))?;
        let commit = answer.sha.as_deref().and_then(Commit::parse).ok_or_else(|| {
            let found = answer.sha.as_ref().map_or("none".to_owned(), |sha| format!("{sha:?}"));
            wrong(format!("expected a commit ({}) as \"sha\", found {found}", Commit::EXPECTED))
        })?;
        let plain = answer.siblings.into_iter().filter(|sibling| sibling.rfilename.split('/').all(is_plain));
        let files = plain.map(|sibling| {
            let digest = sibling.digest().map_err(|found| {
                wrong(format!("expected the hash of {} in hexadecimal digits, found {found:?}", sibling.rfilename))
            })?;
            Ok((sibling.rfilename, Listed { bytes: sibling.size.map(Bytes), digest }))
        });
        Ok(Self { commit, files: files.collect::<Result<_>>()? })
    }

    /// Lists the files that the cache has of `name`. Returns `None` if there are none.
    ///
    /// # Errors
    /// See [`Cache::commit_of`].
    pub(super) fn kept(cache: &Cache, name: &HubName) -> Result<Option<Self>> {
        let Some(commit) = cache.commit_of(&name.revision)? else { return Ok(None) };
        let mut files = BTreeMap::new();
        collect(&cache.snapshot(&commit), "", &mut files);
        Ok((!files.is_empty()).then_some(Self { commit, files }))
    }

    /// Lists the files of the model `name`: config.json, if there is one, and the weights or their
    /// index.
    ///
    /// # Errors
    /// [`Error::Format`] if the named file or folder, or usable weights, do not exist.
    pub(super) fn wanted(&self, name: &HubName, variant: Variant) -> Result<Vec<String>> {
        if name.is_file() {
            let file = name.place().to_owned();
            if !self.files.contains_key(&file) {
                return Err(self.missing(name));
            }
            let config =
                file.rsplit_once('/').map_or("config.json".to_owned(), |(folder, _)| format!("{folder}/config.json"));
            return Ok(self.existing(config).into_iter().chain([file]).collect());
        }
        let mut folder = name.place().to_owned();
        if !folder.is_empty() && self.names_in(&folder).is_empty() {
            return Err(self.missing(name));
        }
        let inside = |file: &str| if folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") };
        let is_pipeline = self.files.contains_key(&inside("model_index.json"));
        if is_pipeline
            || (!self.files.contains_key(&inside("config.json")) && !self.names_in(&inside("vae")).is_empty())
        {
            folder = inside("vae");
        }
        let inside = |file: &str| if folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") };
        let shown = PathBuf::from(name.file(&folder));
        let weights = weight_files(&shown, self.names_in(&folder), variant)?;
        let config = self.existing(inside("config.json"));
        Ok(config.into_iter().chain(weights.iter().map(|file| inside(file))).collect())
    }

    /// True if this listing of the cache has all files of the model `name`, and the hub's listing
    /// of the same commit would not lead to other weights: they have the name that is chosen before
    /// any other, or are asked for by their name, and config.json is there, too.
    pub(super) fn is_certain(&self, name: &HubName, variant: Variant) -> bool {
        let Ok(wanted) = self.wanted(name, variant) else { return false };
        let is_first = |file: &String| {
            let file = file.rsplit('/').next().unwrap_or_default();
            file == "diffusion_pytorch_model.safetensors" || name.is_file()
        };
        let [config, weights] = wanted.as_slice() else { return false };
        config.ends_with("config.json") && is_first(weights) && variant == Variant::Default
    }

    fn existing(&self, file: String) -> Option<String> {
        self.files.contains_key(&file).then_some(file)
    }

    /// Lists the names of the files directly in `folder`.
    fn names_in(&self, folder: &str) -> Vec<String> {
        let inside = self.files.keys().filter_map(|path| match folder {
            "" => Some(path.as_str()),
            folder => path.strip_prefix(folder)?.strip_prefix('/'),
        });
        inside.filter(|name| !name.contains('/')).map(str::to_owned).collect()
    }

    fn missing(&self, name: &HubName) -> Error {
        Error::format(name, format!("no such file or folder among the {} files of the repository", self.files.len()))
    }
}

impl Sibling {
    /// Returns the hash of the content if it is listed. The error is the listed text if it is no
    /// hash.
    fn digest(&self) -> std::result::Result<Option<Digest>, String> {
        let (listed, parse): (_, fn(&str) -> Option<Digest>) = match &self.lfs {
            Some(lfs) => (&lfs.sha256, Digest::sha256),
            None => (&self.blob_id, Digest::git_blob),
        };
        listed.as_ref().map(|text| parse(text).ok_or_else(|| text.clone())).transpose()
    }
}

/// Adds the files in `folder` and its subfolders to `files`. `prefix` is the start of their paths.
fn collect(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Listed>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        match std::fs::metadata(entry.path()) {
            Ok(found) if found.is_dir() => collect(&entry.path(), &format!("{name}/"), files),
            Ok(found) => drop(files.insert(name, Listed { bytes: Some(Bytes(found.len())), digest: None })),
            // A dangling link.
            Err(_) => {}
        }
    }
}
