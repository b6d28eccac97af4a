//! The graph of a configuration's decoder or encoder, whatever its network.

use std::collections::BTreeMap;

use super::blocks::Part;
use super::config::{AutoencoderConfig, Network};
use super::graph::{Graph, Shape, Transform};
use super::tensors::file_tensors;
use super::{kl, seedvr, tiny, wan};
use crate::tensor::Size;

/// The decoder's graph for latents of `latent_size`, one frame of them, with an image `[h, w,
/// out_channels]`, -1 to 1 and beyond, as its output.
///
/// With `unscaled`, latents are taken as the VAE's own, see [`AutoencoderConfig::own_latents`].
/// Otherwise as the diffusion model leaves them, and undone first:
/// [`AutoencoderConfig::latent_scale`], then patches are laid out.
///
/// The configuration must be valid.
pub fn decoder(config: &AutoencoderConfig, latent_size: Size, unscaled: bool) -> Graph {
    part_of_decoder(config, Part::Image, latent_size, unscaled)
}

/// The same for a part of a clip: one frame of latents, and as many frames of an image as are made
/// of it, [`frames`].
///
/// The configuration must be valid and its network's frames see one another, see
/// [`AutoencoderConfig::has_time`], but for a single image.
pub fn part_of_decoder(config: &AutoencoderConfig, part: Part, latent_size: Size, unscaled: bool) -> Graph {
    let held = if unscaled { 1 } else { config.packing.held(config.patch) };
    let channels = config.latent_channels;
    let shape = Shape::image(latent_size.height * held, latent_size.width * held, channels);
    let transform = if unscaled {
        let (factor, offset) = config.own_latents.scale();
        Transform::uniform(channels, factor, offset)
    } else {
        let (factor, offset) = config.latent_scale();
        Transform { factor, offset, squash: false, patch: config.patch, packing: config.packing }
    };
    match &config.network {
        Network::Kl(network) => kl::decoder(network, shape, transform, config.out_channels),
        Network::Tiny(network) => tiny::decoder(network, shape, transform, config.out_channels),
        Network::Wan(network) => wan::decoder(network, part, shape, transform, config.out_channels),
        Network::SeedVr(network) => seedvr::decoder(network, part, shape, transform, config.out_channels),
    }
}

/// The encoder's graph for an image `[h, w, in_channels]` of `image_size`, -1 to 1, with
/// [`encoded_channels`] of the VAE's own latents as its output: neither scaled nor in patches.
///
/// The configuration must be valid and the image large enough: [`AutoencoderConfig::latent_size`]
/// of it is not empty.
pub fn encoder(config: &AutoencoderConfig, image_size: Size) -> Graph {
    part_of_encoder(config, Part::Image, image_size)
}

/// The same for a part of a clip: as many frames as one frame of latents is made of, [`frames`].
///
/// See [`part_of_decoder`].
pub fn part_of_encoder(config: &AutoencoderConfig, part: Part, image_size: Size) -> Graph {
    let frames = frames(config, part);
    let shape = Shape { frames, ..Shape::image(image_size.height, image_size.width, config.in_channels) };
    let channels = encoded_channels(config);
    match &config.network {
        Network::Kl(network) => kl::encoder(network, shape, channels),
        Network::Tiny(network) => tiny::encoder(network, shape, channels),
        Network::Wan(network) => wan::encoder(network, part, shape, channels),
        Network::SeedVr(network) => seedvr::encoder(network, part, shape, channels),
    }
}

/// Frames of an image in a part of a clip that has one frame of latents.
pub fn frames(config: &AutoencoderConfig, part: Part) -> u32 {
    match part {
        Part::Image | Part::First => 1,
        Part::Next => config.temporal_factor(),
    }
}

/// What a file must have to decode, whatever the size: name in diffusers' spelling -> shape, see
/// [`file_tensors`].
///
/// The configuration must be valid.
pub fn decoder_tensors(config: &AutoencoderConfig) -> BTreeMap<String, Vec<u64>> {
    tensors_of_decoder(config, Part::Image)
}

/// The same for a part of a clip.
pub fn tensors_of_decoder(config: &AutoencoderConfig, part: Part) -> BTreeMap<String, Vec<u64>> {
    file_tensors(&part_of_decoder(config, part, Size { width: 1, height: 1 }, true))
}

/// What a file must have to encode, whatever the size: name in diffusers' spelling -> shape, see
/// [`file_tensors`].
///
/// The configuration must be valid.
pub fn encoder_tensors(config: &AutoencoderConfig) -> BTreeMap<String, Vec<u64>> {
    tensors_of_encoder(config, Part::Image)
}

/// The same for a part of a clip.
pub fn tensors_of_encoder(config: &AutoencoderConfig, part: Part) -> BTreeMap<String, Vec<u64>> {
    let side = config.spatial_factor();
    file_tensors(&part_of_encoder(config, part, Size { width: side, height: side }))
}

impl AutoencoderConfig {
    /// Whether it is for video: frames after the first depend on those before.
    pub fn has_time(&self) -> bool {
        matches!(self.network, Network::Wan(_) | Network::SeedVr(_))
    }

    /// Whether a decode ends with a clamp to -1..1: diffusers' Wan and Qwen-Image.
    pub(crate) fn clamps(&self) -> bool {
        matches!(self.network, Network::Wan(_))
    }

    /// Frames of an image that one frame of latents after the first stands for.
    pub fn temporal_factor(&self) -> u32 {
        let changes = match &self.network {
            Network::Kl(_) | Network::Tiny(_) => 0,
            Network::Wan(wan) => {
                (0..self.network.levels().saturating_sub(1)).filter(|index| wan.changes_time(*index)).count()
            }
            Network::SeedVr(seedvr) => seedvr.temporal_scale_num as usize,
        };
        1 << changes.min(8)
    }

    /// Name and shape of the tensors of both halves. The configuration must be valid.
    pub(crate) fn tensors(&self) -> BTreeMap<String, Vec<u64>> {
        let mut tensors = decoder_tensors(self);
        tensors.extend(encoder_tensors(self));
        tensors
    }
}

/// Channels of the encoder's output: the latents' for a tiny autoencoder; else twice as many, their
/// mean and then the logarithm of their variance.
pub fn encoded_channels(config: &AutoencoderConfig) -> u32 {
    match config.network {
        Network::Tiny(_) => config.latent_channels,
        Network::Kl(_) | Network::Wan(_) | Network::SeedVr(_) => config.latent_channels * 2,
    }
}
