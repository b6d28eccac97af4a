//! Graphs of a config's decoder or encoder, for every network.

use std::collections::BTreeMap;

use super::blocks::Part;
use super::config::{AutoencoderConfig, LatentSpace, Network, Starts};
use super::graph::{Graph, Shape, Transform};
use super::tensors::file_tensors;
use super::{dc, hunyuan_image, hunyuan_video, kl, ltx2, seedvr, tiny, wan};
use crate::tensor::Size;

/// Builds the decoder's graph for one frame of latents of `latent_size`. Its output is an image
/// `[h, w, out_channels]`, from -1 to 1 and beyond.
///
/// In the VAE's own space, the input is its latents, see [`AutoencoderConfig::own_latents`].
/// Otherwise it is the diffusion model's latents. Their scale is undone first
/// ([`AutoencoderConfig::latent_scale`]), then patches are laid out.
///
/// The config must be valid.
pub fn decoder(config: &AutoencoderConfig, latent_size: Size, space: LatentSpace) -> Graph {
    part_of_decoder(config, Part::Image, latent_size, space)
}

/// Builds the decoder's graph for a part of a clip: one frame of latents to one frame of pixels in
/// the first part, and to [`AutoencoderConfig::temporal_factor`] frames in the others.
///
/// The config must be valid. Parts other than a single image need a video network, see
/// [`AutoencoderConfig::has_time`].
pub fn part_of_decoder(config: &AutoencoderConfig, part: Part, latent_size: Size, space: LatentSpace) -> Graph {
    let held = if space == LatentSpace::Vae { 1 } else { config.packing.held(config.patch) };
    let channels = config.latent_channels;
    let shape = Shape::image(latent_size.height * held, latent_size.width * held, channels);
    let transform = if space == LatentSpace::Vae {
        let (factor, offset) = config.own_latents.scale(channels);
        Transform { factor, offset, ..Transform::none(channels) }
    } else {
        let (factor, offset) = config.latent_scale();
        Transform { factor, offset, squash: false, patch: config.patch, packing: config.packing }
    };
    match &config.network {
        Network::Kl(network) if network.has_shortcuts => {
            hunyuan_image::decoder(network, shape, transform, config.out_channels)
        }
        Network::Kl(network) => kl::decoder(network, shape, transform, config.out_channels),
        Network::Tiny(network) => tiny::decoder(network, part, shape, transform, config.out_channels),
        Network::Wan(network) => wan::decoder(network, part, shape, transform, config.out_channels),
        Network::SeedVr(network) => seedvr::decoder(network, part, shape, transform, config.out_channels),
        Network::Ltx2(network) => ltx2::decoder(network, part, shape, transform, config.out_channels),
        Network::HunyuanVideo(network) => hunyuan_video::decoder(network, part, shape, transform, config.out_channels),
        Network::Dc(network) => dc::decoder(network, shape, transform, config.out_channels),
    }
}

/// Builds the encoder's graph for an image `[h, w, in_channels]` of `image_size`, -1 to 1. Its
/// output has [`encoded_channels`] of the VAE's own latents, neither scaled nor in patches.
///
/// The config must be valid, and [`AutoencoderConfig::latent_size`] of the image must not be empty.
pub fn encoder(config: &AutoencoderConfig, image_size: Size) -> Graph {
    part_of_encoder(config, Part::Image, image_size)
}

/// Builds the encoder's graph for a part of a clip: [`frames`] frames of pixels to one frame of
/// latents.
///
/// See [`part_of_decoder`] for the conditions.
pub fn part_of_encoder(config: &AutoencoderConfig, part: Part, image_size: Size) -> Graph {
    let frames = frames(config, part);
    let shape = Shape { frames, ..Shape::image(image_size.height, image_size.width, config.in_channels) };
    let channels = encoded_channels(config);
    match &config.network {
        Network::Kl(network) if network.has_shortcuts => hunyuan_image::encoder(network, shape, channels),
        Network::Kl(network) => kl::encoder(network, shape, channels),
        Network::Tiny(network) => tiny::encoder(network, part, shape, channels),
        Network::Wan(network) => wan::encoder(network, part, shape, channels),
        Network::SeedVr(network) => seedvr::encoder(network, part, shape, channels),
        Network::Ltx2(network) => ltx2::encoder(network, part, shape, config.latent_channels),
        Network::HunyuanVideo(network) => hunyuan_video::encoder(network, part, shape, channels),
        Network::Dc(network) => dc::encoder(network, shape, channels),
    }
}

/// Returns the number of image frames that an encode sees in a part of a clip, for one frame of
/// latents. In a chunk's first part, some of them are black, see [`Starts::EveryFifth`].
pub fn frames(config: &AutoencoderConfig, part: Part) -> u32 {
    match part {
        Part::Image => 1,
        Part::First if !config.fills_parts() && config.starts() != Starts::EveryFifth => 1,
        Part::First | Part::Next => config.temporal_factor(),
    }
}

/// Lists the tensors that a file needs to decode images of any size: name in diffusers' spelling ->
/// shape, see [`file_tensors`].
///
/// The config must be valid.
pub fn decoder_tensors(config: &AutoencoderConfig) -> BTreeMap<String, Vec<u64>> {
    tensors_of_decoder(config, Part::Image)
}

/// Lists the tensors that a file needs to decode a part of a clip.
pub fn tensors_of_decoder(config: &AutoencoderConfig, part: Part) -> BTreeMap<String, Vec<u64>> {
    file_tensors(&part_of_decoder(config, part, Size { width: 1, height: 1 }, LatentSpace::Vae))
}

/// Lists the tensors that a file needs to encode images of any size: name in diffusers' spelling ->
/// shape, see [`file_tensors`].
///
/// The config must be valid.
pub fn encoder_tensors(config: &AutoencoderConfig) -> BTreeMap<String, Vec<u64>> {
    tensors_of_encoder(config, Part::Image)
}

/// Lists the tensors that a file needs to encode a part of a clip.
pub fn tensors_of_encoder(config: &AutoencoderConfig, part: Part) -> BTreeMap<String, Vec<u64>> {
    let side = config.spatial_factor();
    file_tensors(&part_of_encoder(config, part, Size { width: side, height: side }))
}

impl AutoencoderConfig {
    /// True if the model is for video: frames depend on the frames before them. Models with opacity
    /// are for images, whatever their network: each layer is an image by itself.
    pub fn has_time(&self) -> bool {
        self.network.facts().time_changes.is_some() && self.in_channels.max(self.out_channels) == 3
    }

    /// True if the first latent of an encode stands for as many frames as any other. The last frame
    /// is repeated until the last latent has as many. Otherwise the first latent stands for one.
    pub fn fills_parts(&self) -> bool {
        self.network.facts().fills_parts
    }

    /// Returns the latents of a clip that stand for one frame each.
    pub fn starts(&self) -> Starts {
        self.network.facts().starts
    }

    /// Returns the number of image frames that each frame of latents after the first stands for.
    pub fn temporal_factor(&self) -> u32 {
        1 << self.network.facts().time_changes.unwrap_or(0).min(8)
    }

    /// Lists name and shape of the tensors of both halves. The config must be valid.
    pub(crate) fn tensors(&self) -> BTreeMap<String, Vec<u64>> {
        let mut tensors = decoder_tensors(self);
        tensors.extend(encoder_tensors(self));
        tensors
    }
}

/// Returns the number of channels of the encoder's output. Tiny autoencoders and DC-AE have those
/// of the latents. Others have twice as many: mean, then log variance.
pub fn encoded_channels(config: &AutoencoderConfig) -> u32 {
    if config.has_distribution() { config.latent_channels * 2 } else { config.latent_channels }
}
