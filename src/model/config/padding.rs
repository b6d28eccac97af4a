//! Pixels that convolutions see beyond the borders of their input.

use serde::Serialize;

use crate::model::graph::Border;

/// Pixels that the 3x3 convolutions of an `AutoencoderKL` see beyond the borders of their input, as
/// torch's `padding_mode`. A convolution that halves the size sees zeros in every mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PaddingMode {
    /// Zeros.
    #[default]
    Zeros,
    /// The pixels on the other side of the first or last, as EQ-SDXL-VAE wants it. No side of the
    /// latents may be 1.
    Reflect,
    /// Copies of the first or last pixels.
    Replicate,
    /// The pixels at the opposite side, so that copies of a picture fit together.
    Circular,
}

// By torch's names.
crate::named!(
    PaddingMode, "border": Zeros = "zeros", Reflect = "reflect", Replicate = "replicate", Circular = "circular"
);

impl PaddingMode {
    /// Returns the border of a filter that keeps the size.
    pub(crate) fn border(self) -> Border {
        match self {
            Self::Zeros => Border::Around,
            Self::Reflect => Border::Mirror,
            Self::Replicate => Border::Copies,
            Self::Circular => Border::Opposite,
        }
    }

    /// Returns the fewest rows and columns that it can pad.
    pub(super) fn least(self) -> u32 {
        if self == Self::Reflect { 2 } else { 1 }
    }
}
