//! How a VAE is loaded, and how latents are decoded.

use serde::{Deserialize, Serialize};

use crate::limits::{DeviceKind, DeviceLimits};
use crate::plan::Output;
use crate::tensor::{Bytes, Storage};
use crate::tiling::Tiling;

/// Precision of stored activations and weights. Sums are f32 in every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// f16 on a GPU, f32 on a CPU driver, where halves only cost time.
    #[default]
    Auto,
    /// Half precision: half the memory. Packed halves where the device has no `shader-f16`.
    F16,
    /// Single precision.
    F32,
    /// As `F16`, and what 3x3 convolutions make on their way is f16, too: half of most of the
    /// traffic, and a few times the error of `F16`. Only where it is asked for, and only on devices
    /// with `shader-f16`.
    Fast,
}

impl Precision {
    /// How a device with `limits` stores this precision. One without `shader-f16` cannot plan with
    /// what [`Self::Fast`] gives.
    pub fn storage(self, limits: &DeviceLimits) -> Storage {
        let half = match self {
            Self::Auto => limits.kind == DeviceKind::Gpu,
            Self::F16 => true,
            Self::F32 => false,
            Self::Fast => return Storage::FastF16,
        };
        match (half, limits.shader_f16) {
            (false, _) => Storage::F32,
            (true, true) => Storage::F16,
            (true, false) => Storage::PackedF16,
        }
    }
}

/// Which way a VAE is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Directions {
    /// Latents to images.
    #[default]
    Decode,
    /// Images to latents.
    Encode,
    /// Both.
    Both,
}

impl Directions {
    /// Whether latents become images.
    pub fn decodes(self) -> bool {
        self != Self::Encode
    }

    /// Whether images become latents.
    pub fn encodes(self) -> bool {
        self != Self::Decode
    }
}

/// How a VAE is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoadOptions {
    /// Which weights are loaded.
    pub directions: Directions,
    /// Precision of weights and activations.
    pub precision: Precision,
    /// Latents are the VAE's own, already divided by the model's scaling factor, instead of as the
    /// diffusion model leaves them.
    pub unscaled: bool,
    /// Keep the packed weights in host memory, so that a plan with a budget can fetch them when
    /// they are needed.
    pub weights_on_host: bool,
    /// For clips: images are another matter, and want weights of their own.
    pub clips: bool,
}

/// How latents are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DecodeOptions {
    /// Picture or raw floats.
    pub output: Output,
    /// Measure the GPU time of each stage, where the device can.
    pub profile: bool,
    /// The most GPU memory that the decode may take, weights included. What does not fit is
    /// computed again, or waits in host memory: weights with [`LoadOptions::weights_on_host`],
    /// activations as `parking` says. The result is that of the whole plan to the bit.
    pub memory_budget: Option<Bytes>,
    /// Whether a plan with a budget may leave activations in host memory.
    pub parking: Parking,
    /// Whole, or in tiles to reproduce what another tool makes of the latents. In tiles, the
    /// submissions reported are those of all tiles, and count each tile's steps from 0.
    pub tiling: Tiling,
}

/// How images are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct EncodeOptions {
    /// Measure the GPU time of each stage, where the device can.
    pub profile: bool,
    /// The most GPU memory that the encode may take, weights included: see
    /// [`DecodeOptions::memory_budget`].
    pub memory_budget: Option<Bytes>,
    /// Whether a plan with a budget may leave activations in host memory.
    pub parking: Parking,
}

/// Whether activations may wait in host memory while a budget leaves no room for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Parking {
    /// Where it gains something: not on devices whose memory is the host's.
    #[default]
    Auto,
    /// Yes.
    On,
    /// No: what does not fit is computed again.
    Off,
}

impl Parking {
    /// Whether plans for a device with `limits` may park.
    pub fn allowed(self, limits: &DeviceLimits) -> bool {
        match self {
            Self::Auto => !limits.unified_memory,
            Self::On => true,
            Self::Off => false,
        }
    }
}
