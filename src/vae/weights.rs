//! A model's weights: read from its files, packed, and placed where a plan needs them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::planner::Planner;
use crate::error::{Error, Result};
use crate::gpu::{Gpu, GpuBuffer, HostBytes, LoadedWeight, Preparing};
use crate::io::Checkpoint;
use crate::kernels::weights::{WeightLayout, pack, pack_into};
use crate::model::graph::WeightSlice;
use crate::plan::{Plan, WeightKey, WeightUse};
use crate::tensor::{Bytes, Storage};

/// The packed weights of a model.
#[derive(Debug)]
pub(super) struct VaeWeights {
    /// Weights on the GPU. With `host`, only those that the last plan binds.
    gpu: BTreeMap<WeightKey, GpuBuffer>,
    host: Option<BTreeMap<WeightKey, Arc<HostBytes>>>,
    /// The transform that the last plan applies to its input first, and the key under which it is
    /// kept.
    transform: Option<(Vec<f32>, WeightKey)>,
}

impl VaeWeights {
    /// Reads the weights that `planner` knows of, one tensor at a time, and uploads or keeps them.
    pub(super) async fn load(gpu: &Gpu, checkpoint: &Checkpoint, planner: &Planner) -> Result<Self> {
        let (options, manifest) = (planner.options(), planner.manifest());
        manifest.check(checkpoint, options.directions)?;
        let host = options.weights_on_host.then(BTreeMap::new);
        let mut loaded = Self { gpu: BTreeMap::new(), host, transform: None };
        let (mut done, needed) = (Bytes(0), manifest.bytes());
        let mut packed = Vec::new();
        for same in manifest.tensors() {
            gpu.tell(Preparing::Weights { done, total: needed, tensor: &same[0].name });
            let values = match manifest.shape(&same[0].name) {
                Some(shape) => checkpoint.read_f32(&same[0].name, shape).await?,
                // No tensor of a file: these weights are zeros.
                None => Vec::new(),
            };
            for weight in same {
                check_half_range(weight, &values)?;
                pack_into(&mut packed, &values, weight.layout, weight.take, weight.storage, weight.factor);
                loaded.keep(gpu, weight, &packed, needed).await?;
                done.0 += weight.bytes.0;
            }
        }
        gpu.tell(Preparing::Weights { done, total: needed, tensor: "" });
        Ok(loaded)
    }

    /// Stores a packed weight, on the host or on the GPU. `needed` is the bytes of all weights, for
    /// an error.
    async fn keep(&mut self, gpu: &Gpu, weight: &WeightUse, packed: &[u8], needed: Bytes) -> Result<()> {
        let key = weight.key();
        if let Some(host) = &mut self.host {
            let what = || "the weights, which a memory budget keeps in host memory".to_owned();
            let kept = HostBytes::copy_of(packed).ok_or_else(|| Error::HostMemory { what: what(), needed })?;
            host.insert(key.clone(), Arc::new(kept));
            self.gpu.remove(&key);
        } else {
            self.gpu.insert(key, GpuBuffer::with_data(gpu, &weight.name, packed).await?);
        }
        Ok(())
    }

    /// Makes the transform of `plan`'s input one of the weights. Replaces that of the previous
    /// plan, which must not be in use any more.
    async fn place_transform(&mut self, gpu: &Gpu, plan: &Plan) -> Result<()> {
        let Some(weight) = plan.weights.iter().find(|weight| weight.take == WeightSlice::Transform) else {
            return Ok(());
        };
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

    /// Stores the transform of `plan`'s input. With weights on the host, also uploads the weights
    /// that `plan` binds, and frees all others.
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

    /// Frees the weights that can be uploaded again.
    pub(super) fn free(&mut self) {
        if self.host.is_some() {
            self.gpu.clear();
        }
    }

    /// Returns the place of each weight of `plan`.
    pub(super) fn of(&self, plan: &Plan) -> Vec<LoadedWeight<'_>> {
        let place = |weight: &WeightUse| {
            let key = weight.key();
            match (self.gpu.get(&key), &self.host) {
                (None, Some(host)) => LoadedWeight::Host(Arc::clone(&host[&key])),
                (found, _) => LoadedWeight::Gpu(found.unwrap_or_else(|| &self.gpu[&key])),
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
    // If three taps are summed, none of them may exceed a third of the range.
    let most = if matches!(weight.take, WeightSlice::SumOfTaps { .. }) { HALF_MAX / 3.0 } else { HALF_MAX };
    match values.iter().position(|value| is_half && value.abs() > most) {
        None => Ok(()),
        Some(index) => Err(Error::Tensor {
            tensor: weight.name.clone(),
            expected: format!("values within +-{most} for f16; use f32"),
            found: format!("{} at element {index}", values[index]),
        }),
    }
}
