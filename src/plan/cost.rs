//! Estimates how long a plan takes, to compare plans, to report the cost of a budget and to cut
//! submissions. The paces are nominal and belong to no particular machine, because planning reads
//! no clock.

use std::ops::Range;

use crate::limits::DeviceKind;
use crate::plan::{Action, BufferId, HostSource, Plan, Resource, Step};
use crate::tensor::Bytes;

/// Rough pace of a kind of device, for one second.
struct Pace {
    /// Multiply-adds, counted as direct convolutions.
    macs: f64,
    /// Bytes moved between host and device.
    link: f64,
    /// Launches and copies.
    steps: f64,
}

/// Returns the nominal pace of a kind of device. For CPU drivers: two cores of a server processor
/// under lavapipe. For GPUs: a mid-range GPU of 2023 with a link of that time.
fn pace(kind: DeviceKind) -> Pace {
    match kind {
        DeviceKind::Cpu => Pace { macs: 5.5e10, link: 4e9, steps: 5e4 },
        DeviceKind::Gpu => Pace { macs: 4e12, link: 1.2e10, steps: 1e5 },
    }
}

/// Returns the seconds for `macs` multiply-adds, `steps` steps, and `moved` bytes between host and
/// device.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
pub(super) fn seconds(kind: DeviceKind, macs: u64, steps: usize, moved: Bytes) -> f64 {
    let pace = pace(kind);
    macs as f64 / pace.macs + steps as f64 / pace.steps + moved.0 as f64 / pace.link
}

impl Plan {
    /// Returns the number of multiply-adds, counted as direct convolutions and products.
    pub fn macs(&self) -> u64 {
        self.steps.iter().map(|step| step.macs).sum()
    }

    /// Returns the bytes that `action` moves from the host to the device, and those that it moves
    /// back, without rows of the result.
    pub(super) fn transfer(&self, action: &Action) -> [Bytes; 2] {
        let whole = |buffer: &BufferId| self.buffers[buffer.0].bytes;
        match action {
            Action::Fetch { to, .. } => [whole(to), Bytes(0)],
            Action::Recall { state, part, to } if self.is_on_host(*state, *part) => [whole(to), Bytes(0)],
            Action::Park { from, .. } => [Bytes(0), whole(from)],
            Action::Keep { state, part, bytes, .. } if self.is_on_host(*state, *part) => [Bytes(0), Bytes(*bytes)],
            Action::Dispatch { .. }
            | Action::Copy { .. }
            | Action::Recall { .. }
            | Action::Keep { .. }
            | Action::Output { .. } => [Bytes(0); 2],
        }
    }

    /// Returns the bytes that one decode moves between host and device because the budget is short.
    pub fn transferred(&self) -> Bytes {
        let is_input = |step: &&Step| matches!(step.action, Action::Fetch { from: HostSource::Input(_), .. });
        self.steps.iter().filter(|step| !is_input(step)).flat_map(|step| self.transfer(&step.action)).sum()
    }

    /// Returns the seconds that one decode takes on a device of this kind, by nominal pace. The
    /// value is meant for comparing plans.
    pub fn predicted_seconds(&self) -> f64 {
        seconds(self.kind, self.macs(), self.steps.len(), self.transferred())
    }

    /// Splits the steps into ranges to submit together. Each range has a [work](Self::work) near
    /// `work`, or is a single step.
    pub fn submissions(&self, work: u64) -> Vec<Range<usize>> {
        let mut result = Vec::new();
        let mut start = 0;
        while start < self.steps.len() {
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let end = self.submission_end(start, work as f64, |step| self.work(step) as f64);
            result.push(start..end);
            start = end;
        }
        result
    }

    /// Returns the end of a submission that begins with step `start`: the step after its last.
    /// `taken` gives the cost of a step. The sum of costs comes as near to `target` as it can with
    /// at least one step.
    pub fn submission_end(&self, start: usize, target: f64, taken: impl Fn(&Step) -> f64) -> usize {
        let mut sum = 0.0;
        for (index, step) in self.steps.iter().enumerate().skip(start) {
            let next = sum + taken(step);
            if index > start && next - target > target - sum {
                return index;
            }
            sum = next;
        }
        self.steps.len()
    }

    /// Returns the cost of `step`, in multiply-adds that would take as long.
    pub fn work(&self, step: &Step) -> u64 {
        // A launch or copy costs something even if it multiplies nothing.
        const STEP_MACS: u64 = 500_000;
        let result = match step.action {
            Action::Output { from, .. } => self.buffers[from.0].bytes,
            _ => Bytes(0),
        };
        let moved = result + self.transfer(&step.action).into_iter().sum();
        step.macs + STEP_MACS + self.memory_work(step) + self.transfer_work(moved.0)
    }

    /// Returns the cost of reading and writing everything that `step` binds, in multiply-adds that
    /// would take as long. Only the order of magnitude is right.
    fn memory_work(&self, step: &Step) -> u64 {
        const PER_BYTE: u64 = 16;
        let bound = |resource: &Resource| match resource {
            Resource::Buffer(buffer) => self.buffers[buffer.0].bytes.0,
            Resource::Weight(weight) => self.weights[weight.0].bytes.0,
            Resource::Unused => 0,
        };
        let moved = match &step.action {
            Action::Copy { bytes, .. } => 2 * bytes,
            action => action.dispatch().map_or(0, |(_, bindings)| bindings.iter().map(bound).sum()),
        };
        moved * PER_BYTE
    }

    /// Returns the cost of moving `bytes` between host and device, in multiply-adds that would take
    /// as long. Only the order of magnitude is right.
    pub fn transfer_work(&self, bytes: u64) -> u64 {
        let per_byte = match self.kind {
            DeviceKind::Cpu => 2,
            DeviceKind::Gpu => 16,
        };
        bytes * per_byte
    }
}
