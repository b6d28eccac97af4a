//! Copies frames of one tensor to another. Shader: `copy_frames.wgsl`.

use crate::kernels::{Launch, Value, kernel, spread};
use crate::tensor::Storage;

kernel! {
    /// Interface of `copy_frames`.
    COPY = "copy_frames"(x: Read, y: ReadWrite);
    CopyFramesParams {
        pixels: u32, vec4s: u32, x_offset: u32, x_pixel4: u32, y_offset: u32, y_pixel4: u32,
    }
}

/// Launches `copy_frames`.
pub fn copy(storage: Storage, params: CopyFramesParams) -> Launch {
    COPY.launch(vec![("Stored", Value::Type(storage.wgsl_type()))], &params, spread(params.pixels * params.vec4s))
}
