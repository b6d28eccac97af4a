//! A plan with everything it needs on a device. Allocates and compiles; `executor` runs it.

use std::sync::Arc;

use super::buffers::{GpuBuffer, Usage};
use super::commands::{Commands, Resources};
use super::host::HostMemory;
use super::pace::Pace;
use super::readback::Readbacks;
use super::states::States;
use super::timestamps::Timestamps;
use super::upload::Uploads;
use super::{Gpu, HostBytes};
use crate::error::Result;
use crate::plan::memory::Staging;
use crate::plan::{BufferId, Plan, UNUSED_BYTES};
use crate::tensor::Bytes;

/// Where a weight of a plan is.
#[derive(Debug, Clone)]
pub enum Weight<'a> {
    /// On the GPU: for a plan that binds it.
    Gpu(&'a GpuBuffer),
    /// Packed, in host memory: for a plan that fetches it.
    Host(Arc<HostBytes>),
}

/// A plan with everything it needs on a device. Running it again only submits.
pub struct Prepared {
    pub(super) gpu: Gpu,
    pub(super) plan: Arc<Plan>,
    pub(super) slots: Vec<GpuBuffer>,
    pub(super) commands: Commands,
    pub(super) uploads: Uploads,
    pub(super) readbacks: Readbacks,
    pub(super) timestamps: Option<Timestamps>,
    pub(super) host: HostMemory,
    pub(super) picture: Option<GpuBuffer>,
    /// Those of the clip that the plan is for.
    pub(super) states: States,
    /// Which of them each of the plan's is.
    pub(super) states_of_plan: Vec<usize>,
    pub(super) pace: Pace,
    // Bound by the bind groups.
    _params: GpuBuffer,
    _unused: GpuBuffer,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared")
            .field("result", &self.plan.result)
            .field("steps", &self.plan.steps.len())
            .finish_non_exhaustive()
    }
}

impl Prepared {
    /// Allocates and compiles. `weights` are those of the plan, in its order.
    ///
    /// # Errors
    /// [`crate::Error::Device`], naming the buffer or kernel; [`crate::Error::HostMemory`].
    pub async fn new(gpu: &Gpu, plan: Arc<Plan>, weights: Vec<Weight<'_>>) -> Result<Self> {
        assert_eq!(weights.len(), plan.weights.len(), "weights of another plan");
        let (mut bound, mut fetched) = (Vec::new(), Vec::new());
        for weight in weights {
            let (on_gpu, on_host) = match weight {
                Weight::Gpu(buffer) => (Some(buffer), None),
                Weight::Host(data) => (None, Some(data)),
            };
            bound.push(on_gpu);
            fetched.push(on_host);
        }
        let host = HostMemory::new(&plan, fetched)?;
        let pipelines = gpu.inner.pipelines.get(gpu, &plan.variants).await?;
        let mut slots = Vec::new();
        for (index, bytes) in plan.slots.iter().enumerate() {
            slots.push(GpuBuffer::new(gpu, &format!("slot {index}"), *bytes, Usage::Storage).await?);
        }
        let params = GpuBuffer::new(gpu, "params", Bytes(plan.params.len() as u64), Usage::Uniform).await?;
        let unused = GpuBuffer::new(gpu, "unused", Bytes(UNUSED_BYTES), Usage::Storage).await?;
        let staging = Staging::of(&plan);
        let mut uploads = Uploads::new(gpu, staging.upload).await?;
        let readbacks = Readbacks::new(gpu, staging.readback).await?;
        let timestamps = Timestamps::new(gpu, &plan).await?;
        let picture = match plan.memory.picture {
            Bytes(0) => None,
            bytes => Some(GpuBuffer::new(gpu, "picture", bytes, Usage::Picture).await?),
        };
        uploads.upload(gpu, "uploading parameters", &plan.params, (&params, 0)).await?;
        let resources = Resources { plan: &plan, slots: &slots, weights: &bound, params: &params, unused: &unused };
        let commands = gpu.scoped("binding buffers", || resources.commands(&gpu.inner.device, &pipelines)).await?;
        Ok(Self {
            gpu: gpu.clone(),
            pace: Pace::guess(plan.kind),
            plan,
            slots,
            commands,
            uploads,
            readbacks,
            timestamps,
            host,
            picture,
            states: States::default(),
            states_of_plan: Vec::new(),
            _params: params,
            _unused: unused,
        })
    }

    /// The picture that runs leave on the device, if they leave one.
    pub fn picture(&self) -> Option<&GpuBuffer> {
        self.picture.as_ref()
    }

    /// What a clip keeps is `states` from now on.
    ///
    /// # Panics
    /// When they lack one of the plan's: a bug of ours.
    pub fn put_states(&mut self, states: States) {
        self.states_of_plan = states.find(&self.plan.states);
        assert!(!self.states_of_plan.contains(&usize::MAX), "states of another clip");
        self.states = states;
    }

    /// What a clip has kept.
    pub fn take_states(&mut self) -> States {
        std::mem::take(&mut self.states)
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Byte `at` of `buffer`: its slot, and where there.
    pub(super) fn place(&self, (buffer, at): (BufferId, u64)) -> (&GpuBuffer, u64) {
        let buffer = &self.plan.buffers[buffer.0];
        (&self.slots[buffer.slot.0], buffer.offset.0 + at)
    }
}
