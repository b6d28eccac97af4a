//! The name of a model on the hub: `hf:owner/name[/folder or file][@revision]`.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// Start of every such name.
const PREFIX: &str = "hf:";

/// A model on the hub: a repository, a folder or a file in it, and a branch, tag or commit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HubName {
    /// `owner/name`.
    id: String,
    /// Folder or file in the repository. Empty for the repository itself.
    place: String,
    pub(super) revision: String,
}

impl HubName {
    /// True if `text` looks like a hub name.
    pub fn is_meant(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// Returns `owner/name`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the folder or file in the repository. Empty for the repository itself.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Returns the two halves of `owner/name`.
    pub(super) fn owner_and_model(&self) -> (&str, &str) {
        self.id.split_once('/').unwrap_or((&self.id, ""))
    }

    /// True if it names a file.
    pub(super) fn is_file(&self) -> bool {
        self.place.ends_with(".safetensors")
    }

    /// Returns the name of a file in the repository, for messages.
    pub(super) fn file(&self, file: &str) -> String {
        format!("{PREFIX}{}/{file}", self.id)
    }

    /// Returns the path to open among `files`: the named file, or the folder that holds the files.
    pub(super) fn opened<'a>(&self, mut files: impl Iterator<Item = &'a str>) -> String {
        if self.is_file() {
            return self.place.clone();
        }
        let first = files.next().unwrap_or_default();
        first.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned())
    }
}

impl FromStr for HubName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::input(
                "model",
                "hf:owner/name, perhaps with a folder or a .safetensors file and @revision, such as hf:stabilityai/sdxl-vae or hf:owner/name/vae@main",
                format!("\"{text}\""),
            )
        };
        let name = text.strip_prefix(PREFIX).ok_or_else(wrong)?;
        let (path, revision) = name.split_once('@').unwrap_or((name, "main"));
        let mut parts = path.trim_end_matches('/').splitn(3, '/');
        let (owner, model, place) = (parts.next(), parts.next(), parts.next().unwrap_or_default());
        let (Some(owner), Some(model)) = (owner, model) else { return Err(wrong()) };
        // No part may lead out of the cache's folder.
        let is_plain = |part: &str| {
            let plain = |letter: char| letter.is_alphanumeric() || "._- +()".contains(letter);
            !part.is_empty() && !part.starts_with('.') && part.chars().all(plain)
        };
        let all_plain = |path: &str| path.split('/').all(is_plain);
        if !is_plain(owner) || !is_plain(model) || !all_plain(revision) || !(place.is_empty() || all_plain(place)) {
            return Err(wrong());
        }
        Ok(Self { id: format!("{owner}/{model}"), place: place.to_owned(), revision: revision.to_owned() })
    }
}

impl fmt::Display for HubName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, place, revision } = self;
        write!(f, "{PREFIX}{id}{}{place}", if place.is_empty() { "" } else { "/" })?;
        if revision == "main" { Ok(()) } else { write!(f, "@{revision}") }
    }
}
