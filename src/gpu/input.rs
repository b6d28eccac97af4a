//! The input of a plan.

use std::borrow::Cow;

#[cfg(target_arch = "wasm32")]
use super::browser::ForeignBuffer;

/// The input of a plan.
#[derive(Debug, Clone)]
pub enum Input<'a> {
    /// One tensor for each input of the plan, planar f32 `[c, h, w]`, in host memory.
    Host(Vec<Cow<'a, [f32]>>),
    /// The tensor of the plan's only input on the device, planar f32 `[c, h, w]`, in a buffer of
    /// the caller.
    #[cfg(target_arch = "wasm32")]
    Foreign {
        /// The buffer.
        buffer: &'a ForeignBuffer,
        /// The image's first byte in the buffer.
        at: u64,
        /// The image's length in bytes.
        bytes: u64,
    },
}

#[cfg(target_arch = "wasm32")]
impl<'a> Input<'a> {
    /// Makes the input from image `index` of several in the caller's buffer, of `bytes` each.
    pub(crate) fn foreign(buffer: &'a ForeignBuffer, index: u32, bytes: u64) -> Self {
        Self::Foreign { buffer, at: u64::from(index) * bytes, bytes }
    }
}
