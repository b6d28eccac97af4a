//! Which kernel and which tile a convolution or product gets on a device. Changes speed, never the result.

use serde::{Deserialize, Serialize};

use crate::limits::{DeviceKind, DeviceLimits};

/// Register tile of `matmul`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MatmulTile {
    /// Rows per invocation, a multiple of 4.
    pub rows: u32,
    /// vec4 columns per invocation.
    pub columns4: u32,
}

/// Register tile of `conv2d_direct`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DirectTile {
    /// Neighbouring pixels per invocation.
    pub pixels: u32,
    /// vec4 output channels per invocation.
    pub columns4: u32,
}

/// How a 3x3 convolution is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conv3x3 {
    /// Three dispatches a band, a quarter of the multiplications.
    Winograd,
    /// One dispatch a band.
    Direct,
}

/// The kernels of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Choice {
    /// Tile of the 36 products of a Winograd convolution.
    pub winograd_tile: MatmulTile,
    /// Tile of all other products.
    pub matmul_tile: MatmulTile,
    /// Tile of direct convolutions.
    pub direct_tile: DirectTile,
    /// Bytes that each of the two Winograd intermediates of a band should stay within, to remain in cache.
    pub winograd_scratch_bytes: u64,
}

/// Fewer input or output channels than this and the transforms of a Winograd convolution cost more than they save.
const WINOGRAD_MIN_CHANNELS: u32 = 16;

impl Choice {
    /// What measured best on devices of this kind.
    pub fn for_device(limits: &DeviceLimits) -> Self {
        match limits.kind {
            DeviceKind::Cpu => Self {
                winograd_tile: MatmulTile { rows: 4, columns4: 4 },
                matmul_tile: MatmulTile { rows: 4, columns4: 4 },
                direct_tile: DirectTile { pixels: 8, columns4: 1 },
                winograd_scratch_bytes: 16 << 20,
            },
            DeviceKind::Gpu => Self {
                winograd_tile: MatmulTile { rows: 4, columns4: 2 },
                matmul_tile: MatmulTile { rows: 4, columns4: 2 },
                direct_tile: DirectTile { pixels: 4, columns4: 1 },
                winograd_scratch_bytes: 16 << 20,
            },
        }
    }

    /// The way of a 3x3 convolution with these channel counts.
    pub fn conv3x3(&self, c_in: u32, c_out: u32) -> Conv3x3 {
        if c_in < WINOGRAD_MIN_CHANNELS || c_out < WINOGRAD_MIN_CHANNELS { Conv3x3::Direct } else { Conv3x3::Winograd }
    }
}
