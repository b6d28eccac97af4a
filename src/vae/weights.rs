//! A model's weights: read from its files, packed, and placed where a plan needs them.

use std::sync::Arc;

use super::planner::Planner;
use crate::device::{Device, DeviceBuffer, LoadedWeight};
use crate::error::{Error, Result};
use crate::execution::Preparing;
use crate::gpu::HostBytes;
use crate::io::Checkpoint;
use crate::kernels::weights::{WeightLayout, pack, pack_into};
use crate::model::graph::WeightSlice;
use crate::ordered::Map;
use crate::plan::{Plan, WeightKey, WeightUse};
use crate::tensor::{Bytes, Storage};

/// The packed weights of a model.
#[derive(Debug)]
pub(super) struct VaeWeights {
    /// Weights on the device. With `host`, only those that the last plan binds.
    bound: Map<WeightKey, DeviceBuffer>,
    host: Option<Map<WeightKey, Arc<HostBytes>>>,
    /// The transform that the last plan applies to its input first, and the key under which it is
    /// kept.
    transform: Option<(Vec<f32>, WeightKey)>,
}

impl VaeWeights {
    /// Reads the weights that `planner` knows of, one tensor at a time, and uploads or keeps them.
    pub(super) async fn load(device: &Device, checkpoint: &Checkpoint, planner: &Planner) -> Result<Self> {
        let (options, manifest) = (planner.options, &planner.manifest);
        manifest.check(checkpoint, options.directions)?;
        let host = options.weights_on_host.then(Map::new);
        let mut loaded = Self { bound: Map::new(), host, transform: None };
        let (mut done, needed) = (Bytes(0), manifest.bytes());
        let (mut packed, threads) = (Vec::new(), device.threads());
        for same in manifest.tensors() {
            device.tell(Preparing::Weights { done, total: needed, tensor: &same[0].name });
            let values = match manifest.shape(&same[0].name) {
                Some(shape) => checkpoint.read_f32(&same[0].name, shape).await?,
                // No tensor of a file: these weights are zeros.
                None => Vec::new(),
            };
            for weight in same {
                check_half_range(weight, &values)?;
                pack_into(&mut packed, &values, weight.layout, weight.take, weight.storage, weight.factor, threads);
                loaded.keep(device, weight, &packed, needed).await?;
                done.0 += weight.bytes.0;
            }
        }
        device.tell(Preparing::Weights { done, total: needed, tensor: "" });
        Ok(loaded)
    }

    /// Stores a packed weight, on the host or on the device. `needed` is the bytes of all weights,
    /// for an error.
    async fn keep(&mut self, device: &Device, weight: &WeightUse, packed: &[u8], needed: Bytes) -> Result<()> {
        let key = weight.key();
        if let Some(host) = &mut self.host {
            let what = || "the weights, which a memory budget keeps in host memory".to_owned();
            let kept = HostBytes::copy_of(packed).ok_or_else(|| Error::HostMemory { what: what(), needed })?;
            host.insert(key.clone(), Arc::new(kept));
            self.bound.remove(&key);
        } else {
            self.bound.insert(key, DeviceBuffer::with_data(device, &weight.name, packed).await?);
        }
        Ok(())
    }

    /// Makes the transform of `plan`'s input one of the weights. Replaces that of the previous
    /// plan, which must not be in use any more.
    async fn place_transform(&mut self, device: &Device, plan: &Plan) -> Result<()> {
        let Some(weight) = plan.weights.iter().find(|weight| weight.take == WeightSlice::Transform) else {
            return Ok(());
        };
        if self.transform.as_ref().is_some_and(|(values, key)| *values == plan.transform && *key == weight.key()) {
            return Ok(());
        }
        if let Some((_, before)) = self.transform.take() {
            self.bound.remove(&before);
            if let Some(host) = &mut self.host {
                host.remove(&before);
            }
        }
        let packed = pack(&plan.transform, weight.layout, weight.take, weight.storage, weight.factor);
        self.keep(device, weight, &packed, weight.bytes).await?;
        self.transform = Some((plan.transform.clone(), weight.key()));
        Ok(())
    }

    /// Stores the transform of `plan`'s input. With weights on the host, also uploads the weights
    /// that `plan` binds, and frees all others.
    pub(super) async fn place(&mut self, device: &Device, plan: &Plan) -> Result<()> {
        self.place_transform(device, plan).await?;
        let Some(host) = &self.host else { return Ok(()) };
        let wanted: Vec<&WeightUse> = plan.bound_weights().map(|weight| &plan.weights[weight]).collect();
        self.bound.retain(|key, _| wanted.iter().any(|weight| weight.key() == *key));
        for weight in wanted {
            let key = weight.key();
            if !self.bound.contains_key(&key) {
                let content = host[&key].all();
                self.bound.insert(key, DeviceBuffer::with_data(device, &weight.name, &content).await?);
            }
        }
        Ok(())
    }

    /// Frees the weights that can be uploaded again.
    pub(super) fn free(&mut self) {
        if self.host.is_some() {
            self.bound.clear();
        }
    }

    /// Returns the place of each weight of `plan`.
    pub(super) fn of(&self, plan: &Plan) -> Vec<LoadedWeight<'_>> {
        let place = |weight: &WeightUse| {
            let key = weight.key();
            match (self.bound.get(&key), &self.host) {
                (None, Some(host)) => LoadedWeight::Host(Arc::clone(&host[&key])),
                (found, _) => LoadedWeight::Device(found.unwrap_or_else(|| &self.bound[&key])),
            }
        };
        plan.weights.iter().map(place).collect()
    }
}

/// Checks that a filter fits the range of half precision, where larger values would become infinite
/// without an error.
fn check_half_range(weight: &WeightUse, values: &[f32]) -> Result<()> {
    const HALF_MAX: f32 = 65_504.0;
    let is_half = weight.storage != Storage::F32 && matches!(weight.layout, WeightLayout::Filter { .. });
    // If several values are summed, none of them may exceed its share of the range.
    let most = match weight.take {
        WeightSlice::SumOfTaps { .. } | WeightSlice::Rows { summed: 2.., .. } => HALF_MAX / 3.0,
        WeightSlice::Inputs { count: 2.., .. } => HALF_MAX / 2.0,
        _ => HALF_MAX,
    };
    match values.iter().position(|value| is_half && value.abs() > most) {
        None => Ok(()),
        Some(index) => Err(Error::Tensor {
            tensor: weight.name.clone(),
            expected: format!("values within +-{most} for f16; use f32"),
            found: format!("{} at element {index}", values[index]),
        }),
    }
}
