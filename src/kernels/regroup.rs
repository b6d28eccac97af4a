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

/// Kind of a `regroup`.
#[derive(Debug, Clone, Copy)]
pub struct RegroupKind {
    /// True for copies, false for means.
    pub double: bool,
    /// True if the result is cut off below 0.
    pub relu: bool,
    /// True if it adds to `y`.
    pub sum: bool,
}

/// Launches `regroup` from `x` to `y`, which are stored as `input` and `output`.
pub fn regroup(input: Storage, output: Storage, kind: RegroupKind, params: RegroupParams) -> Launch {
    let values = vec![
        ("DOUBLE", Value::Bool(kind.double)),
        ("SUM", Value::Bool(kind.sum)),
        ("RELU", Value::Bool(kind.relu)),
        ("Stored", Value::Type(input.wgsl_type())),
        ("Output", Value::Type(output.wgsl_type())),
    ];
    Launch {
        variant: Variant { file: "regroup", values },
        workgroups: spread(params.pixels * params.channels4),
        params: bytemuck::bytes_of(&params).to_vec(),
        macs: 0,
    }
}
