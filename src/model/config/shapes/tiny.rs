//! Derivation of networks like `AutoencoderTiny`. Layers are numbered throughout. Blocks have
//! several convolutions, as `conv.0`, and layers that change time one, as `conv`.

use super::votes::{Needed, Shapes, most_common, vote};
use crate::model::config::{AutoencoderConfig, FAMILIES, Halves, Network, OwnLatents, Starts, Tiny};

/// Derives the config of the network that `shapes` show.
pub(super) fn derive(shapes: &Shapes<'_>, halves: Halves) -> Result<AutoencoderConfig, Needed> {
    let is_video = shapes.any(&|name| is_change_of_time(name));
    let encoder = Half::of(shapes, "encoder.layers", is_video).ok_or("encoder.layers.1.conv.0.weight");
    let decoder = Half::of(shapes, "decoder.layers", is_video).ok_or("decoder.layers.2.conv.0.weight");
    let (encoder, decoder) = match (halves.encoder, halves.decoder) {
        (true, true) => (encoder?, decoder?),
        (true, false) => (encoder.clone()?, encoder?.mirrored()),
        (false, _) => (decoder.clone()?.mirrored(), decoder?),
    };
    let (temporal_downsample, grow_frames) = if is_video { times(&encoder, &decoder) } else { Default::default() };
    let network = Tiny {
        encoder_block_out_channels: encoder.channels,
        decoder_block_out_channels: decoder.channels,
        num_encoder_blocks: encoder.blocks,
        num_decoder_blocks: decoder.blocks,
        use_midblock_gn: shapes.any(&|name| name.contains(".pool.")),
        patch_size: shapes.image_patch().max(encoder.patch),
        temporal_downsample,
        grow_frames,
        starts: Starts::First,
    };
    // TAEF2's own latents are FLUX.2's as the diffusion model sees them, without patches. Shapes do
    // not show which VAE the others replace.
    let own_latents = if network.use_midblock_gn { OwnLatents::OfNetwork } else { OwnLatents::Unknown };
    Ok(AutoencoderConfig {
        own_latents,
        ..AutoencoderConfig::new(Network::Tiny(network), latent_channels(shapes, halves)?)
    })
}

/// True for a tensor of a layer of TAEHV that changes the number of frames.
fn is_change_of_time(name: &str) -> bool {
    name.contains(".layers.") && name.ends_with(".conv.weight")
}

/// Returns the size changes that also change time, highest resolution first, and the frames that
/// the decoder's weights make, lowest resolution first.
fn times(encoder: &Half, decoder: &Half) -> (Vec<bool>, Vec<u32>) {
    // If one half does not tell, the other does.
    let down = encoder.frames.iter().zip(decoder.frames.iter().rev()).map(|(down, up)| down.or(*up).unwrap_or(1));
    let down: Vec<u32> = down.collect();
    let up = decoder.frames.iter().zip(down.iter().rev()).map(|(up, down)| up.unwrap_or(*down));
    (down.iter().map(|frames| *frames == 2).collect(), up.collect())
}

/// The structure of one half of the network.
#[derive(Clone)]
struct Half {
    /// Channels of each level.
    channels: Vec<u32>,
    /// Number of blocks in each level.
    blocks: Vec<u32>,
    /// Side of the squares of image pixels in channels, by the number of the first block; or 1.
    patch: u32,
    /// Number of frames that become one, or that one becomes, at each size change. Empty without
    /// time, and `None` if its weights do not tell.
    frames: Vec<Option<u32>>,
}

impl Half {
    fn of(shapes: &Shapes<'_>, layers: &str, is_video: bool) -> Option<Self> {
        let is_encoder = layers.starts_with("encoder");
        let extent = |number: u32, part: &str, axis| shapes.extent(&format!("{layers}.{number}.{part}"), axis);
        let mut half = Self { channels: Vec::new(), blocks: Vec::new(), patch: 1, frames: Vec::new() };
        let numbers = shapes.numbers(layers, &|rest| rest.starts_with("conv.") && rest.matches('.').count() == 2);
        let first = *numbers.items().first()?;
        // Levels without blocks come first in an encoder.
        if is_encoder && is_video {
            half.push(&[extent(0, "weight", 0), extent(0, "bias", 0), extent(2, "conv.weight", 0)], 0);
        } else if is_encoder && first == 4 {
            // Two convolutions with a `ReLU` each come before TAESANA's first block, and halve the
            // size. The first has a level of its own.
            half.push(&[Some(0)], 0);
            half.push(&[extent(0, "weight", 0), extent(0, "bias", 0), extent(2, "weight", 1)], 0);
        } else if is_encoder && first == 3 {
            // Before it come a layer that puts pixels into channels, a convolution and a `ReLU`.
            half.patch = 2;
        }
        for &start in numbers.items() {
            if start > 0 && numbers.contains(&(start - 1)) {
                continue;
            }
            let count = (start..=u32::MAX).take_while(|number| numbers.contains(number)).count();
            let end = start.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
            let mut votes = Vec::new();
            for number in start..end {
                let parts =
                    ["conv.0.weight", "conv.0.bias", "conv.2.weight", "conv.2.bias", "conv.4.weight", "conv.4.bias"];
                votes.extend(parts.map(|part| extent(number, part, 0)));
            }
            // A change of the encoder's frames comes before the level, and then a convolution. One
            // of the decoder's comes after it, and then a doubling of the size.
            let change = if is_encoder { start.checked_sub(2) } else { end.checked_add(1) };
            let own = half.channels.last().copied().filter(|_| is_encoder);
            half.push(&votes, end - start);
            let own = own.or_else(|| half.channels.last().copied())?;
            if is_video {
                let found = extent(change?, "conv.weight", usize::from(is_encoder));
                half.frames.push([1, 2].into_iter().find(|times| own.checked_mul(*times) == found));
            }
        }
        if is_video && !is_encoder {
            let last = shapes.numbers(layers, &|_| true).items().last().copied()?;
            let before = half.channels.last().copied();
            half.push(&[extent(last, "weight", 1), extent(last.saturating_sub(2), "weight", 0), before], 0);
        }
        Some(half)
    }

    /// Adds a level, with the most common of its possible widths. Without any, it has none.
    fn push(&mut self, votes: &[Option<u32>], blocks: u32) {
        self.channels.push(vote(votes).unwrap_or_default());
        self.blocks.push(blocks);
    }

    /// Returns the mirrored half. Levels of TAESANA's encoder without blocks get some.
    fn mirrored(mut self) -> Self {
        if let [first @ 0, second, ..] = self.channels.as_mut_slice() {
            *first = *second;
            self.blocks.iter_mut().for_each(|count| *count = (*count).max(1));
        }
        self.channels.reverse();
        self.blocks.reverse();
        self.frames.reverse();
        self
    }
}

/// Returns the latent channels, which the first layer of the decoder and the last of the encoder
/// show. If they differ, a number of a published model wins.
fn latent_channels(shapes: &Shapes<'_>, halves: Halves) -> Result<u32, Needed> {
    let last = shapes.numbers("encoder.layers", &|_| true).items().last().copied().unwrap_or_default();
    let made = ["weight", "bias"].map(|part| shapes.extent(&format!("encoder.layers.{last}.{part}"), 0));
    let witnesses = made.into_iter().chain([shapes.extent("decoder.layers.0.weight", 1)]).flatten();
    let published = |channels: &u32| FAMILIES.iter().any(|family| family.config().latent_channels == *channels);
    let needed = if halves.decoder { "decoder.layers.0.weight" } else { "encoder.layers.14.weight" };
    most_common(witnesses.clone().chain(witnesses.filter(published))).ok_or(needed)
}
