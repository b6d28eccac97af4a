//! Writes the pixels that a 3x3 filter sees, so that a product with the filter is the convolution.
//! Shader: `unfold.wgsl`.

use crate::kernels::{Launch, Value, kernel, spread};
use crate::model::graph::Window;
use crate::tensor::Storage;

/// Pixels that the filter sees at once.
pub const TAPS: u32 = 9;

kernel! {
    /// Interface of `unfold`.
    INTERFACE = "unfold"(x: Read, y: ReadWrite);
    UnfoldParams {
        pixels: u32, first: u32, width: u32, x_width: u32, x_height: u32, x_row0: u32,
        channels4: u32, frames: u32, frames_y: u32, frame0: u32,
    }
}

/// Launches `unfold` for a 3x3 `window`.
pub fn unfold(storage: Storage, window: Window, params: UnfoldParams) -> Launch {
    let values = vec![
        ("STRIDE", Value::U32(window.stride)),
        ("BEFORE", Value::U32(window.before())),
        ("Stored", Value::Type(storage.wgsl_type())),
    ];
    INTERFACE.launch(values, &params, spread(params.pixels * params.frames * TAPS * params.channels4))
}
