//! Bytes that wait in host memory.

use std::borrow::Cow;
use std::ops::Range;

use crate::tensor::Bytes;

/// Bytes that wait in host memory.
#[derive(Debug)]
pub struct HostBytes(Vec<u8>);

impl HostBytes {
    /// Makes an empty vector with room for `bytes`. `None` if there is not enough memory.
    pub(in crate::gpu) fn with_capacity(bytes: Bytes) -> Option<Self> {
        let mut content = Vec::new();
        content.try_reserve_exact(usize::try_from(bytes.0).ok()?).ok()?;
        Some(Self(content))
    }

    /// Makes a vector of `bytes` zeros. `None` if there is not enough memory.
    pub(in crate::gpu) fn zeros(bytes: Bytes) -> Option<Self> {
        let mut zeros = Self::with_capacity(bytes)?;
        zeros.0.resize(usize::try_from(bytes.0).ok()?, 0);
        Some(zeros)
    }

    /// Overwrites the bytes from `at` on with `content`.
    pub(in crate::gpu) fn set(&mut self, at: u64, content: &[u8]) {
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        self.0[start..start + content.len()].copy_from_slice(content);
    }

    /// Copies `content`. `None` if there is not enough memory.
    pub fn copy_of(content: &[u8]) -> Option<Self> {
        let mut copy = Self::with_capacity(Bytes(content.len() as u64))?;
        copy.append(content);
        Some(copy)
    }

    /// Returns the number of bytes.
    pub(in crate::gpu) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Removes all bytes. Keeps the room for them.
    pub(in crate::gpu) fn clear(&mut self) {
        self.0.clear();
    }

    /// Appends `content`, which must fit into the reserved room.
    pub(in crate::gpu) fn append(&mut self, content: &[u8]) {
        self.0.extend_from_slice(content);
    }

    /// Returns the bytes in `range`, which must lie within the content.
    pub(in crate::gpu) fn read(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        Cow::Borrowed(&self.0[index(range.start)..index(range.end)])
    }

    /// Returns all bytes.
    pub(crate) fn all(&self) -> Cow<'_, [u8]> {
        self.read(0..self.len())
    }
}
