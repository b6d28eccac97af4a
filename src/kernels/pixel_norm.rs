//! The norm of each pixel over its channels (RMS norm), for one band at a time. Shader:
//! `pixel_norm_apply.wgsl`.

use crate::kernels::activation;
use crate::kernels::{Access, Interface, Launch, Value, Variant, kernel, params, spread};
use crate::limits::DeviceKind;
use crate::model::graph::Activation;
use crate::tensor::Storage;

params! {
    /// Parameters of `pixel_norm_apply`.
    PixelNormParams, PARAMS {
        pixels: u32, channels4: u32, frames: u32, x_offset: u32, y_offset: u32, y_pixel4: u32,
        root: f32, least: f32, eps: f32,
    }
}

/// Interface of `pixel_norm_apply`.
pub const INTERFACE: Interface =
    kernel!("pixel_norm_apply", &[("x", Access::Read), ("gamma", Access::Read), ("y", Access::ReadWrite)], PARAMS);

/// Returns the invocations that take a pixel on a device of this kind. All give the same bits.
pub fn lanes(kind: DeviceKind) -> u32 {
    match kind {
        DeviceKind::Cpu | DeviceKind::Host => 1,
        DeviceKind::Gpu => 4,
    }
}

/// Launches `pixel_norm_apply` by `lanes` invocations a pixel, with `activation` after the norm.
pub fn apply(storage: Storage, activation: Option<Activation>, lanes: u32, params: PixelNormParams) -> Launch {
    let values = vec![
        ("LANES", Value::U32(lanes)),
        ("SUMS", Value::U32(4 / lanes)),
        activation::value(activation),
        ("Stored", Value::Type(storage.wgsl_type())),
    ];
    Launch {
        variant: Variant { file: "pixel_norm_apply", values },
        workgroups: spread(params.pixels * params.frames * lanes),
        params: bytemuck::bytes_of(&params).to_vec(),
        macs: 0,
    }
}
