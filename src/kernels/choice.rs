//! Which kernel and which tile a convolution or product gets on a device. Changes speed, never the result.

use serde::{Deserialize, Serialize};

use crate::limits::{DeviceKind, DeviceLimits};

/// The kernel of a product, and its tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatmulTile {
    /// `matmul`: each invocation for itself. Best on CPU drivers, which have no faster memory to share.
    Register {
        /// Rows per invocation, a multiple of 4.
        rows: u32,
        /// vec4 columns per invocation.
        columns4: u32,
    },
    /// `matmul_shared`: 64 by 64 for each workgroup.
    Shared,
}

/// Rows and columns of one workgroup of `matmul_shared`.
pub const SHARED_TILE: u32 = 64;

impl std::fmt::Display for MatmulTile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Register { rows, columns4 } => write!(f, "register {rows}x{}", columns4 * 4),
            Self::Shared => write!(f, "shared {SHARED_TILE}x{SHARED_TILE}"),
        }
    }
}

impl MatmulTile {
    /// vec4 columns that one workgroup computes: the width of a block of transformed filters.
    pub fn columns4(self) -> u32 {
        match self {
            Self::Register { columns4, .. } => columns4,
            Self::Shared => SHARED_TILE / 4,
        }
    }
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
    /// What measured best on devices of this kind; for GPUs, what others measured (wgpu's and llama.cpp's tiled products).
    pub fn for_device(limits: &DeviceLimits) -> Self {
        match limits.kind {
            DeviceKind::Cpu => Self {
                winograd_tile: MatmulTile::Register { rows: 8, columns4: 4 },
                matmul_tile: MatmulTile::Register { rows: 8, columns4: 4 },
                direct_tile: DirectTile { pixels: 8, columns4: 1 },
                winograd_scratch_bytes: 16 << 20,
            },
            DeviceKind::Gpu => Self {
                winograd_tile: MatmulTile::Shared,
                matmul_tile: MatmulTile::Shared,
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
