//! Copies frames of one tensor to another. Shader: `copy_frames.wgsl`.

use crate::kernels::{Access, Interface, Launch, Value, kernel, params, spread};
use crate::tensor::Storage;

params! {
    /// Parameters of `copy_frames`.
    CopyFramesParams, PARAMS {
        pixels: u32, vec4s: u32, x_offset: u32, x_pixel4: u32, y_offset: u32, y_pixel4: u32,
    }
}

/// Interface of `copy_frames`.
pub const COPY: Interface = kernel!("copy_frames", &[("x", Access::Read), ("y", Access::ReadWrite)], PARAMS);

/// Launches `copy_frames`.
pub fn copy(storage: Storage, params: CopyFramesParams) -> Launch {
    COPY.launch(vec![("Stored", Value::Type(storage.wgsl_type()))], &params, spread(params.pixels * params.vec4s))
}
