//! Measurements of `InvokeAI`'s investigation: `PyTorch`, f16, RTX 4090, with the memory that
//! `PyTorch` reserved.
//!
//! Source: the report in `InvokeAI`'s pull request 8414 (2025). Its "MB" are MiB: 1068 for 512x512
//! in f16 is its constant 2136.

use wgvae::Bytes;

use wgvae::Direction;
use wgvae::Direction::{Decode, Encode};

/// Name of the measured GPU.
pub const DEVICE: &str = "NVIDIA GeForce RTX 4090, PyTorch, f16";

/// Address of the numbers.
pub const SOURCE: &str = "https://github.com/invoke-ai/InvokeAI/pull/8414";

/// One measurement of a square picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// Name of the family.
    pub model: &'static str,
    /// Direction.
    pub operation: Direction,
    /// Side in pixels.
    pub side: u32,
    /// Reserved memory in MiB.
    pub reserved_mib: u32,
    /// Seconds, if published.
    pub seconds: Option<f64>,
}

impl Published {
    /// Returns the reserved memory.
    pub fn reserved(&self) -> Bytes {
        Bytes(u64::from(self.reserved_mib) << 20)
    }

    /// Returns the reserved bytes for each pixel and each byte of an element.
    pub fn implied_constant(&self) -> f64 {
        let side = f64::from(self.side);
        f64::from(self.reserved_mib) * 1_048_576.0 / (side * side * 2.0)
    }
}

const fn row(
    model: &'static str,
    operation: Direction,
    side: u32,
    reserved_mib: u32,
    seconds: Option<f64>,
) -> Published {
    Published { model, operation, side, reserved_mib, seconds }
}

/// All published measurements.
pub const RTX_4090: &[Published] = &[
    row("flux1", Decode, 512, 1068, None),
    row("flux1", Decode, 1024, 4260, Some(0.15)),
    row("flux1", Decode, 2048, 16932, Some(0.69)),
    row("sd15", Decode, 512, 1018, None),
    row("sd15", Decode, 1024, 4226, Some(0.15)),
    row("sd15", Decode, 2048, 16994, Some(0.71)),
    row("sdxl", Decode, 512, 1088, None),
    row("sdxl", Decode, 1024, 4274, None),
    row("flux1", Encode, 1024, 1798, Some(0.08)),
    row("flux1", Encode, 2048, 7198, Some(0.41)),
];

/// Bytes that `PyTorch` reserved divided by the bytes that it allocated, on average over all sizes.
pub const RESERVE_RATIOS: &[(&str, Direction, f64)] = &[
    ("flux1", Decode, 1.80),
    ("sd15", Decode, 1.55),
    ("sdxl", Decode, 1.56),
    ("flux1", Encode, 1.15),
    ("sd15", Encode, 1.31),
    ("sdxl", Encode, 1.31),
];
