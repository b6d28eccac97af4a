//! How a model's latents lie, and what the VAE's own latents are to the network.

use serde::Serialize;

use super::{AutoencoderConfig, single};

/// How the squares of `patch` by `patch` pixels of the VAE's own latents lie in the diffusion
/// model's latents. Each channel of each place in a square has statistics of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Packing {
    /// In channels, the places of one channel side by side: channel `c * patch^2 + place`, as
    /// FLUX.2 has them.
    #[default]
    ByChannel,
    /// In channels, the channels of one place side by side: channel `place * channels + c`, as
    /// Ideogram 4 has them.
    ByPlace,
    /// As pixels, where the VAE itself has them. Only the statistics count by place, in the order
    /// of [`Self::ByChannel`]. FIBO 2 has them so.
    Unpacked,
}

impl Packing {
    /// From one channel to the next, and from one place in a square to the next, in the order in
    /// which factors and statistics are kept.
    pub(crate) fn steps(self, channels: u32, patch: u32) -> (u32, u32) {
        match self {
            Self::ByChannel | Self::Unpacked => (patch * patch, 1),
            Self::ByPlace => (1, channels),
        }
    }

    /// Side of the squares of pixels that one pixel of the latents holds in its channels.
    pub(crate) fn held(self, patch: u32) -> u32 {
        match self {
            Self::ByChannel | Self::ByPlace => patch,
            Self::Unpacked => 1,
        }
    }
}

/// What the VAE's own latents are to the network.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnLatents {
    /// What the network takes and gives.
    OfNetwork,
    /// Latents of the VAE that a tiny autoencoder stands in for. Its network takes `(own -
    /// shift_factor) * scaling_factor`, as the diffusion model does.
    StandIn {
        /// The scaling factor of that VAE.
        scaling_factor: f32,
        /// The shift of that VAE.
        shift_factor: f32,
    },
    /// Latents of one of several VAEs that the tiny autoencoder may stand in for.
    Unknown,
}

impl OwnLatents {
    /// Returns what the latents of the VAE of `config` are to a tiny autoencoder that stands in for
    /// it.
    pub fn stand_in_for(config: &AutoencoderConfig) -> Self {
        Self::StandIn { scaling_factor: single(config.scaling_factor), shift_factor: single(config.shift()) }
    }

    /// Factor and summand that turn the VAE's own latents into what the network takes.
    pub(crate) fn scale(self) -> (f32, f32) {
        match self {
            Self::OfNetwork | Self::Unknown => (1.0, 0.0),
            Self::StandIn { scaling_factor, shift_factor } => (scaling_factor, -shift_factor * scaling_factor),
        }
    }
}
