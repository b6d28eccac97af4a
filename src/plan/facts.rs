//! A summary of a plan as one flat record, for reports, charts and callers in other languages.

use serde::Serialize;

use crate::kernels::choice::KernelChoice;
use crate::limits::DeviceKind;
use crate::plan::{Output, Plan, PlaneExtents};
use crate::tensor::{Bytes, Storage};

/// Multiply-adds of one submission in [`PlanFacts::submissions`]: about 50 ms of work for a modest
/// GPU. A decode starts near this size and then adapts to the speed that it measures.
const GPU_SUBMISSION_MACS: u64 = 10_000_000_000;
/// Multiply-adds of one submission for a CPU driver.
const CPU_SUBMISSION_MACS: u64 = 2_000_000_000;

/// Facts about a plan. The field names are also the keys of its JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanFacts {
    /// Extents of the input: latents to decode, or an image to encode.
    pub input: PlaneExtents,
    /// Extents of the result: an image, or moments of latents.
    pub result: PlaneExtents,
    /// Storage type of activations and weights.
    pub storage: Storage,
    /// Form of the result that the host gets.
    pub output: Output,
    /// Predicted peak of GPU memory, everything included.
    pub predicted_peak_bytes: Bytes,
    /// Packed weights.
    pub weight_bytes: Bytes,
    /// Slots: activations and scratch.
    pub slot_bytes: Bytes,
    /// Parameters of all launches.
    pub parameter_bytes: Bytes,
    /// Staging buffers for transfers between host and device.
    pub staging_bytes: Bytes,
    /// Timestamp buffers.
    pub timestamp_bytes: Bytes,
    /// The picture, if it stays on the device.
    pub picture_bytes: Bytes,
    /// Largest range that one binding covers.
    pub largest_binding_bytes: Bytes,
    /// Size of each slot.
    pub slots: Vec<Bytes>,
    /// Bytes that move between host and device because of a budget.
    pub transferred_bytes: Bytes,
    /// Bytes in host memory: parked buffers, states, and weights that the plan fetches.
    pub host_bytes: Bytes,
    /// Seconds that a decode should take on a device of this class. For comparing plans.
    pub predicted_seconds: f64,
    /// Number of submissions of about `submission_macs` each.
    pub submissions: usize,
    /// Multiply-adds of one submission.
    pub submission_macs: u64,
    /// Multiply-adds, counted as direct convolutions and products.
    pub macs: u64,
    /// Number of commands.
    pub steps: usize,
    /// Number of kernel variants.
    pub kernels: usize,
    /// Kernels, tile sizes and band size.
    pub choice: KernelChoice,
    /// Facts about each stage of the network.
    pub stages: Vec<StageFacts>,
}

/// Facts about one stage of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StageFacts {
    /// Module of the network in diffusers' spelling.
    pub name: String,
    /// Number of commands.
    pub steps: usize,
    /// Multiply-adds.
    pub macs: u64,
}

/// Facts about consecutive steps of one stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunFacts {
    /// Name of the stage, a module in diffusers' spelling.
    pub stage: String,
    /// Number of steps.
    pub steps: usize,
    /// Multiply-adds of these steps.
    pub macs: u64,
    /// Most bytes of activations and scratch that are live at once.
    pub live_bytes: Bytes,
}

impl Plan {
    /// Returns the facts about this plan.
    pub fn facts(&self) -> PlanFacts {
        let submission_macs = match self.kind {
            DeviceKind::Gpu => GPU_SUBMISSION_MACS,
            DeviceKind::Cpu | DeviceKind::Host => CPU_SUBMISSION_MACS,
        };
        PlanFacts {
            input: self.input(),
            result: self.result,
            storage: self.storage,
            output: self.output,
            predicted_peak_bytes: self.memory.peak(),
            weight_bytes: self.memory.weights,
            slot_bytes: self.memory.slots,
            parameter_bytes: self.memory.params,
            staging_bytes: self.memory.staging,
            timestamp_bytes: self.memory.timestamps,
            picture_bytes: self.memory.picture,
            largest_binding_bytes: self.largest_binding(),
            slots: self.slots.clone(),
            transferred_bytes: self.transferred(),
            host_bytes: self.host_bytes(),
            predicted_seconds: self.predicted_seconds(),
            submissions: self.submissions(submission_macs).len(),
            submission_macs,
            macs: self.macs(),
            steps: self.steps.len(),
            kernels: self.variants.len(),
            choice: self.choice,
            stages: (0..self.stages.len()).map(|stage| self.stage_facts(stage)).collect(),
        }
    }

    /// Returns the runs of the plan in execution order, for a chart of memory over the steps.
    pub fn timeline(&self) -> Vec<RunFacts> {
        let live = self.live_bytes();
        let run = |steps: std::ops::Range<usize>| RunFacts {
            stage: self.stages[self.steps[steps.start].stage].clone(),
            steps: steps.len(),
            macs: self.steps[steps.clone()].iter().map(|step| step.macs).sum(),
            live_bytes: live[steps].iter().copied().max().unwrap_or_default(),
        };
        self.stage_runs().into_iter().map(run).collect()
    }

    fn stage_facts(&self, stage: usize) -> StageFacts {
        let steps = || self.steps.iter().filter(|step| step.stage == stage);
        StageFacts {
            name: self.stages[stage].clone(),
            steps: steps().count(),
            macs: steps().map(|step| step.macs).sum(),
        }
    }
}
