//! Kernels that convert a network's input and output. Shaders: `planes_in.wgsl`, `planes_out.wgsl`,
//! `image_out.wgsl`, `image_check.wgsl`.

use crate::kernels::{Access, Interface, Launch, Value, groups, kernel, params, spread};
use crate::model::config::Packing;
use crate::tensor::Storage;

params! {
    /// Parameters of `planes_in`.
    PlanesInParams, PLANES_IN_PARAMS {
        pixels: u32, width: u32, channels: u32, channels4: u32, plane: u32, x_width: u32, frames: u32,
         channel_step: u32, place_step: u32,
    }
}

/// Interface of `planes_in`, which scales and shifts planar f32 into stored NHWC.
pub const PLANES_IN: Interface = kernel!(
    "planes_in",
    &[("x", Access::Read), ("factor_offset", Access::Read), ("y", Access::ReadWrite)],
    PLANES_IN_PARAMS
);

/// Launches `planes_in`. See [`crate::model::graph::Transform`] for `patch`, `packing` and
/// `squash`.
pub fn planes_in(storage: Storage, patch: u32, packing: Packing, squash: bool, params: PlanesInParams) -> Launch {
    let values = vec![
        ("PATCH", Value::U32(patch)),
        ("SQUASH", Value::Bool(squash)),
        ("UNPACKED", Value::Bool(packing == Packing::Unpacked)),
        ("Stored", Value::Type(storage.wgsl_type())),
    ];
    PLANES_IN.launch(
        values,
        &params,
        [groups(u64::from(params.pixels) * u64::from(params.frames) * u64::from(params.channels4)), 1, 1],
    )
}

params! {
    /// Parameters of `planes_out`.
    PlanesOutParams, PLANES_OUT_PARAMS {
        pixels: u32, channels: u32, channels4: u32, frames: u32, factor: f32, offset: f32,
    }
}

/// Interface of `planes_out`, which converts f32 NHWC to planar f32.
pub const PLANES_OUT: Interface =
    kernel!("planes_out", &[("x", Access::Read), ("y", Access::ReadWrite)], PLANES_OUT_PARAMS);

/// Launches `planes_out`. If `clamp`, values are cut off at -1 and 1.
pub fn planes_out(clamp: bool, params: PlanesOutParams) -> Launch {
    PLANES_OUT.launch(
        vec![("CLAMP", Value::Bool(clamp))],
        &params,
        spread(params.pixels * params.frames * params.channels4),
    )
}

params! {
    /// Parameters of `image_out`.
    ImageOutParams, IMAGE_OUT_PARAMS {
        pixels: u32, width: u32, stride: u32, frames: u32, factor: f32, offset: f32,
    }
}

/// Interface of `image_out`, which converts an image to RGBA8.
pub const IMAGE_OUT: Interface =
    kernel!("image_out", &[("x", Access::Read), ("y", Access::ReadWrite)], IMAGE_OUT_PARAMS);

/// Launches `image_out`. If `bgra`, it writes BGRA8 instead. If `alpha`, the fourth channel is the
/// opacity.
pub fn image_out(bgra: bool, alpha: bool, params: ImageOutParams) -> Launch {
    IMAGE_OUT.launch(
        vec![("ALPHA", Value::Bool(alpha)), ("BGRA", Value::Bool(bgra))],
        &params,
        [groups(u64::from(params.pixels) * u64::from(params.frames)), 1, 1],
    )
}

params! {
    /// Parameters of `image_check`.
    ImageCheckParams, IMAGE_CHECK_PARAMS {
        pixels: u32, width: u32, stride: u32, check: u32,
    }
}

/// Interface of `image_check`, which finds pixels of a picture that are not finite.
pub const IMAGE_CHECK: Interface = kernel!("image_check", &[("y", Access::ReadWrite)], IMAGE_CHECK_PARAMS);

/// Words that `image_check` writes, one for each workgroup.
pub const CHECK_WORDS: u32 = 64;

/// Launches `image_check`.
pub fn image_check(params: ImageCheckParams) -> Launch {
    IMAGE_CHECK.launch(vec![("GROUPS", Value::U32(CHECK_WORDS))], &params, [CHECK_WORDS, 1, 1])
}
