//! Derivation of a config from the names and shapes of a VAE's weights, for files without a
//! config.json.
//!
//! Several tensors show the same number, and the majority decides. A missing or misshapen tensor
//! therefore does not change the network. The later check of all tensors reports it by name.

mod dc;
mod hunyuan_video;
mod kl;
mod ltx2;
mod tiny;
mod votes;
mod wan;

use std::collections::BTreeMap;

use self::votes::Shapes;
use super::{AutoencoderConfig, Difference, FAMILIES, Family, Halves, Network, Packing, PaddingMode, invalid};
use crate::error::{Error, Result};
use crate::named::Named;

/// The result of the derivation: a network, but not the scale of its latents.
#[derive(Debug, Clone)]
pub struct Derived {
    unscaled: AutoencoderConfig,
    halves: Halves,
    candidates: Vec<&'static Family>,
}

impl Derived {
    /// Derives a network from `shapes`: tensor name in diffusers' spelling -> shape. Either half
    /// may be missing. `source` is for errors.
    ///
    /// # Errors
    /// [`Error::MissingTensors`] that names a tensor without which the network is unknown.
    pub fn from_shapes(source: &str, shapes: &BTreeMap<String, Vec<u64>>) -> Result<Self> {
        let shapes = Shapes::new(shapes);
        let has = |half: &str| shapes.any(&|name| name.starts_with(half));
        let halves = Halves { encoder: has("encoder."), decoder: has("decoder.") };
        let unscaled = if shapes.any(&|name| name.contains("coder.layers.")) {
            tiny::derive(&shapes, halves)
        } else if shapes.any(&|name| name.contains("_blocks.") && name.ends_with(".norm.weight")) {
            dc::derive(&shapes, halves)
        } else if shapes.any(&|name| name.contains(".attentions.0.proj_out.")) {
            hunyuan_video::derive(&shapes, halves)
        } else if shapes.any(&|name| name.ends_with(".gamma")) {
            wan::derive(&shapes, halves)
        } else if !shapes.any(&|name| name.contains("norm")) && shapes.reach_over_frames() {
            ltx2::derive(&shapes, halves)
        } else {
            kl::derive(&shapes, halves)
        };
        let unscaled = unscaled
            .map_err(|name| Error::MissingTensors { file: source.to_owned(), tensors: vec![name.to_owned()] })?;
        let (in_channels, out_channels) = shapes.image_channels();
        let unscaled = AutoencoderConfig { in_channels, out_channels, ..unscaled };
        let fits = |family: &&Family| {
            let config = family.config();
            // Relatives of FLUX.2 have its weights but other latents, and files never show those.
            config.packing == Packing::ByChannel && config.network_difference(&unscaled, halves).is_none()
        };
        let candidates = FAMILIES.iter().filter(fits).collect();
        Ok(Self { unscaled, halves, candidates })
    }

    /// Returns the network of `family`.
    pub(crate) fn of_family(family: &'static Family) -> Self {
        let unscaled = AutoencoderConfig {
            scaling_factor: 1.0,
            shift_factor: None,
            latents_mean: None,
            latents_std: None,
            ..family.config()
        };
        Self { unscaled, halves: Halves { encoder: true, decoder: true }, candidates: vec![family] }
    }

    /// Takes over what the weights do not show from entry `config` of their file's metadata.
    ///
    /// # Errors
    /// [`Error::Config`] if the entry describes another network.
    pub(crate) fn take_stated(&mut self, stated: &str) -> Result<()> {
        match &mut self.unscaled.network {
            Network::Ltx2(ltx2) if self.halves.decoder => ltx2.take_stated(stated, self.halves.encoder),
            _ => Ok(()),
        }
    }

    /// Takes over entry `padding_mode` of the metadata of an `AutoencoderKL`. Weights do not tell.
    ///
    /// # Errors
    /// [`Error::Config`] for an unknown mode.
    pub(crate) fn take_padding_mode(&mut self, name: &str) -> Result<()> {
        let Network::Kl(kl) = &mut self.unscaled.network else { return Ok(()) };
        kl.padding_mode =
            PaddingMode::find(name).ok_or_else(|| invalid("padding_mode", PaddingMode::expected(), name))?;
        Ok(())
    }

    /// Returns the config with scale 1 and shift 0, so that latents are the VAE's own. A missing
    /// half is assumed to mirror the other.
    pub fn unscaled(&self) -> &AutoencoderConfig {
        &self.unscaled
    }

    /// Returns the published families with this network. Empty for an unknown network.
    pub fn candidates(&self) -> &[&'static Family] {
        &self.candidates
    }

    /// Returns all candidates if their latents have the same scale. Empty if the shapes do not
    /// decide.
    pub fn decided(&self) -> &[&'static Family] {
        let Some((first, others)) = self.candidates.split_first() else { return &[] };
        let first = first.config();
        if others.iter().all(|family| family.config().same_scale(&first)) { &self.candidates } else { &[] }
    }

    /// Returns the first field in which `config` describes another network than the weights.
    pub(crate) fn difference(&self, config: &AutoencoderConfig) -> Option<Difference> {
        config.network_difference(&self.unscaled, self.halves)
    }
}
