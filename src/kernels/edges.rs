//! Where tensors enter and leave the decoder. Shaders: `latents_in.wgsl`, `image_out.wgsl`, `image_check.wgsl`.

use crate::kernels::{Access, Interface, Launch, Value, Variant, groups, params};
use crate::tensor::Storage;

params! {
    /// Numbers of `latents_in`.
    LatentsInParams, LATENTS_IN_PARAMS {
        /// Pixels of this chunk.
        pixels: u32,
        /// Latent channels, not padded.
        channels: u32,
        /// Channels / 4, rounded up.
        channels4: u32,
        /// Pixels of the whole latent.
        plane: u32,
        /// First pixel of this chunk in x.
        x_offset: u32,
        /// First element of this chunk's own rows in y.
        y_offset: u32,
    }
}

/// `latents_in`: planar f32 to stored NHWC, scaled and shifted.
pub const LATENTS_IN: Interface = Interface {
    file: "latents_in",
    bindings: &[("x", Access::Read), ("factor_offset", Access::Read), ("y", Access::ReadWrite)],
    params: LATENTS_IN_PARAMS,
};

/// Launches `latents_in`.
pub fn latents_in(storage: Storage, params: LatentsInParams) -> Launch {
    Launch {
        variant: Variant { file: "latents_in", values: vec![("Stored", Value::Type(storage.wgsl_type()))] },
        workgroups: [groups(u64::from(params.pixels) * u64::from(params.channels4)), 1, 1],
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
        /// Pixels from one row of y to the next, where y is RGBA8.
        stride: u32,
        /// Pixels of one plane of y, where y is planar.
        plane: u32,
    }
}

/// `image_out`: the image to RGBA8 or planar f32.
pub const IMAGE_OUT: Interface = Interface {
    file: "image_out",
    bindings: &[("x", Access::Read), ("y", Access::ReadWrite)],
    params: IMAGE_OUT_PARAMS,
};

/// What `image_out` makes of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colors {
    /// Planar f32.
    Raw,
    /// Red, green, blue, alpha of 8 bits each.
    Rgba,
    /// Blue, green, red, alpha.
    Bgra,
}

/// Launches `image_out`.
pub fn image_out(colors: Colors, params: ImageOutParams) -> Launch {
    let values = vec![("RAW", Value::Bool(colors == Colors::Raw)), ("BGRA", Value::Bool(colors == Colors::Bgra))];
    Launch {
        variant: Variant { file: "image_out", values },
        workgroups: [groups(u64::from(params.pixels)), 1, 1],
        params: bytemuck::bytes_of(&params).to_vec(),
        macs: 0,
    }
}

params! {
    /// Numbers of `image_check`.
    ImageCheckParams, IMAGE_CHECK_PARAMS {
        /// Pixels of this chunk.
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
