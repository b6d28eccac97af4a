//! Models by name from the Hugging Face Hub: which of a repository's files a decode or an encode
//! wants, and these downloaded into the cache that Python's `huggingface_hub` uses, too. What is
//! there once is not asked for again. Native only.

mod cache;
mod failure;
mod hash;
mod listing;
mod name;
mod options;
mod transfer;

use std::path::{Path, PathBuf};

use self::cache::{Cache, io_error, remove};
use self::hash::{Digest, sha256_of, sha256_of_text};
use self::listing::{Listed, Listing};
pub use self::name::HubName;
pub use self::options::HubOptions;
use self::transfer::{Client, Expected};
use crate::error::{Error, Result};
use crate::io::{Variant, shard_index};
use crate::tensor::Bytes;

/// Largest config.json or index of shards that is downloaded.
const MOST_JSON: Bytes = Bytes(16 << 20);

/// Largest file of weights that is downloaded.
const MOST_WEIGHTS: Bytes = Bytes(64 << 30);

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
    /// Bytes of this file that are there.
    pub done: Bytes,
    /// Size of this file; 0 if the hub does not list it.
    pub total: Bytes,
}

/// A model on the hub, and what of it is needed.
#[derive(Debug)]
pub struct HubModel {
    name: HubName,
    /// `None` if the hub is not asked.
    client: Option<Client>,
    cache: Cache,
    listing: Listing,
    files: Vec<HubFile>,
    /// Why the hub was not asked although it should have been.
    unreachable: Option<String>,
}

impl HubModel {
    /// Finds out what files of `name` are the model's, and which of them the cache has. Weights are
    /// not downloaded; of a model in shards, the index is.
    ///
    /// Without a connection what is in the cache will do. The hub has 10 seconds for the
    /// connection, and 30 for the whole listing, which may have 16 MiB.
    ///
    /// # Errors
    /// [`Error::Io`] for what the hub answers, or that it does not; [`Error::Format`] where no file
    /// is a model's, for a listing that cannot be trusted, and for a file that is too large;
    /// [`Error::Input`] for a cache that cannot be found, and for options that cannot be used.
    pub fn find(name: &HubName, variant: Variant, options: &HubOptions) -> Result<Self> {
        let cache = Cache::new(&options.cache_folder()?, name.id());
        let mut client = if options.offline { None } else { Some(Client::new(options)?) };
        let mut unreachable = None;
        let listing = match client.as_ref().map(|client| client.listing(name)) {
            None => Listing::kept(&cache, name)?.ok_or_else(|| nothing_kept(name))?,
            Some(Ok(answer)) => Listing::read(name, &answer)?,
            Some(Err(failure)) => {
                let kept = if failure.is_no_answer() { Listing::kept(&cache, name)? } else { None };
                let Some(listing) = kept else { return Err(failure.into_error(name, None)) };
                (client, unreachable) = (None, Some(failure.to_string()));
                listing
            }
        };
        let wanted = listing.wanted(name, variant)?;
        let mut model = Self { name: name.clone(), client, cache, listing, files: Vec::new(), unreachable };
        for file in wanted {
            model.add(&file)?;
            if file.ends_with(".json") && file.contains(".index") {
                model.add_shards(&file)?;
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
        self.listing.commit.as_str()
    }

    /// Why the hub was not reached, where the cache stands in for it.
    pub fn unreachable(&self) -> Option<&str> {
        self.unreachable.as_deref()
    }

    /// Downloads what the cache lacks. What the model is opened at: a folder or a file.
    ///
    /// Content is in the cache only once it has the size and the hash that the hub lists. A
    /// download that another process has begun is waited for. One that breaks off is tried again,
    /// and goes on where it was; one that brings less than 20 KiB in 20 seconds, or nothing in 30,
    /// is ended.
    ///
    /// # Errors
    /// [`Error::Io`] for what the hub answers, for content other than it lists, and for the cache.
    pub fn download(&mut self, progress: &mut dyn FnMut(HubProgress<'_>)) -> Result<PathBuf> {
        for index in 0..self.files.len() {
            let HubFile { name, kept, .. } = self.files[index].clone();
            if !kept {
                self.fetch(&name, progress)?;
                self.files[index].kept = true;
            }
        }
        if self.client.is_some()
            && let Err(error) = self.cache.note(self.name.revision(), &self.listing.commit)
        {
            log::warn!("{}: it will not be found offline: {error}", self.name);
        }
        let opened = self.name.opened(self.files.iter().map(|file| file.name.as_str()));
        Ok(self.folder().join(opened))
    }

    fn add(&mut self, name: &str) -> Result<()> {
        let (kept, bytes) = (self.is_kept(name), self.listed(name).bytes);
        let most = most(name);
        if let Some(found) = bytes.filter(|bytes| *bytes > most && !kept) {
            let problem = format!("expected at most {most}, found {found} as the hub lists it");
            return Err(Error::Format { file: self.name.file(name), problem });
        }
        self.files.push(HubFile { name: name.to_owned(), bytes: bytes.or_else(|| self.bytes_kept(name)), kept });
        Ok(())
    }

    /// Adds the shards that the index `index` lists, which has to be read for it.
    fn add_shards(&mut self, index: &str) -> Result<()> {
        let path = self.folder().join(index);
        if let Some(position) = self.files.iter().position(|file| file.name == index && !file.kept) {
            self.fetch(index, &mut |_| {})?;
            self.files[position].kept = true;
        }
        let text = std::fs::read_to_string(&path).map_err(|source| io_error(&path, source))?;
        let folder = index.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        for shard in shard_index::shard_names(&self.name.file(index), &text)? {
            self.add(&format!("{folder}{shard}"))?;
        }
        Ok(())
    }

    /// Where the cache has the commit's files.
    fn folder(&self) -> PathBuf {
        self.cache.snapshot(&self.listing.commit)
    }

    fn listed(&self, name: &str) -> Listed {
        self.listing.files.get(name).cloned().unwrap_or_default()
    }

    /// The size of `name` in the cache, if it is there.
    fn bytes_kept(&self, name: &str) -> Option<Bytes> {
        std::fs::metadata(self.folder().join(name)).ok().map(|file| Bytes(file.len()))
    }

    /// True if the cache has `name`, in the size that is listed.
    fn is_kept(&self, name: &str) -> bool {
        let (found, listed) = (self.bytes_kept(name), self.listed(name).bytes);
        found.is_some() && (listed.is_none() || listed == found)
    }

    /// Brings `name` into the cache, unless another process does so in the meantime.
    fn fetch(&self, name: &str, progress: &mut dyn FnMut(HubProgress<'_>)) -> Result<()> {
        let shown = self.name.file(name);
        let Some(client) = &self.client else {
            let source = std::io::Error::other("not in the cache, and the hub is not asked");
            return Err(Error::Io { path: shown, source });
        };
        let (commit, digest) = (&self.listing.commit, self.listed(name).digest);
        let unlisted = || sha256_of_text(&format!("{}/{name}", commit.as_str()));
        let hash = digest.as_ref().map_or_else(unlisted, |digest| digest.hex().to_owned());
        let _lock = self.cache.lock(&hash, &shown)?;
        if self.is_kept(name) {
            return Ok(());
        }
        // As a file of another name or commit.
        let is_there = |digest: &Digest| digest.same_of(&self.cache.blob(&hash)).is_ok_and(|found| found == *digest);
        if digest.as_ref().is_some_and(is_there) {
            return self.cache.link(&hash, commit, name);
        }
        let part = self.cache.part(&hash);
        let hash = self.fill(&part, client, name, digest.as_ref(), progress)?;
        self.cache.keep(&part, &hash, commit, name)
    }

    /// Downloads `name` to `part`, and returns the hash of its content, which is that of `digest`
    /// if one is listed. Where the part of an earlier download turns out to be of something else,
    /// it starts over.
    fn fill(
        &self,
        part: &Path,
        client: &Client,
        name: &str,
        digest: Option<&Digest>,
        progress: &mut dyn FnMut(HubProgress<'_>),
    ) -> Result<String> {
        let bytes = self.listed(name).bytes;
        let expected = Expected { bytes, most: most(name), resumes: digest.is_some() };
        let mut show = |done| progress(HubProgress { name, done, total: bytes.unwrap_or_default() });
        loop {
            let is_resumed = part.exists();
            client
                .download(&self.name, &self.listing.commit, name, part, expected, &mut show)
                .map_err(|failure| failure.into_error(&self.name, Some(name)))?;
            let Some(digest) = digest else { return sha256_of(part).map_err(|source| io_error(part, source)) };
            let found = digest.same_of(part).map_err(|source| io_error(part, source))?;
            if found == *digest {
                return Ok(digest.hex().to_owned());
            }
            remove(part)?;
            if !is_resumed {
                let source = std::io::Error::other(format!("expected {digest} as the hub lists it, found {found}"));
                return Err(Error::Io { path: self.name.file(name), source });
            }
        }
    }
}

/// Largest size that `name` may have.
fn most(name: &str) -> Bytes {
    if name.ends_with(".json") { MOST_JSON } else { MOST_WEIGHTS }
}

fn nothing_kept(name: &HubName) -> Error {
    let source = std::io::Error::other("not in the cache, and the hub is not to be asked (HF_HUB_OFFLINE)");
    Error::Io { path: name.to_string(), source }
}
