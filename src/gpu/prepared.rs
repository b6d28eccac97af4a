//! A plan with its buffers and pipelines on a device. Allocates and compiles; `executor` runs it.

use std::sync::Arc;

use super::buffers::{GpuBuffer, Usage};
use super::commands::{Commands, Resources};
use super::host::HostMemory;
use super::pace::SubmissionPace;
use super::readback::Readbacks;
use super::states::ClipStates;
use super::timestamps::Timestamps;
use super::upload::Uploads;
use super::{Gpu, HostBytes};
use crate::error::Result;
use crate::plan::memory::Staging;
use crate::plan::turns::Turn;
use crate::plan::{BufferId, Plan, UNUSED_BYTES};
use crate::tensor::Bytes;

/// The place of a plan's weight.
#[derive(Debug, Clone)]
pub enum LoadedWeight<'a> {
    /// A buffer on the GPU, for a plan that binds the weight.
    Gpu(&'a GpuBuffer),
    /// Packed bytes in host memory, for a plan that fetches the weight.
    Host(Arc<HostBytes>),
}

/// A plan with its buffers and pipelines on a device. Running it again only submits.
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
    /// The states of the clip that the plan is for.
    pub(super) states: ClipStates,
    /// For each state of the plan, its index in `states`.
    pub(super) states_of_plan: Vec<usize>,
    /// The part of the clip that the next run is for.
    pub(super) turn: Turn,
    pub(super) pace: SubmissionPace,
    // The bind groups refer to these buffers.
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
    /// Allocates the plan's buffers and compiles its kernels. `weights` has one entry for each of
    /// the plan's weights, in its order.
    ///
    /// # Errors
    /// [`crate::Error::Device`], which names the buffer or kernel; [`crate::Error::HostMemory`].
    pub async fn new(gpu: &Gpu, plan: Arc<Plan>, weights: Vec<LoadedWeight<'_>>) -> Result<Self> {
        assert_eq!(weights.len(), plan.weights.len(), "weights of another plan");
        let (mut bound, mut fetched) = (Vec::new(), Vec::new());
        for weight in weights {
            let (on_gpu, on_host) = match weight {
                LoadedWeight::Gpu(buffer) => (Some(buffer), None),
                LoadedWeight::Host(data) => (None, Some(data)),
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
            pace: SubmissionPace::guess(plan.kind),
            plan,
            slots,
            commands,
            uploads,
            readbacks,
            timestamps,
            host,
            picture,
            states: ClipStates::default(),
            states_of_plan: Vec::new(),
            turn: Turn::default(),
            _params: params,
            _unused: unused,
        })
    }

    /// Returns the picture that runs leave on the device, if the plan leaves one.
    pub fn picture(&self) -> Option<&GpuBuffer> {
        self.picture.as_ref()
    }

    /// Sets the states of the clip, which the next run reads and writes, and its part of the clip.
    ///
    /// # Panics
    /// If `states` lacks a state of the plan, which is a bug in this crate.
    pub fn put_states(&mut self, states: ClipStates, turn: Turn) {
        self.turn = turn;
        self.states_of_plan = states.find(&self.plan.states);
        assert!(!self.states_of_plan.contains(&usize::MAX), "states of another clip");
        self.states = states;
    }

    /// Takes out the states of the clip.
    pub fn take_states(&mut self) -> ClipStates {
        std::mem::take(&mut self.states)
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the slot of `buffer`, and the position of its byte `at` in that slot.
    pub(super) fn place(&self, (buffer, at): (BufferId, u64)) -> (&GpuBuffer, u64) {
        let buffer = &self.plan.buffers[buffer.0];
        (&self.slots[buffer.slot.0], buffer.offset.0 + at)
    }
}
