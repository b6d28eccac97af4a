//! Derivation of networks like `AutoencoderTiny`. Layers are numbered throughout. Blocks have
//! several convolutions, as `conv.0`, and layers that change time one, as `conv`.

use super::votes::{Needed, Shapes, most_common};
use crate::model::config::{AutoencoderConfig, FAMILIES, Halves, Network, OwnLatents, Tiny};

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
        let mut levels: Vec<Vec<u32>> = Vec::new();
        for number in shapes.numbers(layers, &|rest| rest.starts_with("conv.") && rest.matches('.').count() == 2) {
            match levels.last_mut() {
                Some(level) if level.last().and_then(|last| last.checked_add(1)) == Some(number) => level.push(number),
                _ => levels.push(vec![number]),
            }
        }
        let width = |level: &Vec<u32>| {
            let blocks: Vec<String> = level.iter().map(|number| format!("{layers}.{number}.conv.")).collect();
            shapes.most_common_first_extent(&|name| blocks.iter().any(|block| name.starts_with(block)))
        };
        let channels =
            levels.iter().map(width).collect::<Option<Vec<u32>>>().filter(|channels| !channels.is_empty())?;
        let blocks = levels.iter().map(|level| u32::try_from(level.len()).unwrap_or(u32::MAX)).collect();
        let mut half = Self { channels, blocks, patch: 1, frames: Vec::new() };
        let first = levels[0].first().copied().filter(|_| layers.starts_with("encoder"));
        if is_video {
            half = half.of_video(shapes, layers, &levels);
        } else if first == Some(3) {
            // Before it come a layer that puts pixels into channels, a convolution and a `ReLU`.
            half.patch = 2;
        } else if first == Some(4) {
            // Two convolutions with a ReLU each come before TAESANA's first block, and halve the
            // size. The first has a level of its own.
            let votes = [("0.weight", 0), ("0.bias", 0), ("2.weight", 1)];
            let width = votes.map(|(part, axis)| shapes.extent(&format!("{layers}.{part}"), axis));
            half.channels.splice(0..0, [0, most_common(width.into_iter().flatten()).unwrap_or(half.channels[0])]);
            half.blocks.splice(0..0, [0, 0]);
        }
        Some(half)
    }

    /// Adds the level without blocks, and the frames of each size change. `levels` has the numbers
    /// of the blocks.
    fn of_video(mut self, shapes: &Shapes<'_>, layers: &str, levels: &[Vec<u32>]) -> Self {
        let extent = |number: u32, part: &str, axis| shapes.extent(&format!("{layers}.{number}.{part}"), axis);
        let is_encoder = layers.starts_with("encoder");
        if is_encoder {
            let votes = [extent(0, "weight", 0), extent(0, "bias", 0), extent(2, "conv.weight", 0)];
            self.channels.insert(0, most_common(votes.into_iter().flatten()).unwrap_or(self.channels[0]));
            self.blocks.insert(0, 0);
        } else {
            let last = shapes.numbers(layers, &|_| true).last().copied().unwrap_or_default();
            let before = self.channels.last().copied();
            let votes = [extent(last, "weight", 1), extent(last.saturating_sub(2), "weight", 0), before];
            self.channels.extend(most_common(votes.into_iter().flatten()));
            self.blocks.push(0);
        }
        let frames = |(change, level): (usize, &Vec<u32>)| {
            // A change of the encoder comes before the blocks of its level, and then a convolution.
            // One of the decoder comes after them, and then a doubling of the size.
            let number = match is_encoder {
                true => level.first()?.checked_sub(2)?,
                false => level.last()?.checked_add(2)?,
            };
            let (found, own) = (extent(number, "conv.weight", usize::from(is_encoder))?, self.channels[change]);
            [1, 2].into_iter().find(|times| own.checked_mul(*times) == Some(found))
        };
        self.frames = levels.iter().enumerate().map(frames).collect();
        self
    }

    /// Returns the mirrored half. Levels of TAESANA's encoder without blocks get some.
    fn mirrored(mut self) -> Self {
        if self.channels[0] == 0 {
            self.channels[0] = self.channels[1];
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
    let last = shapes.numbers("encoder.layers", &|_| true).last().copied().unwrap_or_default();
    let made = ["weight", "bias"].map(|part| shapes.extent(&format!("encoder.layers.{last}.{part}"), 0));
    let witnesses = made.into_iter().chain([shapes.extent("decoder.layers.0.weight", 1)]).flatten();
    let published = |channels: &u32| FAMILIES.iter().any(|family| family.config().latent_channels == *channels);
    let needed = if halves.decoder { "decoder.layers.0.weight" } else { "encoder.layers.14.weight" };
    most_common(witnesses.clone().chain(witnesses.filter(published))).ok_or(needed)
}
