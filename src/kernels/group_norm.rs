//! Group normalisation in three kernels. The first takes moments of runs of pixels, and the second
//! merges them into a scale and a shift for each channel. The third applies the norm for readers
//! that cannot apply it themselves. Shaders: `group_norm_{stats,finish,apply}.wgsl`.

use crate::kernels::activation;
use crate::kernels::{Access, Interface, Launch, Value, groups, kernel, params, spread};
use crate::model::graph::Activation;
use crate::tensor::Storage;

/// Bytes of the moments of four channels of one run: count, mean, M2.
pub const MOMENTS_VEC4_BYTES: u64 = 48;
/// Bytes of the norm of four channels: scale, shift.
pub const NORM_VEC4_BYTES: u64 = 32;

params! {
    /// Parameters of `group_norm_stats`.
    StatsParams, STATS_PARAMS {
        pixels: u32, run: u32, runs: u32, x_offset: u32, channels4: u32, moments_offset: u32,
    }
}

/// Interface of `group_norm_stats`.
pub const STATS: Interface =
    kernel!("group_norm_stats", &[("x", Access::Read), ("moments", Access::ReadWrite)], STATS_PARAMS);

/// Launches `group_norm_stats`.
pub fn stats(storage: Storage, params: StatsParams) -> Launch {
    STATS.launch(
        vec![("Stored", Value::Type(storage.wgsl_type()))],
        &params,
        [groups(u64::from(params.runs) * u64::from(params.channels4)), 1, 1],
    )
}

params! {
    /// Parameters of `group_norm_finish`.
    FinishParams, FINISH_PARAMS {
        runs: u32, channels: u32, channels4: u32, channels_per_group: u32, frames: u32, eps: f32,
    }
}

/// Interface of `group_norm_finish`.
pub const FINISH: Interface = kernel!(
    "group_norm_finish",
    &[("moments", Access::Read), ("weight", Access::Read), ("bias", Access::Read), ("norm", Access::ReadWrite),],
    FINISH_PARAMS
);

/// Invocations of a workgroup of `group_norm_finish`: the most that every device allows.
const FINISH_WORKGROUP: u32 = 256;

/// Launches `group_norm_finish` with one workgroup for each group and frame.
pub fn finish(params: FinishParams) -> Launch {
    FINISH.launch(
        vec![("WORKGROUP", Value::U32(FINISH_WORKGROUP))],
        &params,
        [params.channels / params.channels_per_group, params.frames, 1],
    )
}

params! {
    /// Parameters of `group_norm_apply`.
    ApplyParams, APPLY_PARAMS {
        elements: u32, channels4: u32, x_offset: u32, y_offset: u32, y_pixel4: u32,
    }
}

/// Interface of `group_norm_apply`.
pub const APPLY: Interface =
    kernel!("group_norm_apply", &[("x", Access::Read), ("norm", Access::Read), ("y", Access::ReadWrite)], APPLY_PARAMS);

/// Launches `group_norm_apply`, with `activation` after the norm.
pub fn apply(storage: Storage, activation: Option<Activation>, params: ApplyParams) -> Launch {
    APPLY.launch(
        vec![activation::value(activation), ("Stored", Value::Type(storage.wgsl_type()))],
        &params,
        spread(params.elements),
    )
}
