//! What a plan is made for, and what is prepared on a device.

use super::options::{DecodeOptions, EncodeOptions};
use crate::model::blocks::Part;
use crate::plan::HostStates;
use crate::tensor::{Bytes, Size};

/// What a plan is for.
#[derive(Debug, Clone, PartialEq)]
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
    /// A part of a clip of latents to frames of an image.
    DecodePart {
        /// Of the latents that are given.
        latent_size: Size,
        /// Whether they are the VAE's own.
        unscaled: bool,
        part: Part,
        /// What of that which the parts keep is in host memory.
        host_states: HostStates,
        options: DecodeOptions,
    },
    /// A part of a clip of frames of an image to what latents are made of.
    EncodePart {
        /// Pixels.
        image_size: Size,
        part: Part,
        /// What of that which the parts keep is in host memory.
        host_states: HostStates,
        options: EncodeOptions,
    },
}

impl Job {
    /// Whether it is of a clip.
    pub(super) fn is_of_clip(&self) -> bool {
        self.part() != Part::Image
    }

    /// Which part of a clip it is for.
    pub(super) fn part(&self) -> Part {
        match self {
            Self::Decode { .. } | Self::Encode { .. } => Part::Image,
            Self::DecodePart { part, .. } | Self::EncodePart { part, .. } => *part,
        }
    }

    /// Whether latents become images.
    pub(super) fn decodes(&self) -> bool {
        matches!(self, Self::Decode { .. } | Self::DecodePart { .. })
    }

    /// The most GPU memory that it may take.
    pub(super) fn memory_budget(&self) -> Option<Bytes> {
        match self {
            Self::Decode { options, .. } | Self::DecodePart { options, .. } => options.memory_budget,
            Self::Encode { options, .. } | Self::EncodePart { options, .. } => options.memory_budget,
        }
    }

    /// The same within `budget`.
    pub(super) fn within(mut self, budget: Bytes) -> Self {
        match &mut self {
            Self::Decode { options, .. } | Self::DecodePart { options, .. } => options.memory_budget = Some(budget),
            Self::Encode { options, .. } | Self::EncodePart { options, .. } => options.memory_budget = Some(budget),
        }
        self
    }
}
