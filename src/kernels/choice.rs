//! Which kernel and which tile a convolution or product gets on a device. Changes speed, never the
//! result.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::limits::{DeviceKind, DeviceLimits, MatrixUnits, Vendor};
use crate::model::graph::{Border, Window};
use crate::tensor::Storage;

/// The kernel of a product, and its tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatmulTile {
    /// `matmul`: each invocation for itself. For CPU drivers, which have no faster memory to share.
    Register {
        /// Rows per invocation, a multiple of 4.
        rows: u32,
        /// vec4 columns per invocation.
        columns4: u32,
    },
    /// `matmul_quad`: four invocations load for each other. Best on CPU drivers that can.
    Quad {
        /// Rows per invocation, a multiple of 4.
        rows: u32,
        /// vec4 columns per invocation, a multiple of 4.
        columns4: u32,
    },
    /// `matmul_shared`: 64 by 64 for each workgroup.
    Shared {
        /// Rows per invocation / 4.
        rows4: u32,
        /// vec4 columns per invocation.
        columns4: u32,
    },
}

/// Rows and columns of one workgroup of `matmul_shared`.
pub const SHARED_TILE: u32 = 64;

/// Invocations of a quad, which load a vec4 column each.
const QUAD: u32 = 4;

impl std::fmt::Display for MatmulTile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Register { rows, columns4 } => write!(f, "register {rows}x{}", columns4 * 4),
            Self::Quad { rows, columns4 } => write!(f, "quad {rows}x{}", columns4 * 4),
            Self::Shared { rows4, columns4 } => {
                write!(f, "shared {SHARED_TILE}x{SHARED_TILE} by {}x{}", rows4 * 4, columns4 * 4)
            }
        }
    }
}

impl MatmulTile {
    /// vec4 columns that one workgroup computes.
    pub fn columns4(self) -> u32 {
        match self {
            Self::Register { columns4, .. } | Self::Quad { columns4, .. } => columns4,
            Self::Shared { .. } => SHARED_TILE / 4,
        }
    }

    /// vec4 columns of a block of transformed filters, which lies in one piece.
    pub fn block_columns4(self) -> u32 {
        match self {
            Self::Quad { .. } => QUAD,
            Self::Register { .. } | Self::Shared { .. } => self.columns4(),
        }
    }
}

/// What computes the 36 products of a Winograd convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Products {
    /// The product of everything else, with this tile.
    Tile(MatmulTile),
    /// `matmul_matrix`, on matrix units. Browsers have none, and their module none of this.
    #[cfg(not(target_arch = "wasm32"))]
    Matrix(MatrixUnits),
}

/// Matrices of a unit that one workgroup of `matmul_matrix` computes, along rows and along columns.
pub const MATRICES: u32 = 4;

impl Products {
    /// Those of a convolution whose transformed input is kept as `transformed`, from `frame4`
    /// groups of four channels of each frame that it sees to `n4`: `tile`, unless the device has
    /// matrix units, both sides are halves and whole matrices fill all of it. Then the other would
    /// do as well: both are declared `fast`.
    pub fn new(tile: MatmulTile, units: Option<MatrixUnits>, transformed: Storage, frame4: u32, n4: u32) -> Self {
        let fills = |units: &MatrixUnits| {
            transformed == Storage::F16
                && frame4.saturating_mul(4).is_multiple_of(units.side)
                && n4.saturating_mul(4).is_multiple_of(units.side * MATRICES)
        };
        match units.filter(fills) {
            #[cfg(not(target_arch = "wasm32"))]
            Some(units) => Self::Matrix(units),
            _ => Self::Tile(tile),
        }
    }

    /// vec4 columns of a block of transformed filters.
    pub fn block_columns4(self) -> u32 {
        match self {
            Self::Tile(tile) => tile.block_columns4(),
            #[cfg(not(target_arch = "wasm32"))]
            Self::Matrix(units) => units.side * MATRICES / 4,
        }
    }

    /// A launch's rows are a multiple of this: those beyond the tiles are computed of whatever lies
    /// there, and read by nobody.
    pub fn rows(self) -> u32 {
        match self {
            Self::Tile(_) => 1,
            #[cfg(not(target_arch = "wasm32"))]
            Self::Matrix(units) => units.side * MATRICES,
        }
    }

    /// How the products are kept, of which transformed input and filters are kept as `transformed`.
    /// Sums leave matrix units as they are: naga 30 cannot round them.
    pub fn kept(self, transformed: Storage) -> Storage {
        match self {
            Self::Tile(_) => transformed,
            #[cfg(not(target_arch = "wasm32"))]
            Self::Matrix(_) => Storage::F32,
        }
    }

    /// The transforms around them, where those of the device are `transforms`: matrices are loaded
    /// from channels that lie together.
    pub fn transforms(self, transforms: Transforms) -> Transforms {
        match self {
            Self::Tile(_) => transforms,
            #[cfg(not(target_arch = "wasm32"))]
            Self::Matrix(_) => Transforms::Pairs,
        }
    }
}

/// How the transforms of a Winograd convolution are shared out, and how what they make lies in
/// memory. To the bit the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transforms {
    /// `winograd_in`, `winograd_out`: four channels for an invocation, of a tile and, back, of a
    /// whole run of tiles. Best on CPU drivers.
    Runs,
    /// `winograd_in_pairs`, `winograd_out_pairs`: two channels of one tile for an invocation.
    Pairs,
}

/// Register tile of `conv2d_direct`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DirectTile {
    /// Neighbouring pixels per invocation.
    pub pixels: u32,
    /// vec4 output channels per invocation.
    pub columns4: u32,
}

/// How a convolution is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// 3x3, stride 1: three launches a band, a quarter of the multiplications.
    Winograd,
    /// 3x3, stride 1, few channels: one launch a band.
    Direct,
    /// 3x3, any stride: what each output pixel sees is written out, then multiplied. Two launches a
    /// band.
    Unfold,
    /// 1x1: one product.
    Product,
}

/// The kernels of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Choice {
    /// Tile of the 36 products of a Winograd convolution.
    pub winograd_tile: MatmulTile,
    /// Its transforms.
    pub transforms: Transforms,
    /// Tile of all other products.
    pub matmul_tile: MatmulTile,
    /// Tile of direct convolutions.
    pub direct_tile: DirectTile,
    /// Bytes that each of the two Winograd intermediates of a band should stay within, to remain in
    /// cache.
    pub winograd_scratch_bytes: u64,
}

/// Fewer input or output channels than this and the transforms of a Winograd convolution cost more
/// than they save.
const WINOGRAD_MIN_CHANNELS: u32 = 16;

impl Choice {
    /// What measured best on CPU drivers. For GPUs, which nobody here has measured: what their own
    /// compilers keep in registers (`benches/results/isa.md`), and what fits their caches.
    pub fn for_device(limits: &DeviceLimits) -> Self {
        match limits.kind {
            DeviceKind::Cpu => {
                let tile = Self::tiles(limits)[0];
                Self {
                    winograd_tile: tile,
                    transforms: Transforms::Runs,
                    matmul_tile: tile,
                    direct_tile: DirectTile { pixels: 8, columns4: 1 },
                    winograd_scratch_bytes: 16 << 20,
                }
            }
            DeviceKind::Gpu => {
                let tile = gpu_tile(limits.vendor);
                Self {
                    winograd_tile: tile,
                    transforms: Transforms::Pairs,
                    matmul_tile: tile,
                    direct_tile: DirectTile { pixels: 4, columns4: 1 },
                    winograd_scratch_bytes: gpu_scratch_bytes(limits),
                }
            }
        }
    }

    /// The same with this tile for all products.
    pub(crate) fn with_tile(self, tile: MatmulTile) -> Self {
        Self { winograd_tile: tile, matmul_tile: tile, ..self }
    }

    /// The tiles of products among which measuring decides, on devices like this. The blocks of
    /// weights are as wide for all of them.
    pub(crate) fn tiles(limits: &DeviceLimits) -> &'static [MatmulTile] {
        match (limits.kind, limits.quads) {
            // Eight columns take a sixth to a quarter off the products on Mesa 26.1 and 26.2, and
            // add to them on 22.3 (`benches/results/lavapipe-26.2.md`).
            (DeviceKind::Cpu, true) => &[
                MatmulTile::Quad { rows: 8, columns4: 4 },
                MatmulTile::Quad { rows: 8, columns4: 8 },
                MatmulTile::Register { rows: 8, columns4: 4 },
            ],
            (DeviceKind::Cpu, false) => {
                &[MatmulTile::Register { rows: 8, columns4: 4 }, MatmulTile::Register { rows: 4, columns4: 4 }]
            }
            (DeviceKind::Gpu, _) => &[
                MatmulTile::Shared { rows4: 2, columns4: 2 },
                MatmulTile::Shared { rows4: 1, columns4: 2 },
                MatmulTile::Shared { rows4: 1, columns4: 1 },
            ],
        }
    }

    /// The bytes of bands among which measuring decides.
    fn bands(kind: DeviceKind) -> &'static [u64] {
        match kind {
            DeviceKind::Cpu => &[4 << 20, 16 << 20],
            DeviceKind::Gpu => &[4 << 20, 8 << 20, 24 << 20],
        }
    }

    /// The tiles that measuring may take instead, on devices like this. All lay weights out alike.
    pub(crate) fn other_tiles(self, limits: &DeviceLimits) -> Vec<Self> {
        let tiles = Self::tiles(limits).iter().filter(|tile| **tile != self.winograd_tile);
        tiles.map(|&tile| self.with_tile(tile)).collect()
    }

    /// The sizes of bands that measuring may take instead.
    pub(crate) fn other_bands(self, kind: DeviceKind) -> Vec<Self> {
        let bands = Self::bands(kind).iter().filter(|bytes| **bytes != self.winograd_scratch_bytes);
        bands.map(|&bytes| Self { winograd_scratch_bytes: bytes, ..self }).collect()
    }

    /// The rules' choice for `limits`, and all that measuring may take instead.
    pub(crate) fn possible(limits: &DeviceLimits) -> Vec<Self> {
        let rules = Self::for_device(limits);
        let with_tiles = std::iter::once(rules).chain(rules.other_tiles(limits));
        with_tiles.flat_map(|choice| std::iter::once(choice).chain(choice.other_bands(limits.kind))).collect()
    }

    /// Whether it is one of the [`Self::possible`].
    ///
    /// # Errors
    /// [`Error::Input`] with what it is.
    pub(crate) fn check(&self, limits: &DeviceLimits) -> Result<()> {
        if Self::possible(limits).contains(self) {
            return Ok(());
        }
        Err(Error::Input {
            what: "the choice of kernels".to_owned(),
            expected: "one that measuring can find on this device".to_owned(),
            found: serde_json::to_string(self).unwrap_or_default(),
        })
    }

    /// The way of a convolution with this filter and these channel counts.
    pub fn way(&self, window: Window, c_in: u32, c_out: u32) -> Way {
        match window {
            Window { side: 1, .. } => Way::Product,
            Window { stride: 1, border: Border::Around, .. } if c_in.min(c_out) < WINOGRAD_MIN_CHANNELS => Way::Direct,
            Window { stride: 1, border: Border::Around, .. } => Way::Winograd,
            Window { .. } => Way::Unfold,
        }
    }
}

/// As much as a GPU's compiler keeps in registers (`benches/results/isa.md`): 8x8 spills on Intel
/// and leaves Apple and Adreno few threads. Arm's has the fewest registers of all and is not in
/// that table; the smallest is given to it unseen.
fn gpu_tile(vendor: Vendor) -> MatmulTile {
    let (rows4, columns4) = match vendor {
        Vendor::Amd | Vendor::Nvidia => (2, 2),
        Vendor::Apple | Vendor::Intel | Vendor::Qualcomm | Vendor::Other => (1, 2),
        Vendor::Arm => (1, 1),
    };
    MatmulTile::Shared { rows4, columns4 }
}

/// What stays in the last cache of cards of the last years, 48 to 96 MiB, of which a band uses
/// twice this. No band that fills a GPU stays in the 2 to 18 MiB of others; there a small one only
/// reads the filters more often, 36 MiB of them for 512 channels (`benches/results/launches.md`).
fn gpu_scratch_bytes(limits: &DeviceLimits) -> u64 {
    let mebibytes = match (limits.vendor, limits.unified_memory) {
        (Vendor::Nvidia | Vendor::Amd, false) => 24,
        (Vendor::Nvidia | Vendor::Amd, true)
        | (Vendor::Apple | Vendor::Arm | Vendor::Intel | Vendor::Qualcomm | Vendor::Other, _) => 16,
    };
    mebibytes << 20
}
