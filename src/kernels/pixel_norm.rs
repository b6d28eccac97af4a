//! The norm of each pixel over its channels (RMS norm), for one band at a time. Shader:
//! `pixel_norm_apply.wgsl`.

use crate::kernels::activation;
use crate::kernels::{Access, Interface, Launch, Value, Variant, params, spread};
use crate::model::graph::Activation;
use crate::tensor::Storage;

params! {
    /// Parameters of `pixel_norm_apply`.
    PixelNormParams, PARAMS {
        /// Pixels of this band.
        pixels: u32,
        /// Channels / 4.
        channels4: u32,
        /// Frames of a pixel of x.
        frames: u32,
        /// First element of the band in x.
        x_offset: u32,
        /// First element of the band in y.
        y_offset: u32,
        /// Elements from pixel to pixel of y.
        y_pixel4: u32,
        /// Square root of the number of channels.
        root: f32,
        /// Least length of a pixel.
        least: f32,
    }
}

/// Interface of `pixel_norm_apply`.
pub const INTERFACE: Interface = Interface {
    file: "pixel_norm_apply",
    bindings: &[("x", Access::Read), ("gamma", Access::Read), ("y", Access::ReadWrite)],
    params: PARAMS,
};

/// Launches `pixel_norm_apply`, with `activation` after the norm.
pub fn apply(storage: Storage, activation: Option<Activation>, params: PixelNormParams) -> Launch {
    let values = vec![activation::value(activation), ("Stored", Value::Type(storage.wgsl_type()))];
    Launch {
        variant: Variant { file: "pixel_norm_apply", values },
        workgroups: spread(params.pixels * params.frames),
        params: bytemuck::bytes_of(&params).to_vec(),
        macs: 0,
    }
}
