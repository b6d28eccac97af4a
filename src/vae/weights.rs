//! A model's weights: read from its files, packed, and put where a plan wants them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::options::{Directions, LoadOptions};
use super::planner::Planner;
use super::wanted::{check, file_tensors, weights_of};
use crate::error::{Error, Result};
use crate::gpu::{Gpu, GpuBuffer, HostBytes, Preparing, Weight};
use crate::io::Checkpoint;
use crate::kernels::weights::{Layout, pack};
use crate::model::graph::Take;
use crate::plan::{Plan, WeightKey, WeightUse};
use crate::tensor::{Bytes, Storage};

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
        let LoadOptions { directions, clips, .. } = options;
        check(checkpoint, directions, clips)?;
        let wanted = weights_of(planner.config(), planner.limits(), planner.storage(), directions, clips)?;
        let mut loaded = Self {
            gpu: BTreeMap::new(),
            host: options.weights_on_host.then(BTreeMap::new),
            transform: None,
            directions: options.directions,
        };
        let needed = wanted.iter().map(|weight| weight.bytes).sum();
        let mut done = Bytes(0);
        let shapes = file_tensors(planner.config(), directions, clips);
        for same in wanted.chunk_by(|one, next| one.name == next.name) {
            gpu.tell(Preparing::Weights { done, total: needed, tensor: &same[0].name });
            let values = match shapes.get(&same[0].name) {
                Some(shape) => checkpoint.read_f32(&same[0].name, shape).await?,
                // Zeros.
                None => Vec::new(),
            };
            for weight in same {
                check_half_range(weight, &values)?;
                let packed = pack(&values, weight.layout, weight.take, weight.storage, weight.factor);
                loaded.keep(gpu, weight, &packed, needed).await?;
                done.0 += weight.bytes.0;
            }
        }
        gpu.tell(Preparing::Weights { done, total: needed, tensor: "" });
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

    /// Makes what `plan` does to its input one of the weights, in place of that of the plan before,
    /// of which nothing may be left.
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

    /// Puts in place what `plan` does to its input. With weights on the host: uploads those that
    /// `plan` binds, frees all others.
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
