//! Chooses the kernel and tile of a convolution or product on a device. The choice changes the
//! speed, never the result.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::limits::{DeviceKind, DeviceLimits, PlannedUnits, Vendor};
use crate::model::graph::{Border, Window};
use crate::tensor::Storage;

/// The kernel of a product and its tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MatmulTile {
    /// `matmul`: each invocation works by itself. For CPU drivers, which have no faster memory to
    /// share.
    Register {
        /// Rows per invocation, a multiple of 4.
        rows: u32,
        /// vec4 columns per invocation.
        columns4: u32,
    },
    /// `matmul_quad`: four invocations load for each other. Best on CPU drivers with quads.
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

/// Rows and columns of one workgroup of `matmul_shared` and of `matmul_matrix`.
pub const SHARED_TILE: u32 = 64;

/// Columns of one workgroup of `matmul_shared` if it is narrow.
pub const NARROW_TILE: u32 = 32;

/// Invocations of a quad. Each loads one vec4 column.
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
    /// Returns the vec4 columns that one workgroup computes.
    pub fn columns4(self) -> u32 {
        match self {
            Self::Register { columns4, .. } | Self::Quad { columns4, .. } => columns4,
            Self::Shared { .. } => SHARED_TILE / 4,
        }
    }

    /// Returns the vec4 columns of a block of transformed filters. A block is contiguous in memory.
    pub fn block_columns4(self) -> u32 {
        match self {
            Self::Quad { .. } => QUAD,
            Self::Register { .. } | Self::Shared { .. } => self.columns4(),
        }
    }
}

/// The kernel of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Products {
    /// The kernel of this tile.
    Tile(MatmulTile),
    /// `matmul_shared`: 64 by 32 for each workgroup.
    Narrow {
        /// Rows per invocation / 4.
        rows4: u32,
        /// vec4 columns per invocation.
        columns4: u32,
    },
    /// `matmul_matrix`, on matrix units: 64 by 64 for each workgroup.
    Matrix(PlannedUnits),
}

impl Products {
    /// Chooses the kernel of products in `storage` with `n4` vec4 columns: `matmul_matrix` if the
    /// device was opened with its matrix units and the storage is `fast`, else `tile`.
    /// `matmul_matrix` sums in another order than tiles, and `fast` is declared to depend on the
    /// units.
    pub fn new(tile: MatmulTile, storage: Storage, limits: &DeviceLimits, n4: u32) -> Self {
        let units = limits.units().filter(|_| storage == Storage::FastF16);
        match (units, tile) {
            (Some(units), _) => Self::Matrix(units),
            (None, MatmulTile::Shared { rows4, columns4 }) if is_better_narrow(limits.vendor, n4) => {
                Self::Narrow { rows4, columns4 }
            }
            (None, _) => Self::Tile(tile),
        }
    }

    /// Returns the vec4 columns that one workgroup computes.
    pub fn columns4(self) -> u32 {
        match self {
            Self::Tile(tile) => tile.columns4(),
            Self::Narrow { .. } => NARROW_TILE / 4,
            Self::Matrix(_) => SHARED_TILE / 4,
        }
    }

    /// True if the kernel multiplies the rows of all frames as one matrix: its tiles have many
    /// rows.
    pub fn joins_frames(self) -> bool {
        match self {
            Self::Tile(MatmulTile::Register { .. } | MatmulTile::Quad { .. }) => false,
            Self::Tile(MatmulTile::Shared { .. }) | Self::Narrow { .. } | Self::Matrix(_) => true,
        }
    }

    /// Returns the vec4 columns of a block of transformed filters.
    pub fn block_columns4(self) -> u32 {
        match self {
            Self::Tile(tile) => tile.block_columns4(),
            Self::Narrow { .. } | Self::Matrix(_) => self.columns4(),
        }
    }
}

impl std::fmt::Display for Products {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tile(tile) => tile.fmt(f),
            Self::Narrow { rows4, columns4 } => {
                write!(f, "shared {SHARED_TILE}x{NARROW_TILE} by {}x{}", rows4 * 4, columns4 * 4)
            }
            Self::Matrix(units) => write!(f, "matrices of {0}x{0}, subgroups of {1}", units.side, units.lanes),
        }
    }
}

/// The division of Winograd transforms among invocations, and the layout of their output. All
/// variants give the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transforms {
    /// `winograd_in`, `winograd_out`: an invocation takes four channels of one tile or, in the
    /// output transform, of a whole run of tiles. Best on CPU drivers.
    Runs,
    /// `winograd_in_pairs`, `winograd_out_pairs`: an invocation takes two channels of one tile.
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

/// The algorithm of a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConvAlgorithm {
    /// 3x3, stride 1: three launches for each band, a quarter of the multiplications.
    Winograd,
    /// 3x3, stride 1, few channels: one launch for each band.
    Direct,
    /// 3x3, any stride: writes the pixels that each output pixel sees, then multiplies them. Two
    /// launches for each band.
    Unfold,
    /// 3x3 or 5x5, each channel by itself: one launch for each band.
    Depthwise,
    /// 1x1: one product, or one of each group of channels.
    Product,
}

/// The kernels, tile sizes and band size of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KernelChoice {
    /// Tile of the 36 products of a Winograd convolution.
    pub winograd_tile: MatmulTile,
    /// Kernels of the Winograd transforms.
    pub transforms: Transforms,
    /// Tile of all other products.
    pub matmul_tile: MatmulTile,
    /// Tile of direct convolutions.
    pub direct_tile: DirectTile,
    /// Bytes that each of the two Winograd intermediates of a band should not exceed, so that they
    /// stay in cache. On GPUs, the bytes for each frame of a part of a clip: four frames exceed
    /// most caches, but smaller bands would leave a GPU idle.
    pub winograd_scratch_bytes: u64,
}

/// The tile of the host's own kernels. Only its columns count: they are those of a block of
/// transformed filters. How many rows are summed at once follows from the processor's registers.
const HOST_TILE: MatmulTile = MatmulTile::Register { rows: 4, columns4: 4 };

/// Fewest input and output channels for Winograd. With fewer, the transforms cost more than they
/// save.
const WINOGRAD_MIN_CHANNELS: u32 = 16;

impl KernelChoice {
    /// Returns the choice of the rules. On CPU drivers it is what measured best. On GPUs, of
    /// which only two have been measured, it follows what their own compilers keep in registers
    /// (`benches/results/isa.md`), and the size of their caches.
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
            DeviceKind::Host => Self {
                winograd_tile: HOST_TILE,
                transforms: Transforms::Pairs,
                matmul_tile: HOST_TILE,
                direct_tile: DirectTile { pixels: 8, columns4: 1 },
                winograd_scratch_bytes: 8 << 20,
            },
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

    /// Returns the same choice with this tile for all products.
    pub(crate) fn with_tile(self, tile: MatmulTile) -> Self {
        Self { winograd_tile: tile, matmul_tile: tile, ..self }
    }

    /// Returns the tiles of products that measuring compares on devices like this. All have equally
    /// wide blocks of weights.
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
            (DeviceKind::Host, _) => &[HOST_TILE],
            (DeviceKind::Gpu, _) => &[
                MatmulTile::Shared { rows4: 2, columns4: 2 },
                MatmulTile::Shared { rows4: 1, columns4: 2 },
                MatmulTile::Shared { rows4: 1, columns4: 1 },
            ],
        }
    }

    /// Returns the sizes of bands that measuring compares, in bytes.
    fn bands(kind: DeviceKind) -> &'static [u64] {
        match kind {
            DeviceKind::Cpu => &[4 << 20, 16 << 20],
            DeviceKind::Host => &[4 << 20, 8 << 20, 16 << 20],
            // 48 MiB take a tenth off a decode on an H200: such bands miss its cache, but each
            // launch has more workgroups.
            DeviceKind::Gpu => &[4 << 20, 8 << 20, 24 << 20, 48 << 20],
        }
    }

    /// Returns the choices with other tiles that measuring may take. All lay out weights alike.
    pub(crate) fn other_tiles(self, limits: &DeviceLimits) -> Vec<Self> {
        let tiles = Self::tiles(limits).iter().filter(|tile| **tile != self.winograd_tile);
        tiles.map(|&tile| self.with_tile(tile)).collect()
    }

    /// Returns the choices with other sizes of bands that measuring may take.
    pub(crate) fn other_bands(self, kind: DeviceKind) -> Vec<Self> {
        let bands = Self::bands(kind).iter().filter(|bytes| **bytes != self.winograd_scratch_bytes);
        bands.map(|&bytes| Self { winograd_scratch_bytes: bytes, ..self }).collect()
    }

    /// Returns the rules' choice for `limits`, and all choices that measuring may take instead.
    pub(crate) fn possible(limits: &DeviceLimits) -> Vec<Self> {
        let rules = Self::for_device(limits);
        let with_tiles = std::iter::once(rules).chain(rules.other_tiles(limits));
        with_tiles.flat_map(|choice| std::iter::once(choice).chain(choice.other_bands(limits.kind))).collect()
    }

    /// Checks that this choice is one of [`Self::possible`].
    ///
    /// # Errors
    /// [`Error::Input`] with the choice if it is not.
    pub(crate) fn check(&self, limits: &DeviceLimits) -> Result<()> {
        if Self::possible(limits).contains(self) {
            return Ok(());
        }
        Err(Error::input(
            "the choice of kernels",
            "one that measuring can find on this device",
            serde_json::to_string(self).unwrap_or_default(),
        ))
    }

    /// Returns the algorithm of a convolution with this filter and these channel counts.
    pub fn algorithm(&self, window: Window, c_in: u32, c_out: u32) -> ConvAlgorithm {
        match window {
            Window { side: 1, .. } => ConvAlgorithm::Product,
            Window { border: Border::After, .. } | Window { stride: 2.., .. } => ConvAlgorithm::Unfold,
            Window { .. } if c_in.min(c_out) < WINOGRAD_MIN_CHANNELS => ConvAlgorithm::Direct,
            Window { .. } => ConvAlgorithm::Winograd,
        }
    }
}

/// True if products with `n4` vec4 columns take less time in narrow tiles: the last of the wide
/// ones would be half empty, and is one of at most four. On an H200, 96 columns take a sixth less
/// time. On AMD, a workgroup would be half of a wave of 64.
fn is_better_narrow(vendor: Vendor, n4: u32) -> bool {
    const MOST_COLUMNS: u32 = 256;
    let in_last = (n4 * 4 - 1) % SHARED_TILE + 1;
    vendor != Vendor::Amd && n4 * 4 < MOST_COLUMNS && in_last <= NARROW_TILE
}

/// Returns the largest tile that a GPU's compiler keeps in registers (`benches/results/isa.md`).
/// 8x8 spills on Intel, and leaves Apple and Adreno few threads. Arm has the fewest registers and
/// is not in that table, so it gets the smallest tile without evidence.
fn gpu_tile(vendor: Vendor) -> MatmulTile {
    let (rows4, columns4) = match vendor {
        Vendor::Amd | Vendor::Nvidia => (2, 2),
        Vendor::Apple | Vendor::Intel | Vendor::Qualcomm | Vendor::Other => (1, 2),
        Vendor::Arm => (1, 1),
    };
    MatmulTile::Shared { rows4, columns4 }
}

/// Returns the size of bands for a GPU. Recent cards have a last-level cache of 48 to 96 MiB, of
/// which a band uses twice this size. Other GPUs have 2 to 18 MiB, too little for any band that
/// fills the GPU. A small band would only read the filters more often there: 36 MiB of them for 512
/// channels (`benches/results/launches.md`).
fn gpu_scratch_bytes(limits: &DeviceLimits) -> u64 {
    let mebibytes = match (limits.vendor, limits.unified_memory) {
        (Vendor::Nvidia | Vendor::Amd, false) => 24,
        (Vendor::Nvidia | Vendor::Amd, true)
        | (Vendor::Apple | Vendor::Arm | Vendor::Intel | Vendor::Qualcomm | Vendor::Other, _) => 16,
    };
    mebibytes << 20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_that_leave_half_a_tile_empty_have_narrow_tiles() {
        let columns = |vendor, columns: u32| {
            let limits = DeviceLimits { vendor, ..DeviceLimits::webgpu_default() };
            let tile = KernelChoice::for_device(&limits).winograd_tile;
            Products::new(tile, Storage::F16, &limits, columns / 4).columns4() * 4
        };
        for vendor in [Vendor::Nvidia, Vendor::Intel, Vendor::Apple, Vendor::Arm, Vendor::Other] {
            let found = [4, 32, 48, 64, 96, 128, 160, 192, 288, 512].map(|width| columns(vendor, width));
            assert_eq!(found, [32, 32, 64, 64, 32, 64, 32, 64, 64, 64], "{vendor:?}");
        }
        assert_eq!(columns(Vendor::Amd, 96), SHARED_TILE);
    }
}
