//! Copies frames of one tensor to another. Shader: `copy_frames.wgsl`.

use crate::kernels::{Access, Interface, Launch, Value, Variant, params, spread};
use crate::tensor::Storage;

params! {
    /// Parameters of `copy_frames`.
    CopyFramesParams, PARAMS {
        /// Pixels of x and y.
        pixels: u32,
        /// Elements of each pixel that are copied.
        vec4s: u32,
        /// First element to read in x.
        x_offset: u32,
        /// Elements from pixel to pixel of x.
        x_pixel4: u32,
        /// First element to write in y.
        y_offset: u32,
        /// Elements from pixel to pixel of y.
        y_pixel4: u32,
    }
}

/// Interface of `copy_frames`.
pub const COPY: Interface =
    Interface { file: "copy_frames", bindings: &[("x", Access::Read), ("y", Access::ReadWrite)], params: PARAMS };

/// Launches `copy_frames`.
pub fn copy(storage: Storage, params: CopyFramesParams) -> Launch {
    Launch {
        variant: Variant { file: "copy_frames", values: vec![("Stored", Value::Type(storage.wgsl_type()))] },
        workgroups: spread(params.pixels * params.vec4s),
        params: bytemuck::bytes_of(&params).to_vec(),
        macs: 0,
    }
}
