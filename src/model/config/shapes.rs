//! Derives a config from the names and shapes of a VAE's weights, for files that come without
//! config.json.
//!
//! Every number is what most of the tensors that show it say. So one that is missing, or of a wrong
//! shape, is found later, by its name, when all tensors of the network are looked for; it does not
//! make another network of this one.

mod kl;
mod tiny;
mod votes;
mod wan;

use std::collections::BTreeMap;

use self::votes::Shapes;
use super::{AutoencoderConfig, FAMILIES, Family, Halves, Packing};
use crate::error::{Error, Result};

/// What the shapes of a VAE's weights tell: its network, but not the scale of its latents.
#[derive(Debug, Clone)]
pub struct Derived {
    unscaled: AutoencoderConfig,
    halves: Halves,
    candidates: Vec<&'static Family>,
}

impl Derived {
    /// Derives from `shapes`: tensor name in diffusers' spelling -> shape. `source` is for errors.
    /// Either half may be missing.
    ///
    /// # Errors
    /// [`Error::MissingTensors`] naming a tensor of those without which nothing can be told.
    pub fn from_shapes(source: &str, shapes: &BTreeMap<String, Vec<u64>>) -> Result<Self> {
        let shapes = Shapes::new(shapes);
        let has = |half: &str| shapes.any(|name| name.starts_with(half));
        let halves = Halves { encoder: has("encoder."), decoder: has("decoder.") };
        let unscaled = if shapes.any(|name| name.contains("coder.layers.")) {
            tiny::derive(&shapes, halves)
        } else if shapes.any(|name| name.ends_with(".gamma")) {
            wan::derive(&shapes, halves)
        } else {
            kl::derive(&shapes, halves)
        };
        let unscaled = unscaled
            .map_err(|name| Error::MissingTensors { file: source.to_owned(), tensors: vec![name.to_owned()] })?;
        let fits = |family: &&Family| {
            let config = family.config();
            // FLUX.2's relatives have its weights, and other latents: files never show them.
            config.packing == Packing::ByChannel && config.network_difference(&unscaled, halves).is_none()
        };
        let candidates = FAMILIES.iter().filter(fits).collect();
        Ok(Self { unscaled, halves, candidates })
    }

    /// The config with scale 1 and shift 0: latents are what the VAE itself has. What a half tells
    /// that is missing is as in the other.
    pub fn unscaled(&self) -> &AutoencoderConfig {
        &self.unscaled
    }

    /// The published families with this network. Empty for one that is not known.
    pub fn candidates(&self) -> &[&'static Family] {
        &self.candidates
    }

    /// All candidates, if their latents mean the same. Empty if the shapes do not decide.
    pub fn decided(&self) -> &[&'static Family] {
        let Some((first, others)) = self.candidates.split_first() else { return &[] };
        let first = first.config();
        if others.iter().all(|family| family.config().same_scale(&first)) { &self.candidates } else { &[] }
    }

    /// The first field in which `config` describes another network than the weights show.
    pub(crate) fn difference(&self, config: &AutoencoderConfig) -> Option<&'static str> {
        config.network_difference(&self.unscaled, self.halves)
    }
}
