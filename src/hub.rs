//! Models by name from the Hugging Face Hub: which of a repository's files a decode or an encode wants, and these downloaded into the cache that
//! Python's `huggingface_hub` uses, too. What is there once is not asked for again. Native only.

mod listing;
mod name;

use std::path::{Path, PathBuf};

use hf_hub::api::sync::{Api, ApiBuilder, ApiError};
use hf_hub::{Cache, Repo, RepoType};

use self::listing::Listing;
pub use self::name::HubName;
use crate::error::{Error, Result};
use crate::io::{Variant, shard_index};
use crate::tensor::Bytes;

/// Tries of a file that breaks off.
const RETRIES: usize = 3;

/// How the hub is asked. The defaults are those of `huggingface_hub`, but for its environment variables: see [`Self::from_env`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HubOptions {
    /// Folder of the cache. Without it `hub` in the folder of Hugging Face, `~/.cache/huggingface`.
    pub cache: Option<PathBuf>,
    /// For repositories that want one. Without it the one that `hf auth login` has left.
    pub token: Option<String>,
    /// Address of the hub.
    pub endpoint: Option<String>,
    /// Ask nobody, and take what the cache has.
    pub offline: bool,
}

impl HubOptions {
    /// What `huggingface_hub` reads of the environment: `HF_HUB_CACHE` or `HF_HOME`, `HF_TOKEN`, `HF_ENDPOINT`, `HF_HUB_OFFLINE`.
    #[expect(clippy::disallowed_methods, reason = "the variables are those of the hub's other tools")]
    pub fn from_env() -> Self {
        let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let home = || read("HF_HOME").map(|home| PathBuf::from(home).join("hub"));
        let is_on = |value: String| ["1", "ON", "YES", "TRUE"].contains(&value.to_uppercase().as_str());
        Self {
            cache: read("HF_HUB_CACHE").map(PathBuf::from).or_else(home),
            token: read("HF_TOKEN").or_else(|| read("HUGGING_FACE_HUB_TOKEN")),
            endpoint: read("HF_ENDPOINT"),
            offline: read("HF_HUB_OFFLINE").is_some_and(is_on),
        }
    }

    /// Folder of the cache, which need not be there yet.
    ///
    /// # Errors
    /// [`Error::Input`] where none is named and there is no home.
    pub fn cache_folder(&self) -> Result<PathBuf> {
        cache(self).map(|cache| cache.path().clone())
    }

    /// Whether there is a token to be sent.
    pub fn has_token(&self) -> bool {
        self.token.is_some() || cache(self).is_ok_and(|cache| cache.token().is_some())
    }
}

/// A file of a repository that a model consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubFile {
    /// Its path in the repository.
    pub name: String,
    /// Its size; unknown where only the cache was asked and does not have it.
    pub bytes: Option<Bytes>,
    /// Whether the cache has it.
    pub kept: bool,
}

/// How far a download is.
#[derive(Debug, Clone, Copy)]
pub struct HubProgress<'a> {
    /// The file's path in the repository.
    pub name: &'a str,
    /// Of this file.
    pub done: Bytes,
    /// Of this file.
    pub total: Bytes,
}

/// A model on the hub, and what of it is needed.
#[derive(Debug)]
pub struct HubModel {
    name: HubName,
    /// None where nobody is asked.
    api: Option<Api>,
    cache: Cache,
    commit: String,
    files: Vec<HubFile>,
    /// Why the hub was not asked although it should have been.
    unreachable: Option<String>,
}

impl HubModel {
    /// Finds out what files of `name` are the model's, and which of them the cache has. Weights are not downloaded; of a model in shards, the index is.
    ///
    /// Without a connection what is in the cache will do.
    ///
    /// # Errors
    /// [`Error::Io`] for what the hub answers, or that it does not; [`Error::Format`] where no file is a model's; [`Error::Input`] for a cache that
    /// cannot be found.
    pub fn find(name: &HubName, variant: Variant, options: &HubOptions) -> Result<Self> {
        let cache = cache(options)?;
        let (listing, api, unreachable) = match api(&cache, options)? {
            Some(api) => match Listing::asked(&api.repo(name.repo()), name) {
                Ok(listing) => (listing, Some(api), None),
                Err(error) => match Listing::kept(&cache, name) {
                    Some(listing) if is_no_answer(&error) => (listing, None, Some(error.to_string())),
                    _ => return Err(refusal(name, None, &error)),
                },
            },
            None => (Listing::kept(&cache, name).ok_or_else(|| nothing_kept(name))?, None, None),
        };
        let mut model =
            Self { name: name.clone(), api, cache, commit: listing.commit.clone(), files: Vec::new(), unreachable };
        let wanted = listing.wanted(name, variant)?;
        for file in wanted {
            model.add(&listing, &file);
            if file.ends_with(".json") && file.contains(".index") {
                model.add_shards(&listing, &file)?;
            }
        }
        Ok(model)
    }

    /// Its files: config.json, if there is one, and the weights.
    pub fn files(&self) -> &[HubFile] {
        &self.files
    }

    /// The commit that they are of.
    pub fn commit(&self) -> &str {
        &self.commit
    }

    /// Why the hub was not reached, where the cache stands in for it.
    pub fn unreachable(&self) -> Option<&str> {
        self.unreachable.as_deref()
    }

    /// Downloads what the cache lacks. What the model is opened at: a folder or a file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn download(&mut self, progress: &mut dyn FnMut(HubProgress<'_>)) -> Result<PathBuf> {
        for index in 0..self.files.len() {
            let HubFile { name, bytes, kept } = self.files[index].clone();
            if !kept {
                self.fetch(&name, bytes, progress)?;
                self.files[index].kept = true;
            }
        }
        let opened = self.name.opened(self.files.iter().map(|file| file.name.as_str()));
        Ok(self.folder().join(opened))
    }

    fn add(&mut self, listing: &Listing, name: &str) {
        let found = std::fs::metadata(self.folder().join(name)).ok().map(|file| Bytes(file.len()));
        let listed = listing.files.get(name).copied().flatten();
        let kept = found.is_some() && (listed.is_none() || listed == found);
        self.files.push(HubFile { name: name.to_owned(), bytes: listed.or(found), kept });
    }

    /// The shards that the index `index` lists, which has to be read for it.
    fn add_shards(&mut self, listing: &Listing, index: &str) -> Result<()> {
        let path = self.folder().join(index);
        if let Some(position) = self.files.iter().position(|file| file.name == index && !file.kept) {
            self.fetch(index, self.files[position].bytes, &mut |_| {})?;
            self.files[position].kept = true;
        }
        let text =
            std::fs::read_to_string(&path).map_err(|source| Error::Io { path: path.display().to_string(), source })?;
        let folder = index.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        for shard in shard_index::shard_names(&self.name.file(index), &text)? {
            self.add(listing, &format!("{folder}{shard}"));
        }
        Ok(())
    }

    /// Where the cache has the commit's files.
    fn folder(&self) -> PathBuf {
        self.cache.repo(self.name.repo()).pointer_path(&self.commit)
    }

    fn fetch(&self, name: &str, bytes: Option<Bytes>, progress: &mut dyn FnMut(HubProgress<'_>)) -> Result<()> {
        let Some(api) = &self.api else {
            let source = std::io::Error::other("not in the cache, and the hub is not asked");
            return Err(Error::Io { path: self.name.file(name), source });
        };
        let path = self.folder().join(name);
        discard(&path)?;
        let shown = Shown { name, done: 0, total: bytes.map_or(0, |bytes| bytes.0), progress };
        // Of the commit that was listed: a branch may have moved on since.
        let repo = api.repo(Repo::with_revision(self.name.id().to_owned(), RepoType::Model, self.commit.clone()));
        repo.download_with_progress(name, shown).map_err(|error| refusal(&self.name, Some(name), &error))?;
        let found = std::fs::metadata(&path).map_or(0, |file| file.len());
        if let Some(expected) = bytes.map(|bytes| bytes.0).filter(|expected| *expected != found) {
            discard(&path)?;
            let source = std::io::Error::other(format!("expected {expected} bytes as the hub lists it, found {found}"));
            return Err(Error::Io { path: self.name.file(name), source });
        }
        // By its branch it is found without the hub, too.
        let kept = self.cache.repo(self.name.repo()).create_ref(&self.commit);
        kept.map_err(|source| Error::Io { path: self.cache.path().display().to_string(), source })
    }
}

/// Tells how far a download is.
struct Shown<'a> {
    name: &'a str,
    done: u64,
    total: u64,
    progress: &'a mut dyn FnMut(HubProgress<'_>),
}

impl hf_hub::api::Progress for Shown<'_> {
    fn init(&mut self, size: usize, _name: &str) {
        (self.done, self.total) = (0, size as u64);
    }

    fn update(&mut self, size: usize) {
        self.done += size as u64;
        (self.progress)(HubProgress { name: self.name, done: Bytes(self.done), total: Bytes(self.total) });
    }

    fn finish(&mut self) {}
}

/// Removes what the cache has at `path`, and what that links to: hf-hub leaves a link that is there as it is, and fails at one to nothing.
fn discard(path: &Path) -> Result<()> {
    let linked = std::fs::read_link(path).ok().filter(|blob| blob.parent().is_some_and(|it| it.ends_with("blobs")));
    let blob = linked.and_then(|blob| Some(path.parent()?.join(blob)));
    for file in blob.iter().map(PathBuf::as_path).chain([path]) {
        match std::fs::remove_file(file) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::Io { path: file.display().to_string(), source });
            }
            _ => {}
        }
    }
    Ok(())
}

fn cache(options: &HubOptions) -> Result<Cache> {
    if let Some(folder) = &options.cache {
        return Ok(Cache::new(folder.clone()));
    }
    // Its default panics where there is no home.
    if std::env::home_dir().is_none() {
        return Err(Error::Input {
            what: "cache of the hub".to_owned(),
            expected: "a home folder, or HF_HOME".to_owned(),
            found: "neither".to_owned(),
        });
    }
    Ok(Cache::default())
}

/// None where nobody is to be asked.
fn api(cache: &Cache, options: &HubOptions) -> Result<Option<Api>> {
    if options.offline {
        return Ok(None);
    }
    let mut builder = ApiBuilder::from_cache(cache.clone())
        .with_progress(false)
        .with_retries(RETRIES)
        .with_user_agent("wgvae", env!("CARGO_PKG_VERSION"));
    if let Some(token) = &options.token {
        builder = builder.with_token(Some(token.clone()));
    }
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_endpoint(endpoint.trim_end_matches('/').to_owned());
    }
    let built = builder.build();
    built.map(Some).map_err(|error| Error::Io { path: "the hub".to_owned(), source: std::io::Error::other(error) })
}

/// Whether `error` is that nobody answered.
fn is_no_answer(error: &ApiError) -> bool {
    match error {
        ApiError::RequestError(error) => status(error).is_none(),
        ApiError::TooManyRetries(error) => is_no_answer(error),
        _ => false,
    }
}

/// The status that a server answered with.
fn status(error: &ureq::Error) -> Option<u16> {
    match error {
        ureq::Error::StatusCode(status) => Some(*status),
        _ => None,
    }
}

/// `error`, met with file `file` or with the repository, in words that help.
fn refusal(name: &HubName, file: Option<&str>, error: &ApiError) -> Error {
    let answered = match error {
        ApiError::RequestError(error) => status(error),
        ApiError::TooManyRetries(inner) => return refusal(name, file, inner),
        _ => None,
    };
    let why = match answered {
        Some(401) => "the hub wants a token (401): there is no such repository, or it is private or gated. Log in with `hf auth login`, or set HF_TOKEN".to_owned(),
        Some(403) => format!("the hub refuses this token (403): accept the terms on the page of {} with its account", name.id()),
        Some(404) => "the hub has no such repository, revision or file (404)".to_owned(),
        Some(429) => "the hub has been asked too often (429): try again later, or with a token".to_owned(),
        Some(other) => format!("the hub answers with status {other}"),
        None => error.to_string(),
    };
    let path = file.map_or_else(|| name.to_string(), |file| name.file(file));
    Error::Io { path, source: std::io::Error::other(why) }
}

fn nothing_kept(name: &HubName) -> Error {
    let source = std::io::Error::other("not in the cache, and the hub is not to be asked (HF_HUB_OFFLINE)");
    Error::Io { path: name.to_string(), source }
}
