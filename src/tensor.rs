//! Shapes, element types and byte counts, with checked arithmetic. Independent of files, graphs and
//! devices.

pub(crate) mod rgba8;

use std::fmt;

use serde::{Deserialize, Serialize};

/// A number of bytes. Prints in binary units. Sums saturate at `u64::MAX`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Returns the count rounded up to a multiple of `alignment` (a power of two), or `u64::MAX` if
    /// that overflows.
    pub fn align_up(self, alignment: u64) -> Self {
        Self(self.0.checked_next_multiple_of(alignment).unwrap_or(u64::MAX))
    }

    /// Returns the count less `other`, or 0 if `other` is larger.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::ops::Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self(0), std::ops::Add::add)
    }
}

impl fmt::Display for Bytes {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        if unit == 0 { write!(f, "{} B", self.0) } else { write!(f, "{value:.1} {}", UNITS[unit]) }
    }
}

/// The element type of a tensor in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DType {
    /// IEEE binary32.
    F32,
    /// IEEE binary16.
    F16,
    /// The upper half of a binary32.
    BF16,
}

impl DType {
    /// Returns the bytes of one element.
    pub fn size(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::BF16 => 2,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "F32",
            Self::F16 => "F16",
            Self::BF16 => "BF16",
        })
    }
}

/// The size of one image plane: pixels, or latents where the name says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
pub struct Size {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

/// The most pixels of an image, 32768 by 32768. A larger size is taken for a mistake.
pub const MAX_PIXELS: u64 = 1 << 30;

impl Size {
    /// Returns the number of pixels.
    pub fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// A tensor on the host: f32, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct HostTensor {
    /// The extent of each axis, slowest first.
    pub shape: Vec<usize>,
    /// The elements. Their number is the product of `shape`.
    pub data: Vec<f32>,
}

/// The storage of four neighbouring channels in GPU memory. Sums are f32 in every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Storage {
    /// Four f32.
    F32,
    /// Four f16, as the hardware's own type (`shader-f16`).
    F16,
    /// Four f16 in two u32, for devices without `shader-f16`.
    PackedF16,
    /// As [`Self::F16`], with the intermediate results of Winograd convolutions in f16, too: less
    /// traffic, and more rounding.
    FastF16,
}

impl Storage {
    /// Returns the bytes of four channels.
    pub fn vec4_bytes(self) -> u64 {
        match self {
            Self::F32 => 16,
            Self::F16 | Self::PackedF16 | Self::FastF16 => 8,
        }
    }

    /// Returns the WGSL type of two channels.
    pub fn wgsl_pair(self) -> &'static str {
        match self {
            Self::F32 => "vec2<f32>",
            Self::F16 | Self::FastF16 => "vec2<f16>",
            Self::PackedF16 => "u32",
        }
    }

    /// Returns the WGSL type of four channels.
    pub fn wgsl_type(self) -> &'static str {
        match self {
            Self::F32 => "vec4<f32>",
            Self::F16 | Self::FastF16 => "vec4<f16>",
            Self::PackedF16 => "vec2<u32>",
        }
    }

    /// Returns the storage of the transformed input, the transformed filters and their products in
    /// Winograd convolutions.
    pub fn transformed(self) -> Self {
        match self {
            Self::F32 | Self::F16 | Self::PackedF16 => Self::F32,
            Self::FastF16 => Self::F16,
        }
    }

    /// True if this storage needs a device with `shader-f16`.
    pub fn needs_shader_f16(self) -> bool {
        matches!(self, Self::F16 | Self::FastF16)
    }
}
