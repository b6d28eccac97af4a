//! Jobs: the key of the plan that is prepared on a device.

use super::options::{DecodeOptions, EncodeOptions};
use crate::model::blocks::Part;
use crate::plan::HostStates;
use crate::tensor::{Bytes, Size};

/// The job that a plan is made for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Job {
    /// Latents to an image.
    Decode {
        /// The size of the given latents.
        latent_size: Size,
        /// True if the latents are the VAE's own.
        unscaled: bool,
        options: DecodeOptions,
    },
    /// An image to the moments of its latents.
    Encode {
        /// The size in pixels.
        image_size: Size,
        options: EncodeOptions,
    },
    /// A part of a clip of latents to frames.
    DecodePart {
        /// The size of the given latents.
        latent_size: Size,
        /// True if the latents are the VAE's own.
        unscaled: bool,
        part: Part,
        /// The states that the clip keeps in host memory.
        host_states: HostStates,
        options: DecodeOptions,
    },
    /// A part of a clip of frames to the moments of its latents.
    EncodePart {
        /// The size in pixels.
        image_size: Size,
        part: Part,
        /// The states that the clip keeps in host memory.
        host_states: HostStates,
        options: EncodeOptions,
    },
}

impl Job {
    /// True if the job is a part of a clip.
    pub(super) fn is_of_clip(&self) -> bool {
        self.part() != Part::Image
    }

    /// Returns the part of a clip that the job computes.
    pub(super) fn part(&self) -> Part {
        match self {
            Self::Decode { .. } | Self::Encode { .. } => Part::Image,
            Self::DecodePart { part, .. } | Self::EncodePart { part, .. } => *part,
        }
    }

    /// True if the job decodes.
    pub(super) fn decodes(&self) -> bool {
        matches!(self, Self::Decode { .. } | Self::DecodePart { .. })
    }

    /// Returns the most GPU memory that the job may take, bytes.
    pub(super) fn memory_budget(&self) -> Option<Bytes> {
        match self {
            Self::Decode { options, .. } | Self::DecodePart { options, .. } => options.memory_budget,
            Self::Encode { options, .. } | Self::EncodePart { options, .. } => options.memory_budget,
        }
    }

    /// Returns the same job with another `budget`.
    pub(super) fn within(mut self, budget: Bytes) -> Self {
        match &mut self {
            Self::Decode { options, .. } | Self::DecodePart { options, .. } => options.memory_budget = Some(budget),
            Self::Encode { options, .. } | Self::EncodePart { options, .. } => options.memory_budget = Some(budget),
        }
        self
    }
}
