//! What a plan is run on.

use std::borrow::Cow;

#[cfg(target_arch = "wasm32")]
use super::browser::ForeignBuffer;

/// What a plan is run on.
#[derive(Debug, Clone)]
pub enum Input<'a> {
    /// Each of the plan's inputs, planar f32 `[c, h, w]`.
    Host(Vec<Cow<'a, [f32]>>),
    /// The same on the device, in a buffer of the caller's.
    #[cfg(target_arch = "wasm32")]
    Foreign {
        /// The buffer.
        buffer: &'a ForeignBuffer,
        /// The image's first byte in it.
        at: u64,
        /// Its length.
        bytes: u64,
    },
}

#[cfg(target_arch = "wasm32")]
impl<'a> Input<'a> {
    /// Image `index` of several in the caller's buffer, of `bytes` each.
    pub(crate) fn foreign(buffer: &'a ForeignBuffer, index: u32, bytes: u64) -> Self {
        Self::Foreign { buffer, at: u64::from(index) * bytes, bytes }
    }
}
