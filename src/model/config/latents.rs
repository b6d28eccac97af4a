//! Layout of a model's latents, and relation of the VAE's own latents to the network.

use serde::{Deserialize, Serialize};

use super::{AutoencoderConfig, single};

/// Space of latents: their scale, and their layout in channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LatentSpace {
    /// The diffusion model's: scaled by the model's factors, and in patches if it packs them.
    #[default]
    Model,
    /// The VAE's own: neither scaled nor in patches. `ComfyUI` keeps latents so.
    Vae,
}

impl LatentSpace {
    /// Returns the VAE's own space for a flag `unscaled` that is set, else the diffusion model's.
    pub fn from_unscaled(unscaled: bool) -> Self {
        if unscaled { Self::Vae } else { Self::Model }
    }

    /// Returns the other space.
    #[must_use]
    pub fn other(self) -> Self {
        Self::from_unscaled(self == Self::Model)
    }

    /// True for the VAE's own space, as a flag `unscaled` says it.
    pub fn is_unscaled(self) -> bool {
        self == Self::Vae
    }
}

/// Number of channels of LTX-2's latents.
pub(crate) const LTX2_CHANNELS: u32 = 128;
/// Number of channels of MiniMax-H3's latents.
pub(crate) const H3_CHANNELS: u32 = 24;

/// Order of the squares of `patch` by `patch` own latent pixels in the diffusion model's latents.
/// Each channel of each place in a square has its own statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Packing {
    /// In channels, with the places of one channel side by side: channel `c * patch^2 + place`.
    /// FLUX.2 uses this order.
    #[default]
    ByChannel,
    /// In channels, with the channels of one place side by side: channel `place * channels + c`.
    /// Ideogram 4 uses this order.
    ByPlace,
    /// As pixels, at the VAE's own positions. Only the statistics differ by place, in the order of
    /// [`Self::ByChannel`]. FIBO 2 uses this.
    Unpacked,
}

impl Packing {
    /// Returns the distances from one channel to the next, and from one place in a square to the
    /// next. They apply to the order of factors and statistics.
    pub(crate) fn steps(self, channels: u32, patch: u32) -> (u32, u32) {
        match self {
            Self::ByChannel | Self::Unpacked => (patch * patch, 1),
            Self::ByPlace => (1, channels),
        }
    }

    /// Returns the side of the square of pixels that one latent pixel holds in its channels.
    pub(crate) fn held(self, patch: u32) -> u32 {
        match self {
            Self::ByChannel | Self::ByPlace => patch,
            Self::Unpacked => 1,
        }
    }
}

/// Relation between the VAE's own latents and the network.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnLatents {
    /// The network's input and output.
    OfNetwork,
    /// Latents of the VAE that a tiny autoencoder replaces. Its network takes
    /// `(own - shift_factor) * scaling_factor`, as the diffusion model does.
    StandIn {
        /// Scaling factor of that VAE.
        scaling_factor: f32,
        /// Shift of that VAE.
        shift_factor: f32,
    },
    /// Latents of the VAE that a tiny autoencoder replaces. Its network takes `(own - mean) / std`
    /// of each channel, as the diffusion model does.
    Normalised {
        /// Mean of each channel of that VAE's latents.
        #[serde(skip)]
        mean: &'static [f64],
        /// Standard deviation of each channel of that VAE's latents.
        #[serde(skip)]
        std: &'static [f64],
    },
    /// Latents of one of several VAEs that the tiny autoencoder may replace.
    Unknown,
}

impl OwnLatents {
    /// Returns the relation for a tiny autoencoder that replaces the VAE of `config`.
    pub fn stand_in_for(config: &AutoencoderConfig) -> Self {
        Self::StandIn { scaling_factor: single(config.scaling_factor), shift_factor: single(config.shift()) }
    }

    /// Returns factor and summand of each of `channels` channels that turn the VAE's own latents
    /// into the network's input.
    pub(crate) fn scale(self, channels: u32) -> (Vec<f32>, Vec<f32>) {
        let all = |factor, offset| (vec![factor; channels as usize], vec![offset; channels as usize]);
        match self {
            Self::OfNetwork | Self::Unknown => all(1.0, 0.0),
            Self::StandIn { scaling_factor, shift_factor } => all(scaling_factor, -shift_factor * scaling_factor),
            Self::Normalised { mean, std } => {
                let numbers = || mean.iter().zip(std);
                (
                    numbers().map(|(_, std)| single(1.0 / std)).collect(),
                    numbers().map(|(mean, std)| single(-mean / std)).collect(),
                )
            }
        }
    }
}
