//! The norm of each pixel over its channels (RMS norm), for one band at a time. Shader:
//! `pixel_norm_apply.wgsl`.

use crate::kernels::activation;
use crate::kernels::{Launch, Value, kernel, spread};
use crate::limits::DeviceKind;
use crate::model::graph::Activation;
use crate::tensor::Storage;

kernel! {
    /// Interface of `pixel_norm_apply`.
    INTERFACE = "pixel_norm_apply"(x: Read, gamma: Read, beta: Read, y: ReadWrite);
    PixelNormParams {
        pixels: u32, channels4: u32, frames: u32, x_offset: u32, y_offset: u32, y_pixel4: u32,
        root: f32, least: f32, eps: f32,
    }
}

/// Returns the invocations that take a pixel on a device of this kind. All give the same bits.
pub fn lanes(kind: DeviceKind) -> u32 {
    match kind {
        DeviceKind::Cpu | DeviceKind::Host => 1,
        DeviceKind::Gpu => 4,
    }
}

/// A norm of each pixel to be launched.
#[derive(Debug, Clone, Copy)]
pub struct PixelNorm {
    /// Storage of `x` and `y`.
    pub storage: Storage,
    /// Function that follows the norm.
    pub activation: Option<Activation>,
    /// Invocations of a pixel, see [`lanes`].
    pub lanes: u32,
    /// True if the norm has summands.
    pub has_beta: bool,
    /// True if the result is added to `y`.
    pub sum: bool,
    /// Parameters.
    pub params: PixelNormParams,
}

impl PixelNorm {
    /// Returns the launch.
    pub fn launch(self) -> Launch {
        let values = vec![
            ("LANES", Value::U32(self.lanes)),
            ("SUMS", Value::U32(4 / self.lanes)),
            activation::value(self.activation),
            ("HAS_BETA", Value::Bool(self.has_beta)),
            ("SUM", Value::Bool(self.sum)),
            ("Stored", Value::Type(self.storage.wgsl_type())),
        ];
        INTERFACE.launch(values, &self.params, spread(self.params.pixels * self.params.frames * self.lanes))
    }
}
