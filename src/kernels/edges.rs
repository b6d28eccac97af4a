//! Where tensors enter and leave the decoder. Shaders: `latents_in.wgsl`, `image_out.wgsl`.

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
        /// First element of the chunk's own rows in x.
        x_offset: u32,
        /// First pixel of the chunk in y.
        y_offset: u32,
        /// Pixels of one plane of y.
        plane: u32,
    }
}

/// `image_out`: the image to RGBA8 or planar f32.
pub const IMAGE_OUT: Interface = Interface {
    file: "image_out",
    bindings: &[("x", Access::Read), ("y", Access::ReadWrite)],
    params: IMAGE_OUT_PARAMS,
};

/// Launches `image_out`; `raw` asks for planar f32.
pub fn image_out(raw: bool, params: ImageOutParams) -> Launch {
    Launch {
        variant: Variant { file: "image_out", values: vec![("RAW", Value::Bool(raw))] },
        workgroups: [groups(u64::from(params.pixels)), 1, 1],
        params: bytemuck::bytes_of(&params).to_vec(),
        macs: 0,
    }
}
