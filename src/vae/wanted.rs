//! Which weights decodes and encodes want of a model's files. Needs neither their values nor a device.

use std::collections::{BTreeMap, BTreeSet};

use super::options::{DecodeOptions, Directions, EncodeOptions};
use super::plans::{plan_decode, plan_encode};
use crate::error::{Error, Result};
use crate::io::{Checkpoint, StoredTensor};
use crate::limits::DeviceLimits;
use crate::model::config::AutoencoderConfig;
use crate::model::graph::Take;
use crate::model::networks;
use crate::plan::WeightUse;
use crate::tensor::{Bytes, Size, Storage};

/// Checks, from the headers of its files alone, that a model has all that a decode needs.
///
/// # Errors
/// [`Error::Input`] for a file of an encoder alone; [`Error::MissingTensors`] with all of them; [`Error::Tensor`] for the first of a wrong shape or type.
pub fn check_decoder(checkpoint: &Checkpoint) -> Result<()> {
    check(checkpoint, Directions::Decode)
}

/// Checks, from the headers of its files alone, that a model has all that an encode needs.
///
/// # Errors
/// [`Error::Input`] for a file of a decoder alone; [`Error::MissingTensors`] with all of them; [`Error::Tensor`] for the first of a wrong shape or type.
pub fn check_encoder(checkpoint: &Checkpoint) -> Result<()> {
    check(checkpoint, Directions::Encode)
}

/// Checks that a model has all that `directions` need.
pub(super) fn check(checkpoint: &Checkpoint, directions: Directions) -> Result<()> {
    for (wanted, has, half, other) in [
        (directions.decodes(), checkpoint.has_decoder(), "decoder", "encoder"),
        (directions.encodes(), checkpoint.has_encoder(), "encoder", "decoder"),
    ] {
        if wanted && !has {
            return Err(Error::Input {
                what: checkpoint.name().to_owned(),
                expected: format!("a model with the weights of its {half}"),
                found: format!("those of the {other} alone"),
            });
        }
    }
    let shapes = file_tensors(checkpoint.config(), directions);
    let limits = DeviceLimits::webgpu_default();
    // In the order of the network, so that an error names the first of it.
    let wanted = weights_of(checkpoint.config(), &limits, Storage::F32, directions)?;
    let tensors = wanted.chunk_by(|one, next| one.name == next.name).map(|same| &same[0].name);
    checkpoint.check(tensors.filter_map(|name| Some((name.as_str(), shapes.get(name)?.as_slice()))))
}

/// The parts of a model's files that [`super::Vae::load`] reads for `directions`, in its order: index of the file, first byte, bytes.
///
/// # Errors
/// See [`check_decoder`] and [`check_encoder`].
pub fn weight_reads(checkpoint: &Checkpoint, directions: Directions) -> Result<Vec<(usize, u64, u64)>> {
    check(checkpoint, directions)?;
    let limits = DeviceLimits::webgpu_default();
    let wanted = weights_of(checkpoint.config(), &limits, Storage::F32, directions)?;
    let tensors = wanted.chunk_by(|one, next| one.name == next.name).map(|same| &same[0].name);
    Ok(tensors.filter_map(|name| checkpoint.tensor(name)).map(StoredTensor::place).collect())
}

/// Name and shape of the tensors that the files must have.
pub(super) fn file_tensors(config: &AutoencoderConfig, directions: Directions) -> BTreeMap<String, Vec<u64>> {
    let mut tensors = BTreeMap::new();
    if directions.decodes() {
        tensors.extend(networks::decoder_tensors(config));
    }
    if directions.encodes() {
        tensors.extend(networks::encoder_tensors(config));
    }
    tensors
}

/// Bytes of the weights that only encodes use, and of those that only decodes use.
pub(super) fn weights_of_one_direction(
    config: &AutoencoderConfig,
    limits: &DeviceLimits,
    storage: Storage,
) -> Result<[Bytes; 2]> {
    let bytes = |directions| -> Result<Bytes> {
        Ok(weights_of(config, limits, storage, directions)?.iter().map(|weight| weight.bytes).sum())
    };
    let [decode, encode, both] = [bytes(Directions::Decode)?, bytes(Directions::Encode)?, bytes(Directions::Both)?];
    Ok([Bytes(both.0 - decode.0), Bytes(both.0 - encode.0)])
}

/// What does not depend on sizes and inputs: all weights but what is done to the input. Uses of one tensor follow one another.
pub(super) fn weights_of(
    config: &AutoencoderConfig,
    limits: &DeviceLimits,
    storage: Storage,
    directions: Directions,
) -> Result<Vec<WeightUse>> {
    let latents = Size { width: 8, height: 8 };
    let mut plans = Vec::new();
    if directions.decodes() {
        plans.push(plan_decode(config, latents, limits, storage, true, &DecodeOptions::default())?);
    }
    if directions.encodes() {
        let image = config.image_size(latents, true);
        plans.push(plan_encode(config, image, limits, storage, &EncodeOptions::default())?);
    }
    let (mut wanted, mut known): (Vec<WeightUse>, _) = (Vec::new(), BTreeSet::new());
    let mut position: BTreeMap<String, usize> = BTreeMap::new();
    for weight in plans.into_iter().flat_map(|plan| plan.weights) {
        if weight.take != Take::Transform && known.insert(weight.key()) {
            let next = position.len();
            position.entry(weight.name.clone()).or_insert(next);
            wanted.push(weight);
        }
    }
    wanted.sort_by_key(|weight| position[&weight.name]);
    Ok(wanted)
}
