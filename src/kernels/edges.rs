//! Kernels that convert a network's input and output. Shaders: `planes_in.wgsl`, `planes_out.wgsl`,
//! `image_out.wgsl`, `image_check.wgsl`.

use crate::kernels::{Access, Interface, Launch, Value, Variant, groups, params, spread};
use crate::model::config::Packing;
use crate::tensor::Storage;

params! {
    /// Parameters of `planes_in`.
    PlanesInParams, PLANES_IN_PARAMS {
        /// Pixels of this chunk.
        pixels: u32,
        /// Pixels of one row of the chunk.
        width: u32,
        /// Channels, not padded.
        channels: u32,
        /// Channels / 4, rounded up.
        channels4: u32,
        /// Pixels of one channel of x. x has only the rows of this chunk.
        plane: u32,
        /// Pixels of a row of x.
        x_width: u32,
        /// Frames of x and y.
        frames: u32,
        /// Elements from the factor of one channel to the next.
        channel_step: u32,
        /// Elements from the factor of one place in a square to the next.
        place_step: u32,
    }
}

/// Interface of `planes_in`, which scales and shifts planar f32 into stored NHWC.
pub const PLANES_IN: Interface = Interface {
    file: "planes_in",
    bindings: &[("x", Access::Read), ("factor_offset", Access::Read), ("y", Access::ReadWrite)],
    params: PLANES_IN_PARAMS,
};

/// Launches `planes_in`. See [`crate::model::graph::Transform`] for `patch`, `packing` and
/// `squash`.
pub fn planes_in(storage: Storage, patch: u32, packing: Packing, squash: bool, params: PlanesInParams) -> Launch {
    let values = vec![
        ("PATCH", Value::U32(patch)),
        ("SQUASH", Value::Bool(squash)),
        ("UNPACKED", Value::Bool(packing == Packing::Unpacked)),
        ("Stored", Value::Type(storage.wgsl_type())),
    ];
    Launch {
        variant: Variant { file: "planes_in", values },
        workgroups: [groups(u64::from(params.pixels) * u64::from(params.frames) * u64::from(params.channels4)), 1, 1],
        params: bytemuck::bytes_of(&params).to_vec(),
        macs: 0,
    }
}

params! {
    /// Parameters of `planes_out`.
    PlanesOutParams, PLANES_OUT_PARAMS {
        /// Pixels of this chunk.
        pixels: u32,
        /// Channels, not padded.
        channels: u32,
        /// Channels / 4, rounded up.
        channels4: u32,
        /// Frames of x and y.
        frames: u32,
        /// Factor of the network's result.
        factor: f32,
        /// Summand of the network's result.
        offset: f32,
    }
}

/// Interface of `planes_out`, which converts f32 NHWC to planar f32.
pub const PLANES_OUT: Interface = Interface {
    file: "planes_out",
    bindings: &[("x", Access::Read), ("y", Access::ReadWrite)],
    params: PLANES_OUT_PARAMS,
};

/// Launches `planes_out`. If `clamp`, values are cut off at -1 and 1.
pub fn planes_out(clamp: bool, params: PlanesOutParams) -> Launch {
    Launch {
        variant: Variant { file: "planes_out", values: vec![("CLAMP", Value::Bool(clamp))] },
        workgroups: spread(params.pixels * params.frames * params.channels4),
        params: bytemuck::bytes_of(&params).to_vec(),
        macs: 0,
    }
}

params! {
    /// Parameters of `image_out`.
    ImageOutParams, IMAGE_OUT_PARAMS {
        /// Pixels of this chunk.
        pixels: u32,
        /// Pixels of one row of the chunk.
        width: u32,
        /// Pixels from one row of y to the next.
        stride: u32,
        /// Frames of x and y.
        frames: u32,
        /// Factor of the network's result.
        factor: f32,
        /// Summand of the network's result.
        offset: f32,
    }
}

/// Interface of `image_out`, which converts an image to RGBA8.
pub const IMAGE_OUT: Interface = Interface {
    file: "image_out",
    bindings: &[("x", Access::Read), ("y", Access::ReadWrite)],
    params: IMAGE_OUT_PARAMS,
};

/// Launches `image_out`. If `bgra`, it writes BGRA8 instead.
pub fn image_out(bgra: bool, params: ImageOutParams) -> Launch {
    Launch {
        variant: Variant { file: "image_out", values: vec![("BGRA", Value::Bool(bgra))] },
        workgroups: [groups(u64::from(params.pixels) * u64::from(params.frames)), 1, 1],
        params: bytemuck::bytes_of(&params).to_vec(),
        macs: 0,
    }
}

params! {
    /// Parameters of `image_check`.
    ImageCheckParams, IMAGE_CHECK_PARAMS {
        /// Pixels of this chunk, of all frames.
        pixels: u32,
        /// Pixels of one row of the chunk.
        width: u32,
        /// Pixels from one row to the next.
        stride: u32,
        /// First word after the pixels.
        check: u32,
    }
}

/// Interface of `image_check`, which finds pixels of a picture that are not finite.
pub const IMAGE_CHECK: Interface =
    Interface { file: "image_check", bindings: &[("y", Access::ReadWrite)], params: IMAGE_CHECK_PARAMS };

/// Words that `image_check` writes, one for each workgroup.
pub const CHECK_WORDS: u32 = 64;

/// Launches `image_check`.
pub fn image_check(params: ImageCheckParams) -> Launch {
    Launch {
        variant: Variant { file: "image_check", values: vec![("GROUPS", Value::U32(CHECK_WORDS))] },
        workgroups: [CHECK_WORDS, 1, 1],
        params: bytemuck::bytes_of(&params).to_vec(),
        macs: 0,
    }
}
