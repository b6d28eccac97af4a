//! Derivation of networks like `AutoencoderTiny`. Layers are numbered throughout, and blocks are
//! the layers with a `conv`.

use super::votes::{Needed, Shapes, most_common};
use crate::model::config::{AutoencoderConfig, FAMILIES, Halves, Network, OwnLatents, Tiny};

/// Derives the config of the network that `shapes` show.
pub(super) fn derive(shapes: &Shapes<'_>, halves: Halves) -> Result<AutoencoderConfig, Needed> {
    let encoder = Half::of(shapes, "encoder.layers").ok_or("encoder.layers.1.conv.0.weight");
    let decoder = Half::of(shapes, "decoder.layers").ok_or("decoder.layers.2.conv.0.weight");
    let (encoder, decoder) = match (halves.encoder, halves.decoder) {
        (true, true) => (encoder?, decoder?),
        (true, false) => (encoder.clone()?, encoder?.mirrored()),
        (false, _) => (decoder.clone()?.mirrored(), decoder?),
    };
    let network = Tiny {
        encoder_block_out_channels: vec![encoder.channels; encoder.blocks.len()],
        decoder_block_out_channels: vec![decoder.channels; decoder.blocks.len()],
        num_encoder_blocks: encoder.blocks,
        num_decoder_blocks: decoder.blocks,
        use_midblock_gn: shapes.any(&|name| name.contains(".pool.")),
    };
    // TAEF2's own latents are FLUX.2's as the diffusion model sees them, without patches. Shapes do
    // not show which VAE the others replace.
    let own_latents = if network.use_midblock_gn { OwnLatents::OfNetwork } else { OwnLatents::Unknown };
    Ok(AutoencoderConfig {
        own_latents,
        ..AutoencoderConfig::new(Network::Tiny(network), latent_channels(shapes, halves)?)
    })
}

/// The structure of one half of the network.
#[derive(Clone)]
struct Half {
    channels: u32,
    /// Number of blocks in each level.
    blocks: Vec<u32>,
}

impl Half {
    fn of(shapes: &Shapes<'_>, layers: &str) -> Option<Self> {
        let is_block = |name: &str| name.starts_with(layers) && name.contains(".conv.");
        let channels = shapes.most_common_first_extent(&is_block)?;
        let mut blocks: Vec<u32> = Vec::new();
        let mut last = None;
        for number in shapes.numbers(layers, &|rest| rest.starts_with("conv.")) {
            match blocks.last_mut() {
                Some(count) if last.and_then(|last: u32| last.checked_add(1)) == Some(number) => *count += 1,
                _ => blocks.push(1),
            }
            last = Some(number);
        }
        Some(Self { channels, blocks })
    }

    /// Returns the mirrored half.
    fn mirrored(mut self) -> Self {
        self.blocks.reverse();
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
