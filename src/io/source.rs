//! Sources of bytes: memory, a file (`file.rs`), or an implementation of the caller (a browser's
//! `Blob`, a range request).
//!
//! Reads take a range and are asynchronous, so a checkpoint is never in memory as a whole. Nothing
//! is cached here.

use std::borrow::Cow;
use std::future::Future;
use std::ops::Range;
use std::pin::Pin;

use crate::error::{Error, Result};
use crate::wasm_not_send::WasmNotSendSync;

/// A read in progress, as [`ByteSource::read_at`] returns it.
pub type ReadFuture<'a> = Pin<Box<Reading<'a>>>;

wasm_not! {
    Send;
    /// A read in progress. It is `Send`, except in a browser, where it waits for a promise of
    /// JavaScript.
    pub type Reading<'a> = dyn Future<Output = Result<Vec<u8>>> + 'a
}

/// A named sequence of bytes that can be read in pieces. Natively it is `Send` and `Sync`.
pub trait ByteSource: WasmNotSendSync {
    /// Returns the name for errors: a path or a file name.
    fn name(&self) -> &str;

    /// Returns the total length in bytes.
    fn len(&self) -> u64;

    /// Reads exactly `len` bytes from byte `offset` on.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) for a range beyond the end, or an error of the
    /// source.
    fn read_at(&self, offset: u64, len: u64) -> ReadFuture<'_>;

    /// True if the length is 0.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A source of bytes in memory.
#[derive(Debug, Clone)]
pub struct MemorySource {
    name: String,
    bytes: Cow<'static, [u8]>,
}

impl MemorySource {
    /// Creates a source of `bytes`, called `name` in errors.
    pub fn new(name: impl Into<String>, bytes: impl Into<Cow<'static, [u8]>>) -> Self {
        Self { name: name.into(), bytes: bytes.into() }
    }
}

impl ByteSource for MemorySource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, len: u64) -> ReadFuture<'_> {
        let bytes = check_range(self, offset, len).map(|range| self.bytes[range].to_vec());
        Box::pin(std::future::ready(bytes))
    }
}

/// Reads exactly `len` bytes of `source` from byte `offset` on.
///
/// # Errors
/// [`Error::Format`] for a source that gives another number of bytes, and the errors of
/// [`ByteSource::read_at`].
pub(super) fn read(source: &dyn ByteSource, offset: u64, len: u64) -> ReadFuture<'_> {
    Box::pin(async move {
        let bytes = source.read_at(offset, len).await?;
        if bytes.len() as u64 == len {
            return Ok(bytes);
        }
        let problem = format!("expected {len} bytes at offset {offset}, found {} from its source", bytes.len());
        Err(Error::Format { file: source.name().to_owned(), problem })
    })
}

/// Returns the range `offset..offset + len` if it lies within `source` and this machine can address
/// it.
pub(super) fn check_range(source: &dyn ByteSource, offset: u64, len: u64) -> Result<Range<usize>> {
    let end = offset.checked_add(len).filter(|&end| end <= source.len());
    let range = end.and_then(|end| Some(usize::try_from(offset).ok()?..usize::try_from(end).ok()?));
    range.ok_or_else(|| Error::Format {
        file: source.name().to_owned(),
        problem: format!("expected {len} bytes at offset {offset}, found {} bytes in all", source.len()),
    })
}
