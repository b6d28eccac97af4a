//! The weights that a model needs for decodes and encodes, known from its configuration alone.

use std::collections::BTreeMap;

use crate::direction::{Direction, Directions};
use crate::error::{Error, Result};
use crate::io::{Checkpoint, StoredTensor};
use crate::model::blocks::Part;
use crate::model::config::{AutoencoderConfig, LatentSpace};
use crate::model::graph::Graph;
use crate::model::networks::{part_of_decoder, part_of_encoder};
use crate::model::tensors::file_tensors;
use crate::ordered::{Map, Set};
use crate::plan::WeightUse;
use crate::plan::manifest::weights_of;
use crate::tensor::{Bytes, Size, Storage};

impl Checkpoint {
    /// Checks, from the headers of its files alone, that the model has all tensors that a decode
    /// needs.
    ///
    /// # Errors
    /// [`Error::Input`] for a file that has only an encoder; [`Error::MissingTensors`], which lists
    /// all missing tensors; [`Error::Tensor`] for the first tensor of a wrong shape or type.
    pub fn check_decoder(&self) -> Result<()> {
        WeightManifest::checked(self, Directions::Decode, false).map(drop)
    }

    /// Checks, from the headers of its files alone, that the model has all tensors that an encode
    /// needs.
    ///
    /// # Errors
    /// [`Error::Input`] for a file that has only a decoder; [`Error::MissingTensors`], which lists
    /// all missing tensors; [`Error::Tensor`] for the first tensor of a wrong shape or type.
    pub fn check_encoder(&self) -> Result<()> {
        WeightManifest::checked(self, Directions::Encode, false).map(drop)
    }

    /// Checks, from the headers of its files alone, that the model has all tensors that clips need
    /// in `directions`.
    ///
    /// # Errors
    /// See [`Self::check_decoder`] and [`Self::check_encoder`]; [`Error::Input`] for a network
    /// without a time axis.
    pub fn check_clips(&self, directions: Directions) -> Result<()> {
        WeightManifest::checked(self, directions, true).map(drop)
    }

    /// Returns the parts of the model's files that [`super::Vae::load`] reads for `directions`, for
    /// images or for `clips`, in its order. Each part is the index of the file, the first byte, and
    /// the length in bytes.
    ///
    /// # Errors
    /// See [`Self::check_decoder`] and [`Self::check_encoder`].
    pub fn weight_reads(&self, directions: Directions, clips: bool) -> Result<Vec<(usize, u64, u64)>> {
        let manifest = WeightManifest::checked(self, directions, clips)?;
        let names = manifest.tensors().map(|same| same[0].name.as_str());
        Ok(names.filter_map(|name| self.tensor(name)).flat_map(StoredTensor::places).collect())
    }
}

/// The weights that a model needs: the tensors of its files, and each use of them.
#[derive(Debug, Clone, Default)]
pub(super) struct WeightManifest {
    /// All uses, in the order of the network. Uses of one tensor are neighbours.
    uses: Vec<WeightUse>,
    /// The name and shape of the tensors that the files must have.
    shapes: BTreeMap<String, Vec<u64>>,
    /// The bytes of the weights that each kind of plan uses.
    own: Vec<((Direction, Part), Bytes)>,
}

impl WeightManifest {
    /// Lists the weights of a model of `config` for `directions`, for images or for `clips`.
    ///
    /// # Errors
    /// [`Error::Config`] for a config that makes no sense; [`Error::Input`] for clips of a network
    /// without a time axis.
    pub(super) fn new(
        config: &AutoencoderConfig,
        storage: Storage,
        directions: Directions,
        clips: bool,
    ) -> Result<Self> {
        config.validate()?;
        if clips {
            super::check::check_time(config)?;
        }
        let mut manifest = Self::default();
        let mut groups: Vec<Vec<WeightUse>> = Vec::new();
        let (mut position, mut known) = (Map::new(), Set::new());
        for (direction, part) in kinds(directions, clips) {
            let graph = small_graph(config, direction, part);
            manifest.shapes.extend(file_tensors(&graph));
            let mut own = Map::new();
            for used in weights_of(&graph, storage) {
                own.insert(used.key(), used.bytes);
                if known.insert(used.key()) {
                    let tensor = *position.or_insert(used.name.clone(), groups.len());
                    groups.resize(position.len(), Vec::new());
                    groups[tensor].push(used);
                }
            }
            manifest.own.push(((direction, part), own.values().copied().sum()));
        }
        Ok(Self { uses: groups.into_iter().flatten().collect(), ..manifest })
    }

    /// Lists the weights of a model that its files hold.
    ///
    /// # Errors
    /// [`Error::Input`] for a file that has only the other half; [`Error::MissingTensors`], which
    /// lists all missing tensors; [`Error::Tensor`] for the first tensor of a wrong shape or type.
    fn checked(checkpoint: &Checkpoint, directions: Directions, clips: bool) -> Result<Self> {
        let manifest = Self::new(checkpoint.config(), Storage::F32, directions, clips)?;
        manifest.check(checkpoint, directions)?;
        Ok(manifest)
    }

    /// Checks that the files of a model hold all its tensors. An error names the first tensor in
    /// the order of the network.
    pub(super) fn check(&self, checkpoint: &Checkpoint, directions: Directions) -> Result<()> {
        for (wanted, has, half, other) in [
            (directions.decodes(), checkpoint.has_decoder(), "decoder", "encoder"),
            (directions.encodes(), checkpoint.has_encoder(), "encoder", "decoder"),
        ] {
            if wanted && !has {
                let expected = format!("a model with {half} weights");
                return Err(Error::input(checkpoint.name(), expected, format!("only {other} weights")));
            }
        }
        let shaped = |same: &'_ [WeightUse]| Some((same[0].name.clone(), self.shape(&same[0].name)?));
        let wanted: Vec<(String, &[u64])> = self.tensors().filter_map(shaped).collect();
        checkpoint.check(wanted.iter().map(|(name, shape)| (name.as_str(), *shape)))
    }

    /// Returns the uses of each tensor together, in the order of the network.
    pub(super) fn tensors(&self) -> impl Iterator<Item = &[WeightUse]> {
        self.uses.chunk_by(|one, next| one.name == next.name)
    }

    /// Returns the shape of the file's tensor `name`; `None` for weights that no file has.
    pub(super) fn shape(&self, name: &str) -> Option<&[u64]> {
        self.shapes.get(name).map(Vec::as_slice)
    }

    /// Returns the bytes of all weights on a device.
    pub(super) fn bytes(&self) -> Bytes {
        self.uses.iter().map(|used| used.bytes).sum()
    }

    /// Returns the bytes of the weights that a plan of this `part` does not use.
    pub(super) fn besides(&self, direction: Direction, part: Part) -> Bytes {
        let own = self.own.iter().find(|(kind, _)| *kind == (direction, part));
        own.map_or(Bytes(0), |(_, own)| self.bytes().saturating_sub(*own))
    }
}

/// Returns the kinds of plans that a model is loaded for.
fn kinds(directions: Directions, clips: bool) -> impl Iterator<Item = (Direction, Part)> {
    let parts: &[Part] = if clips { &[Part::First, Part::Next] } else { &[Part::Image] };
    let wanted = [(Direction::Decode, directions.decodes()), (Direction::Encode, directions.encodes())];
    let wanted = wanted.into_iter().filter(|(_, wanted)| *wanted);
    wanted.flat_map(|(direction, _)| parts.iter().map(move |part| (direction, *part)))
}

/// Returns a graph for few latents. Neither their number nor their space changes the weights.
fn small_graph(config: &AutoencoderConfig, direction: Direction, part: Part) -> Graph {
    let latents = Size { width: 8, height: 8 };
    match direction {
        Direction::Decode => part_of_decoder(config, part, latents, LatentSpace::Vae),
        Direction::Encode => part_of_encoder(config, part, config.image_size(latents, LatentSpace::Vae)),
    }
}
