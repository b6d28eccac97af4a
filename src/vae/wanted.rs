//! The weights that decodes and encodes need from a model's files. Needs neither their values nor a
//! device.

use std::collections::{BTreeMap, BTreeSet};

use super::clip_plans::{plan_clip_decode, plan_clip_encode};
use super::options::{DecodeOptions, Directions, EncodeOptions};
use super::plans::{plan_decode, plan_encode};
use crate::error::{Error, Result};
use crate::io::{Checkpoint, StoredTensor};
use crate::limits::DeviceLimits;
use crate::model::blocks::Part;
use crate::model::config::AutoencoderConfig;
use crate::model::graph::WeightSlice;
use crate::model::networks;
use crate::plan::{Plan, WeightUse};
use crate::tensor::{Bytes, Size, Storage};

/// Checks, from the headers of its files alone, that a model has all tensors that a decode needs.
///
/// # Errors
/// [`Error::Input`] for a file that has only an encoder; [`Error::MissingTensors`], which lists all
/// missing tensors; [`Error::Tensor`] for the first tensor of a wrong shape or type.
pub fn check_decoder(checkpoint: &Checkpoint) -> Result<()> {
    check(checkpoint, Directions::Decode, false)
}

/// Checks, from the headers of its files alone, that a model has all tensors that an encode needs.
///
/// # Errors
/// [`Error::Input`] for a file that has only a decoder; [`Error::MissingTensors`], which lists all
/// missing tensors; [`Error::Tensor`] for the first tensor of a wrong shape or type.
pub fn check_encoder(checkpoint: &Checkpoint) -> Result<()> {
    check(checkpoint, Directions::Encode, false)
}

/// Checks, from the headers of its files alone, that a model has all tensors that clips need in
/// `directions`.
///
/// # Errors
/// See [`check_decoder`] and [`check_encoder`]; [`Error::Input`] for a network without a time axis.
pub fn check_clips(checkpoint: &Checkpoint, directions: Directions) -> Result<()> {
    check(checkpoint, directions, true)
}

/// Checks that a model has all tensors that `directions` need, for images or for `clips`.
pub(super) fn check(checkpoint: &Checkpoint, directions: Directions, clips: bool) -> Result<()> {
    for (wanted, has, half, other) in [
        (directions.decodes(), checkpoint.has_decoder(), "decoder", "encoder"),
        (directions.encodes(), checkpoint.has_encoder(), "encoder", "decoder"),
    ] {
        if wanted && !has {
            return Err(Error::input(
                checkpoint.name().to_owned(),
                format!("a model with {half} weights"),
                format!("only {other} weights"),
            ));
        }
    }
    let shapes = file_tensors(checkpoint.config(), directions, clips);
    let limits = DeviceLimits::webgpu_default();
    // In the order of the network, so that an error names the first tensor of the network.
    let wanted = weights_of(checkpoint.config(), &limits, Storage::F32, directions, clips)?;
    let tensors = wanted.chunk_by(|one, next| one.name == next.name).map(|same| &same[0].name);
    checkpoint.check(tensors.filter_map(|name| Some((name.as_str(), shapes.get(name)?.as_slice()))))
}

/// Returns the parts of a model's files that [`super::Vae::load`] reads for `directions`, for
/// images or for `clips`, in its order. Each part is the index of the file, the first byte, and the
/// length in bytes.
///
/// # Errors
/// See [`check_decoder`] and [`check_encoder`].
pub fn weight_reads(checkpoint: &Checkpoint, directions: Directions, clips: bool) -> Result<Vec<(usize, u64, u64)>> {
    check(checkpoint, directions, clips)?;
    let limits = DeviceLimits::webgpu_default();
    let wanted = weights_of(checkpoint.config(), &limits, Storage::F32, directions, clips)?;
    let tensors = wanted.chunk_by(|one, next| one.name == next.name).map(|same| &same[0].name);
    Ok(tensors.filter_map(|name| checkpoint.tensor(name)).map(StoredTensor::place).collect())
}

/// Returns the name and shape of the tensors that the files must have.
pub(super) fn file_tensors(
    config: &AutoencoderConfig,
    directions: Directions,
    clips: bool,
) -> BTreeMap<String, Vec<u64>> {
    let parts: &[Part] = if clips { &[Part::First, Part::Next] } else { &[Part::Image] };
    let mut tensors = BTreeMap::new();
    for part in parts {
        if directions.decodes() {
            tensors.extend(networks::tensors_of_decoder(config, *part));
        }
        if directions.encodes() {
            tensors.extend(networks::tensors_of_encoder(config, *part));
        }
    }
    tensors
}

/// Returns the bytes of weights that are loaded for `directions` but that a plan does not use. The
/// first index is decode or encode; the second is a clip's first part or its other parts.
pub(super) fn others(
    config: &AutoencoderConfig,
    limits: &DeviceLimits,
    storage: Storage,
    directions: Directions,
    clips: bool,
) -> Result<[[Bytes; 2]; 2]> {
    let loaded: u64 = weights_of(config, limits, storage, directions, clips)?.iter().map(|weight| weight.bytes.0).sum();
    let rest = |direction: Directions| -> Result<[Bytes; 2]> {
        let plans = plans(config, limits, storage, direction, clips)?;
        let own = plans.iter().map(|plan| wanted(plan).map(|weight| weight.bytes.0).sum::<u64>());
        let rests: Vec<Bytes> = own.map(|own| Bytes(loaded.saturating_sub(own))).collect();
        Ok([rests.first().copied().unwrap_or_default(), rests.last().copied().unwrap_or_default()])
    };
    Ok([rest(Directions::Decode)?, rest(Directions::Encode)?])
}

/// Returns the weights of `plan` that come from files.
fn wanted(plan: &Plan) -> impl Iterator<Item = &WeightUse> {
    plan.weights.iter().filter(|weight| weight.take != WeightSlice::Transform)
}

/// Returns the plans of small jobs of `directions`.
fn plans(
    config: &AutoencoderConfig,
    limits: &DeviceLimits,
    storage: Storage,
    directions: Directions,
    clips: bool,
) -> Result<Vec<Plan>> {
    let latents = Size { width: 8, height: 8 };
    // Latents in either scale need the same weights. The VAE's own scale may be unknown for this
    // model.
    let unscaled = config.takes_own_latents();
    let image = config.image_size(latents, unscaled);
    let (decode, encode) = (DecodeOptions::default(), EncodeOptions::default());
    let mut plans = Vec::new();
    match (directions.decodes(), clips) {
        (false, _) => {}
        (true, false) => plans.push(plan_decode(config, latents, limits, storage, unscaled, &decode)?),
        (true, true) => {
            plans.extend(plan_clip_decode(config, latents, limits, storage, unscaled, &decode)?.into_parts());
        }
    }
    match (directions.encodes(), clips) {
        (false, _) => {}
        (true, false) => plans.push(plan_encode(config, image, limits, storage, &encode)?),
        (true, true) => plans.extend(plan_clip_encode(config, image, limits, storage, &encode)?.into_parts()),
    }
    Ok(plans)
}

/// Returns all weights except the transform of the input, so the result does not depend on sizes
/// and inputs. Uses of one tensor are neighbours.
pub(super) fn weights_of(
    config: &AutoencoderConfig,
    limits: &DeviceLimits,
    storage: Storage,
    directions: Directions,
    clips: bool,
) -> Result<Vec<WeightUse>> {
    let plans = plans(config, limits, storage, directions, clips)?;
    let (mut uses, mut known): (Vec<Vec<WeightUse>>, _) = (Vec::new(), BTreeSet::new());
    let mut position: BTreeMap<String, usize> = BTreeMap::new();
    for weight in plans.iter().flat_map(wanted) {
        if known.insert(weight.key()) {
            let next = position.len();
            let tensor = *position.entry(weight.name.clone()).or_insert(next);
            uses.resize(position.len(), Vec::new());
            uses[tensor].push(weight.clone());
        }
    }
    Ok(uses.into_iter().flatten().collect())
}
