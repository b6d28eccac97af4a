//! Group normalisation in three kernels. The first takes moments of runs of pixels, and the second
//! merges them into a scale and a shift for each channel. The third applies the norm for readers
//! that cannot apply it themselves. Shaders: `group_norm_{stats,finish,apply}.wgsl`.

use crate::kernels::activation;
use crate::kernels::{Launch, Value, kernel, line, spread};
use crate::model::graph::Activation;
use crate::tensor::Storage;

/// Bytes of the moments of four channels of one run: count, mean, M2.
pub const MOMENTS_VEC4_BYTES: u64 = 48;
/// Bytes of the norm of four channels: scale, shift.
pub const NORM_VEC4_BYTES: u64 = 32;

kernel! {
    /// Interface of `group_norm_stats`.
    STATS = "group_norm_stats"(x: Read, moments: ReadWrite);
    StatsParams {
        pixels: u32, run: u32, runs: u32, x_offset: u32, channels4: u32, moments_offset: u32,
    }
}

/// Launches `group_norm_stats`.
pub fn stats(storage: Storage, params: StatsParams) -> Launch {
    STATS.launch(vec![("Stored", Value::Type(storage.wgsl_type()))], &params, line(&[params.runs, params.channels4]))
}

kernel! {
    /// Interface of `group_norm_finish`.
    FINISH = "group_norm_finish"(moments: Read, weight: Read, bias: Read, norm: ReadWrite);
    FinishParams {
        runs: u32, channels: u32, channels4: u32, channels_per_group: u32, frames: u32, eps: f32,
    }
}

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

kernel! {
    /// Interface of `group_norm_apply`.
    APPLY = "group_norm_apply"(x: Read, norm: Read, y: ReadWrite);
    ApplyParams { elements: u32, channels4: u32, x_offset: u32, y_offset: u32, y_pixel4: u32 }
}

/// Launches `group_norm_apply`, with `activation` after the norm.
pub fn apply(storage: Storage, activation: Option<Activation>, params: ApplyParams) -> Launch {
    APPLY.launch(
        vec![activation::value(activation), ("Stored", Value::Type(storage.wgsl_type()))],
        &params,
        spread(params.elements),
    )
}
