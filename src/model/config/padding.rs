//! Pixels that convolutions see beyond the borders of their input.

use std::str::FromStr;

use serde::Serialize;

use crate::error::{Error, Result};
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

impl PaddingMode {
    /// All modes.
    pub const ALL: [Self; 4] = [Self::Zeros, Self::Reflect, Self::Replicate, Self::Circular];

    /// Returns torch's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zeros => "zeros",
            Self::Reflect => "reflect",
            Self::Replicate => "replicate",
            Self::Circular => "circular",
        }
    }

    /// Describes the names, for errors.
    pub(super) fn expected() -> String {
        format!("one of {}", Self::ALL.map(Self::name).join(", "))
    }

    /// Returns the mode that torch calls `name`.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

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

impl FromStr for PaddingMode {
    type Err = Error;

    /// Finds a mode by torch's name.
    ///
    /// # Errors
    /// [`Error::Input`] that lists the names.
    fn from_str(name: &str) -> Result<Self> {
        Self::named(name).ok_or_else(|| Error::input("border", Self::expected(), format!("\"{name}\"")))
    }
}
