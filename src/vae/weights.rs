//! A model's weights: read from its files, packed, and put where a plan wants them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::options::{DecodeOptions, Directions, EncodeOptions, LoadOptions};
use super::planner::{Planner, plan_decode, plan_encode};
use crate::error::{Error, Result};
use crate::gpu::{Gpu, GpuBuffer, HostBytes, Weight};
use crate::io::{Checkpoint, StoredTensor};
use crate::kernels::weights::{Layout, pack};
use crate::limits::DeviceLimits;
use crate::model::config::AutoencoderConfig;
use crate::model::graph::Take;
use crate::model::networks;
use crate::plan::{Plan, WeightKey, WeightUse};
use crate::tensor::{Bytes, Size, Storage};

/// Packed weights.
#[derive(Debug)]
pub(super) struct VaeWeights {
    /// On the GPU. With `host`, only those that the last plan binds.
    gpu: BTreeMap<WeightKey, GpuBuffer>,
    host: Option<BTreeMap<WeightKey, Arc<HostBytes>>>,
    /// What the last plan does to its input before all else, and where that is kept.
    transform: Option<(Vec<f32>, WeightKey)>,
    directions: Directions,
}

impl VaeWeights {
    /// Reads the weights that `options` ask for, one tensor at a time, and uploads or keeps them.
    pub(super) async fn load(
        gpu: &Gpu,
        checkpoint: &Checkpoint,
        planner: &Planner,
        options: LoadOptions,
    ) -> Result<Self> {
        check(checkpoint, options.directions)?;
        let wanted = weights_of(planner.config(), planner.limits(), planner.storage(), options.directions)?;
        let mut loaded = Self {
            gpu: BTreeMap::new(),
            host: options.weights_on_host.then(BTreeMap::new),
            transform: None,
            directions: options.directions,
        };
        let needed = wanted.iter().map(|weight| weight.bytes).sum();
        let shapes = file_tensors(planner.config(), options.directions);
        for same in wanted.chunk_by(|one, next| one.name == next.name) {
            let values = match shapes.get(&same[0].name) {
                Some(shape) => checkpoint.read_f32(&same[0].name, shape).await?,
                // Zeros.
                None => Vec::new(),
            };
            for weight in same {
                check_half_range(weight, &values)?;
                let packed = pack(&values, weight.layout, weight.take, weight.storage, weight.factor);
                loaded.keep(gpu, weight, &packed, needed).await?;
            }
        }
        Ok(loaded)
    }

    /// Which jobs it has the weights of.
    pub(super) fn directions(&self) -> Directions {
        self.directions
    }

    /// Puts a packed weight where weights are kept. `needed`: bytes of all of them, for an error.
    async fn keep(&mut self, gpu: &Gpu, weight: &WeightUse, packed: &[u8], needed: Bytes) -> Result<()> {
        let key = weight.key();
        if let Some(host) = &mut self.host {
            let what = || "the weights, which a memory budget keeps there".to_owned();
            let kept = HostBytes::copy_of(packed).ok_or_else(|| Error::HostMemory { what: what(), needed })?;
            host.insert(key.clone(), Arc::new(kept));
            self.gpu.remove(&key);
        } else {
            self.gpu.insert(key, GpuBuffer::with_data(gpu, &weight.name, packed).await?);
        }
        Ok(())
    }

    /// Makes what `plan` does to its input one of the weights, in place of that of the plan before, of which nothing may be left.
    async fn place_transform(&mut self, gpu: &Gpu, plan: &Plan) -> Result<()> {
        let Some(weight) = plan.weights.iter().find(|weight| weight.take == Take::Transform) else { return Ok(()) };
        if self.transform.as_ref().is_some_and(|(values, key)| *values == plan.transform && *key == weight.key()) {
            return Ok(());
        }
        if let Some((_, before)) = self.transform.take() {
            self.gpu.remove(&before);
            self.host.as_mut().map(|host| host.remove(&before));
        }
        let packed = pack(&plan.transform, weight.layout, weight.take, weight.storage, weight.factor);
        self.keep(gpu, weight, &packed, weight.bytes).await?;
        self.transform = Some((plan.transform.clone(), weight.key()));
        Ok(())
    }

    /// Puts in place what `plan` does to its input. With weights on the host: uploads those that `plan` binds, frees all others.
    pub(super) async fn place(&mut self, gpu: &Gpu, plan: &Plan) -> Result<()> {
        self.place_transform(gpu, plan).await?;
        let Some(host) = &self.host else { return Ok(()) };
        let bound: Vec<&WeightUse> = plan.bound_weights().map(|weight| &plan.weights[weight]).collect();
        self.gpu.retain(|key, _| bound.iter().any(|weight| weight.key() == *key));
        for weight in bound {
            let key = weight.key();
            let content = Arc::clone(&host[&key]);
            if let Entry::Vacant(place) = self.gpu.entry(key) {
                place.insert(GpuBuffer::with_data(gpu, &weight.name, &content.all()).await?);
            }
        }
        Ok(())
    }

    /// Frees what can be uploaded again.
    pub(super) fn free(&mut self) {
        if self.host.is_some() {
            self.gpu.clear();
        }
    }

    /// Each weight of `plan`, from where it is.
    pub(super) fn of(&self, plan: &Plan) -> Vec<Weight<'_>> {
        let place = |weight: &WeightUse| {
            let key = weight.key();
            match (self.gpu.get(&key), &self.host) {
                (None, Some(host)) => Weight::Host(Arc::clone(&host[&key])),
                (found, _) => Weight::Gpu(found.unwrap_or_else(|| &self.gpu[&key])),
            }
        };
        plan.weights.iter().map(place).collect()
    }
}

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

fn check(checkpoint: &Checkpoint, directions: Directions) -> Result<()> {
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
fn file_tensors(config: &AutoencoderConfig, directions: Directions) -> BTreeMap<String, Vec<u64>> {
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
fn weights_of(
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

/// A filter beyond half precision's range would become infinite in silence.
fn check_half_range(weight: &WeightUse, values: &[f32]) -> Result<()> {
    const HALF_MAX: f32 = 65_504.0;
    let is_half = weight.storage != Storage::F32 && matches!(weight.layout, Layout::Filter { .. });
    // Of a sum of three taps none may exceed a third.
    let most = if matches!(weight.take, Take::SumOfTaps { .. }) { HALF_MAX / 3.0 } else { HALF_MAX };
    match values.iter().position(|value| is_half && value.abs() > most) {
        None => Ok(()),
        Some(index) => Err(Error::Tensor {
            tensor: weight.name.clone(),
            expected: format!("values within +-{most} for f16; use f32"),
            found: format!("{} at element {index}", values[index]),
        }),
    }
}
