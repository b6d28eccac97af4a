//! What a plan says about itself, as one flat record: for reports, for charts, and for callers in
//! other languages.

use serde::Serialize;

use crate::kernels::choice::Choice;
use crate::limits::DeviceKind;
use crate::plan::{Output, Plan, Planes};
use crate::tensor::{Bytes, Storage};

/// Multiply-adds of one submission in [`PlanFacts::submissions`]: about what a modest GPU does in
/// 50 ms. A decode starts near this and then goes by the speed it measures.
const GPU_SUBMISSION_MACS: u64 = 10_000_000_000;
/// The same for a CPU driver.
const CPU_SUBMISSION_MACS: u64 = 2_000_000_000;

/// The facts about a plan. Field names are those of its JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanFacts {
    /// What goes in: latents to be decoded, or an image to be encoded.
    pub input: Planes,
    /// What comes out: an image, or moments.
    pub result: Planes,
    /// How activations and weights are stored.
    pub storage: Storage,
    /// What the host gets.
    pub output: Output,
    /// GPU memory at the peak, all of it.
    pub predicted_peak_bytes: Bytes,
    /// Packed weights.
    pub weight_bytes: Bytes,
    /// Slots: activations and scratch.
    pub slot_bytes: Bytes,
    /// Parameters of all launches.
    pub parameter_bytes: Bytes,
    /// What data passes through between host and device.
    pub staging_bytes: Bytes,
    /// Timestamps.
    pub timestamp_bytes: Bytes,
    /// The picture, where it stays on the device.
    pub picture_bytes: Bytes,
    /// The largest range that one binding covers.
    pub largest_binding_bytes: Bytes,
    /// Size of each slot.
    pub slots: Vec<Bytes>,
    /// What a budget moves between host and device.
    pub transferred_bytes: Bytes,
    /// What a budget leaves in host memory.
    pub host_bytes: Bytes,
    /// What a decode should take on a device of this kind.
    pub predicted_seconds: f64,
    /// Submissions of `submission_macs` each.
    pub submissions: usize,
    /// Multiply-adds of one submission.
    pub submission_macs: u64,
    /// Multiply-adds, counted as direct convolutions and products.
    pub macs: u64,
    /// Commands.
    pub steps: usize,
    /// Specialised kernels.
    pub kernels: usize,
    /// Which kernels and tiles.
    pub choice: Choice,
    /// Each module of the network.
    pub stages: Vec<StageFacts>,
}

/// The facts about one stage of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StageFacts {
    /// Its module in diffusers' spelling.
    pub name: String,
    /// Commands.
    pub steps: usize,
    /// Multiply-adds.
    pub macs: u64,
}

/// Steps of one stage that follow one another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunFacts {
    /// Their module in diffusers' spelling.
    pub stage: String,
    /// How many.
    pub steps: usize,
    /// Their multiply-adds.
    pub macs: u64,
    /// Activations and scratch that are live at once, at most.
    pub live_bytes: Bytes,
}

impl Plan {
    /// The facts about it.
    pub fn facts(&self) -> PlanFacts {
        let submission_macs = match self.kind {
            DeviceKind::Gpu => GPU_SUBMISSION_MACS,
            DeviceKind::Cpu => CPU_SUBMISSION_MACS,
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

    /// What happens in the course of a decode, in order: for a chart of memory over the steps.
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
