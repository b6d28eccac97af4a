//! A model's weights: read from its files, packed, and put where a plan wants them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{DecodeOptions, LoadOptions, plan_decode};
use crate::error::{Error, Result};
use crate::gpu::{Gpu, GpuBuffer, HostBytes, Weight};
use crate::io::{Checkpoint, StoredTensor};
use crate::kernels::weights::{Layout, pack};
use crate::limits::DeviceLimits;
use crate::model::config::AutoencoderConfig;
use crate::plan::{Plan, WeightUse};
use crate::tensor::{Bytes, Size, Storage};

/// Packed weights by name.
#[derive(Debug)]
pub(super) struct VaeWeights {
    /// On the GPU. With `host`, only those that the last plan binds.
    gpu: BTreeMap<String, GpuBuffer>,
    host: Option<BTreeMap<String, Arc<HostBytes>>>,
    /// What is done to latents before all else, packed: where they are as the diffusion model leaves them, and where they are the VAE's own.
    transforms: [Vec<u8>; 2],
    /// Which of the two it is now.
    unscaled: bool,
}

/// The name of the only weight that is made from the configuration instead of being read.
const TRANSFORM: &str = "latents.factor_offset";

impl VaeWeights {
    /// Reads the decoder's weights, one tensor at a time, and uploads or keeps them.
    pub(super) async fn load(
        gpu: &Gpu,
        checkpoint: &Checkpoint,
        config: &AutoencoderConfig,
        storage: Storage,
        options: LoadOptions,
    ) -> Result<Self> {
        let wanted = weights_of(config, gpu.limits(), storage, options.unscaled)?;
        let shapes = file_shapes(&wanted);
        checkpoint.check(shapes.iter().map(|(name, shape)| (*name, shape.as_slice())))?;
        let mut loaded = Self {
            gpu: BTreeMap::new(),
            host: options.weights_on_host.then(BTreeMap::new),
            transforms: Default::default(),
            unscaled: options.unscaled,
        };
        for weight in &wanted.weights {
            let packed = if is_transform(weight) {
                let packed = |values: &[f32]| pack(values, weight.layout, weight.storage, weight.factor);
                loaded.transforms = [packed(&wanted.latent_transform), packed(&no_transform(config))];
                loaded.transforms[0].clone()
            } else {
                let values = checkpoint.read_f32(&weight.name, &weight.layout.file_shape()).await?;
                check_half_range(weight, &values)?;
                pack(&values, weight.layout, weight.storage, weight.factor)
            };
            if let Some(host) = &mut loaded.host {
                let kept = HostBytes::copy_of(&packed).ok_or_else(|| no_memory(&wanted))?;
                host.insert(weight.name.clone(), Arc::new(kept));
            } else {
                loaded.gpu.insert(weight.name.clone(), GpuBuffer::with_data(gpu, &weight.name, &packed).await?);
            }
        }
        Ok(loaded)
    }

    /// Whether latents are taken as the VAE's own.
    pub(super) fn expect_unscaled(&self) -> bool {
        self.unscaled
    }

    /// Takes latents as the VAE's own from now on, or as the diffusion model leaves them. What was prepared before must be gone.
    pub(super) async fn expect_latents(&mut self, gpu: &Gpu, unscaled: bool) -> Result<()> {
        let packed = &self.transforms[usize::from(unscaled)];
        if let Some(host) = &mut self.host {
            let needed = Bytes(packed.len() as u64);
            let kept = HostBytes::copy_of(packed)
                .ok_or_else(|| Error::HostMemory { what: "the factors of the latents".to_owned(), needed })?;
            host.insert(TRANSFORM.to_owned(), Arc::new(kept));
            self.gpu.remove(TRANSFORM);
        } else {
            self.gpu.insert(TRANSFORM.to_owned(), GpuBuffer::with_data(gpu, TRANSFORM, packed).await?);
        }
        self.unscaled = unscaled;
        Ok(())
    }

    /// With weights on the host: uploads those that `plan` binds, frees all others.
    pub(super) async fn place(&mut self, gpu: &Gpu, plan: &Plan) -> Result<()> {
        let Some(host) = &self.host else { return Ok(()) };
        let bound: Vec<&str> = plan.bound_weights().map(|weight| plan.weights[weight].name.as_str()).collect();
        self.gpu.retain(|name, _| bound.contains(&name.as_str()));
        for name in bound {
            if !self.gpu.contains_key(name) {
                let buffer = GpuBuffer::with_data(gpu, name, &host[name].all()).await?;
                self.gpu.insert(name.to_owned(), buffer);
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
        let place = |weight: &WeightUse| match (self.gpu.get(&weight.name), &self.host) {
            (None, Some(host)) => Weight::Host(Arc::clone(&host[&weight.name])),
            (found, _) => Weight::Gpu(found.unwrap_or_else(|| &self.gpu[&weight.name])),
        };
        plan.weights.iter().map(place).collect()
    }
}

/// Checks, from the headers of its files alone, that a model has all that a decode needs.
///
/// # Errors
/// [`Error::MissingTensors`] with all of them; [`Error::Tensor`] for the first of a wrong shape or type.
pub fn check_decoder(checkpoint: &Checkpoint) -> Result<()> {
    let wanted = weights_of(checkpoint.config(), &DeviceLimits::webgpu_default(), Storage::F32, true)?;
    let shapes = file_shapes(&wanted);
    checkpoint.check(shapes.iter().map(|(name, shape)| (*name, shape.as_slice())))
}

/// The parts of a model's files that [`super::Vae::load`] reads, in its order: index of the file, first byte, bytes.
///
/// # Errors
/// See [`check_decoder`].
pub fn decoder_reads(checkpoint: &Checkpoint) -> Result<Vec<(usize, u64, u64)>> {
    check_decoder(checkpoint)?;
    let wanted = weights_of(checkpoint.config(), &DeviceLimits::webgpu_default(), Storage::F32, true)?;
    let names = file_shapes(&wanted).into_iter().map(|(name, _)| name);
    Ok(names.filter_map(|name| checkpoint.tensor(name)).map(StoredTensor::place).collect())
}

fn no_memory(wanted: &Plan) -> Error {
    let needed = wanted.weights.iter().map(|weight| weight.bytes).sum();
    Error::HostMemory { what: "the weights, which a memory budget keeps there".to_owned(), needed }
}

/// Name and shape of the tensors that the files must have.
fn file_shapes(plan: &Plan) -> Vec<(&str, Vec<u64>)> {
    let in_file = plan.weights.iter().filter(|weight| !is_transform(weight));
    in_file.map(|weight| (weight.name.as_str(), weight.layout.file_shape())).collect()
}

/// The weights of a model do not depend on the image's size: those of a small plan are all.
fn weights_of(config: &AutoencoderConfig, limits: &DeviceLimits, storage: Storage, unscaled: bool) -> Result<Plan> {
    plan_decode(config, Size { width: 8, height: 8 }, limits, storage, unscaled, &DecodeOptions::default())
}

/// Whether a weight is made from the configuration instead of being read.
fn is_transform(weight: &WeightUse) -> bool {
    weight.name == TRANSFORM
}

/// Factors and summands that change nothing.
fn no_transform(config: &AutoencoderConfig) -> Vec<f32> {
    let channels = config.latent_channels as usize;
    [vec![1.0; channels], vec![0.0; channels]].concat()
}

/// A filter beyond half precision's range would become infinite in silence.
fn check_half_range(weight: &WeightUse, values: &[f32]) -> Result<()> {
    const HALF_MAX: f32 = 65_504.0;
    let is_half = weight.storage != Storage::F32 && matches!(weight.layout, Layout::Filter { .. });
    match values.iter().position(|value| is_half && value.abs() > HALF_MAX) {
        None => Ok(()),
        Some(index) => Err(Error::Tensor {
            tensor: weight.name.clone(),
            expected: format!("values within +-{HALF_MAX} for f16; use f32"),
            found: format!("{} at element {index}", values[index]),
        }),
    }
}
