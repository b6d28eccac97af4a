//! Hashes in hexadecimal digits: the commit of a listing, and the hash of a file's content. Both
//! become parts of paths, so anything but digits is an error.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// Number of digits of a SHA-1 and of a SHA-256.
const LENGTHS: [usize; 2] = [40, 64];

/// A commit of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commit(String);

impl Commit {
    /// Description of a valid commit, for errors.
    pub(super) const EXPECTED: &str = "40 or 64 hexadecimal digits";

    /// Parses a commit. Returns `None` for anything else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        LENGTHS.iter().any(|length| is_hex(text, *length)).then(|| Self(text.to_owned()))
    }

    /// Returns the digits.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A hash of a file's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Digest {
    /// SHA-256 of the content. The hub lists it for large files.
    Sha256(String),
    /// SHA-1 of the content with git's header. The hub lists it for small files.
    GitBlob(String),
}

impl Digest {
    /// Parses the digits of a SHA-256.
    pub(super) fn sha256(text: &str) -> Option<Self> {
        is_hex(text, 64).then(|| Self::Sha256(text.to_lowercase()))
    }

    /// Parses the digits of a git blob id.
    pub(super) fn git_blob(text: &str) -> Option<Self> {
        is_hex(text, 40).then(|| Self::GitBlob(text.to_lowercase()))
    }

    /// Returns the digits, which are the blob's name in the cache.
    pub(super) fn hex(&self) -> &str {
        match self {
            Self::Sha256(hex) | Self::GitBlob(hex) => hex,
        }
    }

    /// Hashes the file at `path` with the algorithm of `self`.
    pub(super) fn same_of(&self, path: &Path) -> std::io::Result<Self> {
        match self {
            Self::Sha256(_) => sha256_of(path).map(Self::Sha256),
            Self::GitBlob(_) => {
                let file = File::open(path)?;
                let header = format!("blob {}\0", file.metadata()?.len());
                hash(Sha1::new_with_prefix(header), file).map(Self::GitBlob)
            }
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sha256(hex) => write!(f, "SHA-256 {hex}"),
            Self::GitBlob(hex) => write!(f, "git blob {hex}"),
        }
    }
}

/// Returns the SHA-256 of the file at `path`.
pub(super) fn sha256_of(path: &Path) -> std::io::Result<String> {
    hash(Sha256::new(), File::open(path)?)
}

/// Returns the SHA-256 of `text`.
pub(super) fn sha256_of_text(text: &str) -> String {
    hex(&Sha256::digest(text))
}

fn hash<H: sha2::Digest>(mut hasher: H, mut file: File) -> std::io::Result<String> {
    let mut buffer = vec![0; 1 << 18];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(hex(&hasher.finalize()));
        }
        hasher.update(&buffer[..read]);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|letter| letter.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_hash_as_git_and_sha256sum_hash_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        std::fs::write(&path, "hello\n").expect("a file");
        // Computed with `sha256sum` and `git hash-object`.
        for digest in [
            Digest::sha256("5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"),
            Digest::git_blob("ce013625030ba8dba906f756967f9e9ca394464a"),
        ] {
            let digest = digest.expect("digits");
            assert_eq!(digest.same_of(&path).expect("a hash"), digest);
        }
    }

    #[test]
    fn nothing_but_digits_is_a_commit() {
        for wrong in
            ["", "main", "..", "0123456789abcdef", &"g".repeat(40), &"a".repeat(41), &format!("/{}", "a".repeat(39))]
        {
            assert_eq!(Commit::parse(wrong), None, "{wrong}");
        }
        assert!(Commit::parse(&"a".repeat(40)).is_some() && Commit::parse(&"0".repeat(64)).is_some());
    }
}
