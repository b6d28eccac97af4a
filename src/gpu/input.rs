//! The input of a plan.

use std::borrow::Cow;

use super::ForeignBuffer;

/// The input of a plan.
#[derive(Debug, Clone)]
pub enum Input<'a> {
    /// One tensor for each input of the plan, planar f32 `[c, h, w]`, in host memory.
    Host(Vec<Cow<'a, [f32]>>),
    /// The tensor of the plan's only input on the device, planar f32 `[c, h, w]`, in a buffer of
    /// the caller.
    Foreign {
        /// The buffer.
        buffer: &'a ForeignBuffer,
        /// The image's first byte in the buffer.
        at: u64,
        /// The image's length in bytes.
        bytes: u64,
    },
}
