//! Means or copies of channels, at another size. Shader: `regroup.wgsl`.

use crate::kernels::{Access, Interface, Launch, Value, Variant, kernel, params, spread};
use crate::tensor::Storage;

params! {
    /// Parameters of `regroup`.
    RegroupParams, PARAMS {
        pixels: u32, width: u32, channels: u32, channels4: u32, x_width: u32, x_channels4: u32, x_offset: u32,
        y_offset: u32, side: u32, places: u32, count: u32, scale: f32,
    }
}

/// Interface of `regroup`.
pub const INTERFACE: Interface = kernel!("regroup", &[("x", Access::Read), ("y", Access::ReadWrite)], PARAMS);

/// Launches `regroup`: copies if `double`, else means. If `sum`, it adds to `y`.
pub fn regroup(storage: Storage, double: bool, sum: bool, params: RegroupParams) -> Launch {
    let values =
        vec![("DOUBLE", Value::Bool(double)), ("SUM", Value::Bool(sum)), ("Stored", Value::Type(storage.wgsl_type()))];
    Launch {
        variant: Variant { file: "regroup", values },
        workgroups: spread(params.pixels * params.channels4),
        params: bytemuck::bytes_of(&params).to_vec(),
        macs: 0,
    }
}
