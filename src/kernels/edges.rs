//! Kernels that convert a network's input and output. Shaders: `planes_in.wgsl`, `planes_out.wgsl`,
//! `image_out.wgsl`, `image_check.wgsl`.

use crate::kernels::{Launch, Value, kernel, line, spread};
use crate::model::config::Packing;
use crate::tensor::Storage;

kernel! {
    /// Interface of `planes_in`, which scales and shifts planar f32 into stored NHWC.
    PLANES_IN = "planes_in"(x: Read, factor_offset: Read, y: ReadWrite);
    PlanesInParams {
        pixels: u32, width: u32, channels: u32, channels4: u32, plane: u32, x_width: u32,
        frames: u32, channel_step: u32, place_step: u32,
    }
}

/// Launches `planes_in`. See [`crate::model::graph::Transform`] for `patch`, `packing` and
/// `squash`.
pub fn planes_in(storage: Storage, patch: u32, packing: Packing, squash: bool, params: PlanesInParams) -> Launch {
    let values = vec![
        ("PATCH", Value::U32(patch)),
        ("SQUASH", Value::Bool(squash)),
        ("UNPACKED", Value::Bool(packing == Packing::Unpacked)),
        ("Stored", Value::Type(storage.wgsl_type())),
    ];
    PLANES_IN.launch(values, &params, line(&[params.pixels, params.frames, params.channels4]))
}

kernel! {
    /// Interface of `planes_out`, which converts f32 NHWC to planar f32.
    PLANES_OUT = "planes_out"(x: Read, y: ReadWrite);
    PlanesOutParams {
        pixels: u32, channels: u32, channels4: u32, frames: u32, factor: f32, offset: f32,
    }
}

/// Launches `planes_out`. If `clamp`, values are cut off at -1 and 1.
pub fn planes_out(clamp: bool, params: PlanesOutParams) -> Launch {
    PLANES_OUT.launch(
        vec![("CLAMP", Value::Bool(clamp))],
        &params,
        spread(params.pixels * params.frames * params.channels4),
    )
}

kernel! {
    /// Interface of `image_out`, which converts an image to RGBA8.
    IMAGE_OUT = "image_out"(x: Read, y: ReadWrite);
    ImageOutParams { pixels: u32, width: u32, stride: u32, frames: u32, factor: f32, offset: f32 }
}

/// Launches `image_out`. If `bgra`, it writes BGRA8 instead. If `alpha`, the fourth channel is the
/// opacity.
pub fn image_out(bgra: bool, alpha: bool, params: ImageOutParams) -> Launch {
    IMAGE_OUT.launch(
        vec![("ALPHA", Value::Bool(alpha)), ("BGRA", Value::Bool(bgra))],
        &params,
        line(&[params.pixels, params.frames]),
    )
}

kernel! {
    /// Interface of `image_check`, which finds pixels of a picture that are not finite.
    IMAGE_CHECK = "image_check"(y: ReadWrite);
    ImageCheckParams { pixels: u32, width: u32, stride: u32, check: u32 }
}

/// Words that `image_check` writes, one for each workgroup.
pub const CHECK_WORDS: u32 = 64;

/// Launches `image_check`.
pub fn image_check(params: ImageCheckParams) -> Launch {
    IMAGE_CHECK.launch(vec![("GROUPS", Value::U32(CHECK_WORDS))], &params, [CHECK_WORDS, 1, 1])
}
