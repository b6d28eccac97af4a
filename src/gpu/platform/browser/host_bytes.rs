//! Bytes that wait in host memory. They are in JavaScript's memory, which is returned when they are
//! dropped. The module's own memory never shrinks, and ends at 4 GiB.

use std::borrow::Cow;
use std::ops::Range;

use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use super::new_array;
use crate::tensor::Bytes;

/// Bytes that wait in host memory, in a JavaScript array.
#[derive(Debug)]
pub struct HostBytes {
    array: Uint8Array,
    used: u32,
}

impl HostBytes {
    /// Makes an empty array with room for `bytes`. `None` if there is not enough memory.
    pub(in crate::gpu) fn with_capacity(bytes: Bytes) -> Option<Self> {
        let array = new_array("Uint8Array", u32::try_from(bytes.0).ok()?)?;
        Some(Self { array: array.unchecked_into(), used: 0 })
    }

    /// Makes an array of `bytes` zeros. `None` if there is not enough memory.
    pub(in crate::gpu) fn zeros(bytes: Bytes) -> Option<Self> {
        let zeros = Self::with_capacity(bytes)?;
        Some(Self { used: zeros.array.length(), ..zeros })
    }

    /// Overwrites the bytes from `at` on with `content`.
    pub(in crate::gpu) fn set(&mut self, at: u64, content: &[u8]) {
        let index = |at: u64| u32::try_from(at).unwrap_or(u32::MAX);
        self.array.subarray(index(at), index(at + content.len() as u64)).copy_from(content);
    }

    /// Copies `content`. `None` if there is not enough memory.
    pub fn copy_of(content: &[u8]) -> Option<Self> {
        let mut copy = Self::with_capacity(Bytes(content.len() as u64))?;
        copy.append(content);
        Some(copy)
    }

    /// Returns the number of bytes in use.
    pub(in crate::gpu) fn len(&self) -> u64 {
        u64::from(self.used)
    }

    /// Removes all bytes. Keeps the room for them.
    pub(in crate::gpu) fn clear(&mut self) {
        self.used = 0;
    }

    /// Appends `content`, which must fit into the reserved room.
    pub(in crate::gpu) fn append(&mut self, content: &[u8]) {
        let end = self.used + u32::try_from(content.len()).unwrap_or(u32::MAX);
        self.array.subarray(self.used, end).copy_from(content);
        self.used = end;
    }

    /// Returns the bytes in `range`, which must lie within those in use.
    pub(in crate::gpu) fn read(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        let index = |at: u64| u32::try_from(at).unwrap_or(u32::MAX);
        Cow::Owned(self.array.subarray(index(range.start), index(range.end)).to_vec())
    }

    /// Returns all bytes in use.
    pub(crate) fn all(&self) -> Cow<'_, [u8]> {
        self.read(0..self.len())
    }
}
