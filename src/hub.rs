//! Models by name from the Hugging Face Hub. Lists the files of a repository that a decode or an
//! encode needs, and downloads them into the cache of Python's `huggingface_hub`. Files in the
//! cache are not requested again. Native only.

mod cache;
mod failure;
mod hash;
mod listing;
mod name;
mod network;
mod options;
mod transfer;

use std::path::{Path, PathBuf};

use self::cache::{Cache, remove};
use self::failure::{Failure, INSTEAD};
use self::hash::{Commit, Digest, sha256_of, sha256_of_text};
use self::listing::{Listed, Listing};
pub use self::name::HubName;
pub use self::options::HubOptions;
use self::transfer::{Client, Expected, TRIES_OF_LISTING};
use crate::error::{Error, Result};
use crate::io::{Variant, shard_index};
use crate::tensor::Bytes;

/// The largest config.json or shard index that is downloaded.
const MOST_JSON: Bytes = Bytes(16 << 20);

/// The largest weight file that is downloaded.
const MOST_WEIGHTS: Bytes = Bytes(64 << 30);

/// One file of a model in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubFile {
    /// The path in the repository.
    pub name: String,
    /// The size in bytes; `None` if only the cache was asked and does not have the file.
    pub bytes: Option<Bytes>,
    /// True if the cache has the file.
    pub kept: bool,
}

/// The progress of a download.
#[derive(Debug, Clone, Copy)]
pub struct HubProgress<'a> {
    /// The file's path in the repository.
    pub name: &'a str,
    /// Bytes of this file downloaded so far.
    pub done: Bytes,
    /// The size of this file in bytes; 0 if the hub does not list it.
    pub total: Bytes,
}

/// A model on the hub, and the list of its files that are needed.
#[derive(Debug)]
pub struct HubModel {
    name: HubName,
    /// `None` when working offline.
    client: Option<Client>,
    cache: Cache,
    listing: Listing,
    files: Vec<HubFile>,
    /// The reason why the hub listed no files, if the cache replaces it.
    unreachable: Option<String>,
}

impl HubModel {
    /// Finds the files of the model `name`, and checks which of them the cache has. Does not
    /// download weights. For a model in shards, it downloads the index.
    ///
    /// Without a connection, or if the hub answers with an error, the cached files are used. This
    /// also holds if `options` cannot be used, such as a file of certificates that does not exist.
    /// Cached files of a commit are used without a request, if it is certain that the hub lists no
    /// others.
    ///
    /// Each connection of a request may take 10 seconds. Then the hub has 30 seconds to begin its
    /// answer, and 30 more to complete it. The answer may have 16 MiB. If the cache lacks the
    /// model, a busy hub is asked once more, after at most 30 seconds.
    ///
    /// # Errors
    /// [`Error::Io`] if the hub answers with an error or not at all, and the cache lacks the model.
    /// [`Error::Format`] if no file belongs to a model, for a listing that cannot be trusted, and
    /// for a file that is too large. [`Error::Input`] for a cache folder that cannot be found, and
    /// for options that cannot be used, if the cache lacks the model.
    pub fn find(name: &HubName, variant: Variant, options: &HubOptions) -> Result<Self> {
        let cache = Cache::new(&options.cache_folder()?, name.id());
        let kept = Listing::kept(&cache, name);
        let new = |client, listing| Self::new(name, variant, cache.clone(), client, listing);
        if options.offline {
            return new(None, kept?.ok_or_else(|| nothing_kept(name))?);
        }
        let is_certain = |kept: &Listing| Commit::parse(&name.revision).is_some() && kept.is_certain(name, variant);
        let is_certain = matches!(&kept, Ok(Some(kept)) if is_certain(kept));
        // An unusable cache matters only if the hub does not answer.
        let kept = kept.map(|kept| kept.and_then(|kept| new(None, kept).ok()).filter(Self::is_complete));
        if is_certain && let Ok(Some(model)) = kept {
            return Ok(model);
        }
        let tries = if matches!(kept, Ok(Some(_))) { 1 } else { TRIES_OF_LISTING };
        match Client::new(options)
            .map_err(Failure::Options)
            .and_then(|client| Ok((client.listing(name, tries)?, client)))
        {
            Ok((answer, client)) => new(Some(client), Listing::read(name, &answer)?),
            Err(failure) if failure.leaves_cache() => match kept? {
                Some(model) => Ok(Self { unreachable: Some(failure.to_string()), ..model }),
                None => Err(failure.into_error(name, None)),
            },
            Err(failure) => Err(failure.into_error(name, None)),
        }
    }

    /// Lists the model's files in `listing`. Without a client, only the cache can have its shards.
    fn new(name: &HubName, variant: Variant, cache: Cache, client: Option<Client>, listing: Listing) -> Result<Self> {
        let wanted = listing.wanted(name, variant)?;
        let mut model = Self { name: name.clone(), client, cache, listing, files: Vec::new(), unreachable: None };
        for file in wanted {
            model.add(&file)?;
            if file.ends_with(".json") && file.contains(".index") {
                model.add_shards(&file)?;
            }
        }
        Ok(model)
    }

    /// True if the cache has all files of the model.
    fn is_complete(&self) -> bool {
        self.files.iter().all(|file| file.kept)
    }

    /// Returns the model's files: config.json, if there is one, and the weights.
    pub fn files(&self) -> &[HubFile] {
        &self.files
    }

    /// Returns the commit of these files.
    pub fn commit(&self) -> &str {
        self.listing.commit.as_str()
    }

    /// Returns the reason why the hub did not list the files, if the cache replaces it.
    pub fn unreachable(&self) -> Option<&str> {
        self.unreachable.as_deref()
    }

    /// Downloads the files that the cache lacks. Returns the path to open the model at: a folder or
    /// a file.
    ///
    /// A file enters the cache only once its size and hash match those that the hub lists. If
    /// another process is downloading the same file, this waits for it. A download that breaks off
    /// is resumed where it stopped. One that receives less than 20 KiB in 20 seconds, or nothing in
    /// 30, is ended.
    ///
    /// # Errors
    /// [`Error::Io`] for errors of the hub or of the cache, and for content that differs from the
    /// hub's listing.
    pub fn download(&mut self, progress: &mut dyn FnMut(HubProgress<'_>)) -> Result<PathBuf> {
        for index in 0..self.files.len() {
            let HubFile { name, kept, .. } = self.files[index].clone();
            if !kept {
                self.fetch(&name, progress)?;
                self.files[index].kept = true;
            }
        }
        if self.client.is_some()
            && let Err(error) = self.cache.note(&self.name.revision, &self.listing.commit)
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
            return Err(Error::format(self.name.file(name), problem));
        }
        self.files.push(HubFile { name: name.to_owned(), bytes: bytes.or_else(|| self.bytes_kept(name)), kept });
        Ok(())
    }

    /// Adds the shards that the index `index` lists. Downloads the index first if the cache lacks
    /// it.
    fn add_shards(&mut self, index: &str) -> Result<()> {
        let path = self.folder().join(index);
        if let Some(position) = self.files.iter().position(|file| file.name == index && !file.kept) {
            self.fetch(index, &mut |_| {})?;
            self.files[position].kept = true;
        }
        let text = std::fs::read_to_string(&path).map_err(|source| Error::io(path.display(), source))?;
        let folder = index.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        for shard in shard_index::shard_names(&self.name.file(index), &text)? {
            self.add(&format!("{folder}{shard}"))?;
        }
        Ok(())
    }

    /// Returns the folder of the commit's files in the cache.
    fn folder(&self) -> PathBuf {
        self.cache.snapshot(&self.listing.commit)
    }

    fn listed(&self, name: &str) -> Listed {
        self.listing.files.get(name).cloned().unwrap_or_default()
    }

    /// Returns the size of `name` in the cache, if the cache has it.
    fn bytes_kept(&self, name: &str) -> Option<Bytes> {
        std::fs::metadata(self.folder().join(name)).ok().map(|file| Bytes(file.len()))
    }

    /// True if the cache has `name` in the listed size.
    fn is_kept(&self, name: &str) -> bool {
        let (found, listed) = (self.bytes_kept(name), self.listed(name).bytes);
        found.is_some() && (listed.is_none() || listed == found)
    }

    /// Downloads `name` into the cache, unless another process has done so in the meantime.
    fn fetch(&self, name: &str, progress: &mut dyn FnMut(HubProgress<'_>)) -> Result<()> {
        let shown = self.name.file(name);
        let Some(client) = &self.client else {
            let source = std::io::Error::other(format!(
                "not in the cache, and the hub is not asked: download it first, or {INSTEAD}"
            ));
            return Err(Error::io(shown, source));
        };
        let (commit, digest) = (&self.listing.commit, self.listed(name).digest);
        let unlisted = || sha256_of_text(&format!("{}/{name}", commit.as_str()));
        let hash = digest.as_ref().map_or_else(unlisted, |digest| digest.hex().to_owned());
        let _lock = self.cache.lock(&hash, &shown)?;
        if self.is_kept(name) {
            return Ok(());
        }
        // The cache may have this content under another name or commit.
        let is_there = |digest: &Digest| digest.same_of(&self.cache.blob(&hash)).is_ok_and(|found| found == *digest);
        if digest.as_ref().is_some_and(is_there) {
            return self.cache.link(&hash, commit, name);
        }
        let part = self.cache.part(&hash);
        let hash = self.fill(&part, client, name, digest.as_ref(), progress)?;
        self.cache.keep(&part, &hash, commit, name)
    }

    /// Downloads `name` to `part`. Returns the hash of its content, which equals `digest` if one is
    /// listed. If `part` was left by an earlier download of other content, the download starts
    /// over.
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
            let Some(digest) = digest else {
                return sha256_of(part).map_err(|source| Error::io(part.display(), source));
            };
            let found = digest.same_of(part).map_err(|source| Error::io(part.display(), source))?;
            if found == *digest {
                return Ok(digest.hex().to_owned());
            }
            remove(part)?;
            if !is_resumed {
                let source = std::io::Error::other(format!("expected {digest} as the hub lists it, found {found}"));
                return Err(Error::io(self.name.file(name), source));
            }
        }
    }
}

/// Returns the largest size that `name` may have.
fn most(name: &str) -> Bytes {
    if name.ends_with(".json") { MOST_JSON } else { MOST_WEIGHTS }
}

fn nothing_kept(name: &HubName) -> Error {
    let source = std::io::Error::other(format!(
        "not in the cache, and the hub is not to be asked (HF_HUB_OFFLINE): download it first, or {INSTEAD}"
    ));
    Error::io(name, source)
}
