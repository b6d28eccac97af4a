//! The norm of each pixel over its channels (RMS norm), for one band at a time. Shader:
//! `pixel_norm_apply.wgsl`.

use crate::kernels::activation;
use crate::kernels::{Access, Interface, Launch, Value, Variant, kernel, params, spread};
use crate::model::graph::Activation;
use crate::tensor::Storage;

params! {
    /// Parameters of `pixel_norm_apply`.
    PixelNormParams, PARAMS {
        pixels: u32, channels4: u32, frames: u32, x_offset: u32, y_offset: u32, y_pixel4: u32,
        root: f32, least: f32,
    }
}

/// Interface of `pixel_norm_apply`.
pub const INTERFACE: Interface =
    kernel!("pixel_norm_apply", &[("x", Access::Read), ("gamma", Access::Read), ("y", Access::ReadWrite)], PARAMS);

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
