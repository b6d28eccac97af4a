//! Writes the pixels that a 3x3 filter sees, so that a product with the filter is the convolution.
//! Shader: `unfold.wgsl`.

use crate::kernels::{Access, Interface, Launch, Value, Variant, params, spread};
use crate::model::graph::Window;
use crate::tensor::Storage;

/// Pixels that the filter sees at once.
pub const TAPS: u32 = 9;

params! {
    /// Parameters of `unfold`.
    UnfoldParams, PARAMS {
        /// Output pixels of this band.
        pixels: u32,
        /// First output pixel, counted row by row in the whole output.
        first: u32,
        /// Columns of the output.
        width: u32,
        /// Columns of x.
        x_width: u32,
        /// Rows of the whole x.
        x_height: u32,
        /// Row that the stored x starts with.
        x_row0: u32,
        /// Channels / 4.
        channels4: u32,
        /// Frames of x.
        frames: u32,
        /// Frames of y.
        frames_y: u32,
        /// First frame of y that this launch writes.
        frame0: u32,
    }
}

/// Interface of `unfold`.
pub const INTERFACE: Interface =
    Interface { file: "unfold", bindings: &[("x", Access::Read), ("y", Access::ReadWrite)], params: PARAMS };

/// Launches `unfold` for a 3x3 `window`.
pub fn unfold(storage: Storage, window: Window, params: UnfoldParams) -> Launch {
    let values = vec![
        ("STRIDE", Value::U32(window.stride)),
        ("BEFORE", Value::U32(window.before())),
        ("Stored", Value::Type(storage.wgsl_type())),
    ];
    Launch {
        variant: Variant { file: "unfold", values },
        workgroups: spread(params.pixels * params.frames * TAPS * params.channels4),
        params: bytemuck::bytes_of(&params).to_vec(),
        macs: 0,
    }
}
