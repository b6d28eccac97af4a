//! The graph of a configuration's decoder or encoder, whatever its network.

use std::collections::BTreeMap;

use super::config::{AutoencoderConfig, Network};
use super::graph::{Graph, Shape, Transform};
use super::tensors::file_tensors;
use super::{kl, seedvr, tiny, wan};
use crate::tensor::Size;

/// The decoder's graph for latents of `latent_size`, with an image `[h, w, out_channels]`, -1 to 1 and beyond, as its output.
///
/// With `unscaled`, latents are taken as the VAE's own; otherwise as the diffusion model leaves them, and undone first:
/// [`AutoencoderConfig::latent_scale`], then patches are laid out.
///
/// The configuration must be valid.
pub fn decoder(config: &AutoencoderConfig, latent_size: Size, unscaled: bool) -> Graph {
    let patch = if unscaled { 1 } else { config.patch };
    let channels = config.latent_channels;
    let shape = Shape { height: latent_size.height * patch, width: latent_size.width * patch, channels };
    let transform = if unscaled {
        Transform::none(channels)
    } else {
        let (factor, offset) = config.latent_scale();
        Transform { factor, offset, squash: false, patch }
    };
    match &config.network {
        Network::Kl(network) => kl::decoder(network, shape, transform, config.out_channels),
        Network::Tiny(network) => tiny::decoder(network, shape, transform, config.out_channels),
        Network::Wan(network) => wan::decoder(network, shape, transform, config.out_channels),
        Network::SeedVr(network) => seedvr::decoder(network, shape, transform, config.out_channels),
    }
}

/// The encoder's graph for an image `[h, w, in_channels]` of `image_size`, -1 to 1, with [`encoded_channels`] of the VAE's own latents as its
/// output: neither scaled nor in patches.
///
/// The configuration must be valid and the image large enough: [`AutoencoderConfig::latent_size`] of it is not empty.
pub fn encoder(config: &AutoencoderConfig, image_size: Size) -> Graph {
    let shape = Shape { height: image_size.height, width: image_size.width, channels: config.in_channels };
    let channels = encoded_channels(config);
    match &config.network {
        Network::Kl(network) => kl::encoder(network, shape, channels),
        Network::Tiny(network) => tiny::encoder(network, shape, channels),
        Network::Wan(network) => wan::encoder(network, shape, channels),
        Network::SeedVr(network) => seedvr::encoder(network, shape, channels),
    }
}

/// What a file must have to decode, whatever the size: name in diffusers' spelling -> shape, see [`file_tensors`].
///
/// The configuration must be valid.
pub fn decoder_tensors(config: &AutoencoderConfig) -> BTreeMap<String, Vec<u64>> {
    file_tensors(&decoder(config, Size { width: 1, height: 1 }, true))
}

/// What a file must have to encode, whatever the size: name in diffusers' spelling -> shape, see [`file_tensors`].
///
/// The configuration must be valid.
pub fn encoder_tensors(config: &AutoencoderConfig) -> BTreeMap<String, Vec<u64>> {
    let side = config.spatial_factor();
    file_tensors(&encoder(config, Size { width: side, height: side }))
}

impl AutoencoderConfig {
    /// Name and shape of the tensors of both halves. The configuration must be valid.
    pub(crate) fn tensors(&self) -> BTreeMap<String, Vec<u64>> {
        let mut tensors = decoder_tensors(self);
        tensors.extend(encoder_tensors(self));
        tensors
    }
}

/// Channels of the encoder's output: the latents' for a tiny autoencoder; else twice as many, their mean and then the logarithm of their variance.
pub fn encoded_channels(config: &AutoencoderConfig) -> u32 {
    match config.network {
        Network::Tiny(_) => config.latent_channels,
        Network::Kl(_) | Network::Wan(_) | Network::SeedVr(_) => config.latent_channels * 2,
    }
}
