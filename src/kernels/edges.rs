//! Where tensors enter and leave a network. Shaders: `planes_in.wgsl`, `planes_out.wgsl`,
//! `image_out.wgsl`, `image_check.wgsl`.

use crate::kernels::{Access, Interface, Launch, Value, Variant, groups, params, spread};
use crate::model::config::Packing;
use crate::tensor::Storage;

params! {
    /// Numbers of `planes_in`.
    PlanesInParams, PLANES_IN_PARAMS {
        /// Pixels of this chunk.
        pixels: u32,
        /// Pixels of one of its rows.
        width: u32,
        /// Channels, not padded.
        channels: u32,
        /// Channels / 4, rounded up.
        channels4: u32,
        /// Pixels of one channel of x, which has the rows of this chunk alone.
        plane: u32,
        /// Pixels of a row of x.
        x_width: u32,
        /// Frames of x and y.
        frames: u32,
        /// From the factor of one channel to the next.
        channel_step: u32,
        /// From the factor of one place in a square to the next.
        place_step: u32,
    }
}

/// `planes_in`: planar f32 to stored NHWC, scaled and shifted.
pub const PLANES_IN: Interface = Interface {
    file: "planes_in",
    bindings: &[("x", Access::Read), ("factor_offset", Access::Read), ("y", Access::ReadWrite)],
    params: PLANES_IN_PARAMS,
};

/// Launches `planes_in`: see [`crate::model::graph::Transform`] for `patch`, `packing` and
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
    /// Numbers of `planes_out`.
    PlanesOutParams, PLANES_OUT_PARAMS {
        /// Pixels of this chunk.
        pixels: u32,
        /// Channels, not padded.
        channels: u32,
        /// Channels / 4, rounded up.
        channels4: u32,
        /// Frames of x and y.
        frames: u32,
        /// Factor of what the network makes.
        factor: f32,
        /// Added to that.
        offset: f32,
    }
}

/// `planes_out`: f32 NHWC to planar f32.
pub const PLANES_OUT: Interface = Interface {
    file: "planes_out",
    bindings: &[("x", Access::Read), ("y", Access::ReadWrite)],
    params: PLANES_OUT_PARAMS,
};

/// Launches `planes_out`; with `clamp`, what lies beyond -1..1 is cut off.
pub fn planes_out(clamp: bool, params: PlanesOutParams) -> Launch {
    Launch {
        variant: Variant { file: "planes_out", values: vec![("CLAMP", Value::Bool(clamp))] },
        workgroups: spread(params.pixels * params.frames * params.channels4),
        params: bytemuck::bytes_of(&params).to_vec(),
        macs: 0,
    }
}

params! {
    /// Numbers of `image_out`.
    ImageOutParams, IMAGE_OUT_PARAMS {
        /// Pixels of this chunk.
        pixels: u32,
        /// Pixels of one of its rows.
        width: u32,
        /// Pixels from one row of y to the next.
        stride: u32,
        /// Frames of x and y.
        frames: u32,
        /// Factor of what the network makes.
        factor: f32,
        /// Added to that.
        offset: f32,
    }
}

/// `image_out`: the image to RGBA8.
pub const IMAGE_OUT: Interface = Interface {
    file: "image_out",
    bindings: &[("x", Access::Read), ("y", Access::ReadWrite)],
    params: IMAGE_OUT_PARAMS,
};

/// Launches `image_out`; with `bgra`, blue comes first.
pub fn image_out(bgra: bool, params: ImageOutParams) -> Launch {
    Launch {
        variant: Variant { file: "image_out", values: vec![("BGRA", Value::Bool(bgra))] },
        workgroups: [groups(u64::from(params.pixels) * u64::from(params.frames)), 1, 1],
        params: bytemuck::bytes_of(&params).to_vec(),
        macs: 0,
    }
}

params! {
    /// Numbers of `image_check`.
    ImageCheckParams, IMAGE_CHECK_PARAMS {
        /// Pixels of this chunk, of all frames.
        pixels: u32,
        /// Pixels of one of its rows.
        width: u32,
        /// Pixels from one row to the next.
        stride: u32,
        /// First word after the pixels.
        check: u32,
    }
}

/// `image_check`: which pixels of a picture are not finite.
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
