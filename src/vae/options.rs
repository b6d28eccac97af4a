//! Options of loading a VAE, of decodes and of encodes.

use serde::{Deserialize, Serialize};

use crate::direction::Directions;
use crate::limits::{DeviceKind, DeviceLimits};
use crate::tensor::{Bytes, Storage};
use crate::tiling::Tiling;

/// The precision of stored activations and weights. Sums are f32 in every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// f16 on a GPU; f32 on a CPU.
    #[default]
    Auto,
    /// Half precision: half the memory. Packed halves where the device has no `shader-f16`.
    F16,
    /// Single precision.
    F32,
    /// As `F16`, with the intermediate results of 3x3 convolutions in f16, too. Halves most of the
    /// traffic, with a few times the error of `F16`. Only on devices with `shader-f16`;
    /// [`Self::Auto`] never chooses it.
    Fast,
}

crate::named!(Precision, "precision": Auto = "auto", F16 = "f16", F32 = "f32", Fast = "fast");

impl Precision {
    /// Returns the storage of this precision on a device with `limits`. Planning returns an error
    /// for the storage of [`Self::Fast`] on a device without `shader-f16`.
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

/// Options of loading a VAE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoadOptions {
    /// The directions whose weights are loaded. Default: decode only.
    pub directions: Directions,
    /// The precision of weights and activations.
    pub precision: Precision,
    /// True to keep the packed weights in host memory, so that a plan with a budget can fetch them
    /// when they are needed.
    pub weights_on_host: bool,
    /// True to load the weights for clips. Images need other weights.
    pub clips: bool,
}

/// Options of a decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DecodeOptions {
    /// True to measure the GPU time of each stage, if the device can.
    pub profile: bool,
    /// The most GPU memory that the decode may take, weights included. Data that does not fit is
    /// computed again, or waits in host memory: weights with [`LoadOptions::weights_on_host`],
    /// activations as `parking` says. The result equals that of the whole plan to the bit.
    pub memory_budget: Option<Bytes>,
    /// True to prefer less memory to speed where the plan has the choice without computing anything
    /// twice. It changes nothing on the CPU, and nothing for networks with norms over the whole
    /// image. For others, plans of large images were predicted to take down to a sixth of the
    /// memory, and up to five times as long.
    pub least_memory: bool,
    /// The rule for activations that may wait in host memory under a budget.
    pub parking: Parking,
    /// Whole, or in tiles to reproduce the result of another tool. In tiles, the report has the
    /// submissions of all tiles, and counts each tile's steps from 0.
    pub tiling: Tiling,
    /// The most frames of latents that a clip has; see [`super::Request::clip_latents`].
    pub clip_latents: Option<u32>,
}

/// Options of an encode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct EncodeOptions {
    /// True to measure the GPU time of each stage, if the device can.
    pub profile: bool,
    /// The most GPU memory that the encode may take, weights included; see
    /// [`DecodeOptions::memory_budget`].
    pub memory_budget: Option<Bytes>,
    /// True to prefer less memory to speed; see [`DecodeOptions::least_memory`].
    pub least_memory: bool,
    /// The rule for activations that may wait in host memory under a budget.
    pub parking: Parking,
    /// The most frames of latents that a clip has; see [`super::Request::clip_latents`].
    pub clip_latents: Option<u32>,
}

/// The rule for activations that may wait in host memory while a budget leaves no room for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Parking {
    /// Activations may wait there if that saves device memory: not on devices that share the host's
    /// memory.
    #[default]
    Auto,
    /// Activations may wait in host memory. On the CPU there is no other memory, and none waits.
    On,
    /// Activations never wait in host memory. Those that do not fit are computed again.
    Off,
}

crate::named!(Parking, "parking": Auto = "auto", On = "on", Off = "off");

impl Parking {
    /// True if plans for a device with `limits` may park.
    pub fn allowed(self, limits: &DeviceLimits) -> bool {
        match self {
            Self::Auto => !limits.unified_memory,
            Self::On => limits.kind != DeviceKind::Host,
            Self::Off => false,
        }
    }
}
