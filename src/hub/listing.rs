//! Which files a repository has, by the hub or by the cache, and which of them a model consists of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hf_hub::Cache;
use hf_hub::api::sync::{ApiError, ApiRepo};
use serde::Deserialize;

use super::HubName;
use crate::error::{Error, Result};
use crate::io::{Variant, weight_files};
use crate::tensor::Bytes;

/// The files of a commit.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) commit: String,
    /// By path; with their size, where that is known.
    pub(super) files: BTreeMap<String, Option<Bytes>>,
}

/// What is read of the hub's answer.
#[derive(Deserialize)]
struct Answer {
    sha: String,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
}

impl Listing {
    /// By the hub.
    pub(super) fn asked(repo: &ApiRepo, name: &HubName) -> std::result::Result<Self, ApiError> {
        let mut response = repo.info_request().query("blobs", "true").call().map_err(Box::new)?;
        let answer: Answer = response.body_mut().read_json().map_err(Box::new)?;
        let is_plain =
            |path: &str| !path.contains('\\') && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
        let inside = answer.siblings.into_iter().filter(|sibling| is_plain(&sibling.rfilename));
        let files = inside.map(|sibling| (sibling.rfilename, sibling.size.map(Bytes))).collect();
        // Part of a path, too.
        let is_commit = !answer.sha.is_empty() && answer.sha.chars().all(|letter| letter.is_ascii_alphanumeric());
        let commit = if is_commit { answer.sha } else { name.revision().to_owned() };
        Ok(Self { commit, files })
    }

    /// By the cache, if that has anything of it.
    pub(super) fn kept(cache: &Cache, name: &HubName) -> Option<Self> {
        let repo = cache.repo(name.repo());
        // Of a branch the cache notes the commit; a commit stands for itself.
        let branch = cache.path().join(name.repo().folder_name()).join("refs").join(name.revision());
        let noted = std::fs::read_to_string(branch).ok();
        let commit = noted.map_or_else(|| name.revision().to_owned(), |commit| commit.trim().to_owned());
        let folder = repo.pointer_path(&commit);
        let mut files = BTreeMap::new();
        collect(&folder, "", &mut files);
        (!files.is_empty()).then_some(Self { commit, files })
    }

    /// The files of the model `name`: config.json, if there is one, and the weights or their index.
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

    fn existing(&self, file: String) -> Option<String> {
        self.files.contains_key(&file).then_some(file)
    }

    /// The names of the files in `folder` itself.
    fn names_in(&self, folder: &str) -> Vec<String> {
        let inside = self.files.keys().filter_map(|path| match folder {
            "" => Some(path.as_str()),
            folder => path.strip_prefix(folder)?.strip_prefix('/'),
        });
        inside.filter(|name| !name.contains('/')).map(str::to_owned).collect()
    }

    fn missing(&self, name: &HubName) -> Error {
        Error::Format {
            file: name.to_string(),
            problem: format!("no such file or folder among the {} files of the repository", self.files.len()),
        }
    }
}

/// The files in `folder` and below, whose paths begin with `prefix`.
fn collect(folder: &Path, prefix: &str, files: &mut BTreeMap<String, Option<Bytes>>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        match std::fs::metadata(entry.path()) {
            Ok(found) if found.is_dir() => collect(&entry.path(), &format!("{name}/"), files),
            Ok(found) => drop(files.insert(name, Some(Bytes(found.len())))),
            // A link to nothing.
            Err(_) => {}
        }
    }
}
