//! How a VAE is loaded, and how latents are decoded.

use serde::Serialize;

use crate::limits::{DeviceKind, DeviceLimits};
use crate::plan::Output;
use crate::tensor::{Bytes, Storage};

/// Precision of stored activations and weights. Arithmetic is f32 in every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// f16 on a GPU, f32 on a CPU driver, where halves only cost time.
    #[default]
    Auto,
    /// Half precision: half the memory. Packed halves where the device has no `shader-f16`.
    F16,
    /// Single precision.
    F32,
}

impl Precision {
    /// How a device with `limits` stores this precision.
    pub fn storage(self, limits: &DeviceLimits) -> Storage {
        let half = match self {
            Self::Auto => limits.kind == DeviceKind::Gpu,
            Self::F16 => true,
            Self::F32 => false,
        };
        match (half, limits.shader_f16) {
            (false, _) => Storage::F32,
            (true, true) => Storage::F16,
            (true, false) => Storage::PackedF16,
        }
    }
}

/// How a VAE is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoadOptions {
    /// Precision of weights and activations.
    pub precision: Precision,
    /// Latents are the VAE's own, already divided by the model's scaling factor, instead of as the diffusion model leaves them.
    pub unscaled: bool,
    /// Keep the packed weights in host memory, so that a plan with a budget can fetch them when they are needed.
    pub weights_on_host: bool,
}

/// How latents are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DecodeOptions {
    /// Picture or raw floats.
    pub output: Output,
    /// Measure the GPU time of each stage, where the device can.
    pub profile: bool,
    /// The most GPU memory that the decode may take, weights included. What does not fit waits in host memory; the result is
    /// that of the whole plan to rounding. Needs [`LoadOptions::weights_on_host`].
    pub memory_budget: Option<Bytes>,
}
