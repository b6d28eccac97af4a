//! Means or copies of channels, at another size or number of frames. Shader: `regroup.wgsl`.

use crate::kernels::{Launch, Value, kernel, spread};
use crate::tensor::Storage;

kernel! {
    /// Interface of `regroup`.
    INTERFACE = "regroup"(x: Read, y: ReadWrite);
    RegroupParams {
        pixels: u32, width: u32, frames: u32, channels: u32, channels4: u32, x_width: u32,
        x_frames: u32, x_channels4: u32, x_offset: u32, y_offset: u32, y_row: u32, side: u32,
        column_step: u32, places: u32, missing: u32, repeats_first: u32, tiled: u32, count: u32,
        scale: f32,
    }
}

/// Means or copies of channels to be launched.
#[derive(Debug, Clone, Copy)]
pub struct Regrouping {
    /// Storage of `x`.
    pub input: Storage,
    /// Storage of `y`.
    pub output: Storage,
    /// True for copies, false for means.
    pub copies: bool,
    /// True if the channels of one place are neighbours.
    pub by_place: bool,
    /// True if the result is cut off below 0.
    pub relu: bool,
    /// True if it is added to `y`.
    pub sum: bool,
    /// Parameters.
    pub params: RegroupParams,
}

impl Regrouping {
    /// Returns the launch.
    pub fn launch(self) -> Launch {
        let values = vec![
            ("COPIES", Value::Bool(self.copies)),
            ("BY_PLACE", Value::Bool(self.by_place)),
            ("SUM", Value::Bool(self.sum)),
            ("RELU", Value::Bool(self.relu)),
            ("Stored", Value::Type(self.input.wgsl_type())),
            ("Output", Value::Type(self.output.wgsl_type())),
        ];
        INTERFACE.launch(values, &self.params, spread(self.params.pixels * self.params.frames * self.params.channels4))
    }
}
