//! What a plan is made for, and what is prepared on a device.

use super::options::{DecodeOptions, EncodeOptions};
use crate::tensor::{Bytes, Size};

/// What a plan is for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Job {
    /// Latents to an image.
    Decode {
        /// Of the latents that are given.
        latent_size: Size,
        /// Whether they are the VAE's own.
        unscaled: bool,
        options: DecodeOptions,
    },
    /// An image to what its latents are made of.
    Encode {
        /// Pixels.
        image_size: Size,
        options: EncodeOptions,
    },
}

impl Job {
    /// The most GPU memory that it may take.
    pub(super) fn memory_budget(&self) -> Option<Bytes> {
        match self {
            Self::Decode { options, .. } => options.memory_budget,
            Self::Encode { options, .. } => options.memory_budget,
        }
    }

    /// The same within `budget`.
    pub(super) fn within(mut self, budget: Bytes) -> Self {
        match &mut self {
            Self::Decode { options, .. } => options.memory_budget = Some(budget),
            Self::Encode { options, .. } => options.memory_budget = Some(budget),
        }
        self
    }
}
