//! Bounds on the size of a plan. Beyond them, planning itself would take minutes and gigabytes, for
//! a decode that takes more than a day on any device.
//!
//! The bounds are at least twice what the largest published decoders need for the largest images
//! allowed, 16384x8192 pixels: 1.0 million steps, 5e15 multiply-adds.

use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::plan::node::Node;

/// Most chunks of all tensors together.
const MOST_CHUNKS: usize = 1 << 16;
/// Most multiply-adds of a plan that computes nothing twice.
const MOST_MACS: u64 = 1 << 57;
const TRILLION: u64 = 1_000_000_000_000;
/// Most commands of a plan.
pub(super) const MOST_STEPS: usize = 1 << 21;
/// Most looks at chunks to make a schedule. A schedule that takes more has more than
/// [`MOST_STEPS`].
pub(super) const MOST_LOOKS: u64 = MOST_STEPS as u64 * 2;
/// Limit on the work of a search for a plan within a budget, in looks at chunks: `WORK`, plus
/// `WORK_PER_STEP` for each step of the whole plan, but no more than `MOST_WORK`.
const WORK: u64 = 1 << 25;
const WORK_PER_STEP: u64 = 1 << 9;
const MOST_WORK: u64 = 1 << 27;
/// Looks that take as long as lowering, spilling and placing one step.
const STEP_LOOKS: u64 = 24;
/// Looks that take as long as spilling one step once more.
const WALK_LOOKS: u64 = 8;
/// Slots that can be tested for room for a buffer in the time of one look.
const SLOTS_PER_LOOK: u64 = 8;

/// The number of looks at chunks that a search may still do. It is counted instead of timed, so the
/// same search always ends at the same place.
#[derive(Debug)]
pub struct WorkLimit(pub(super) u64);

impl WorkLimit {
    /// Returns the limit for the search of a plan that is `whole` without a budget.
    pub(super) fn new(whole: &Plan) -> Self {
        Self((WORK + whole.steps.len() as u64 * WORK_PER_STEP).min(MOST_WORK))
    }

    /// Returns the most looks that the next schedule may take.
    pub(super) fn most_looks(&self) -> u64 {
        self.0.min(MOST_LOOKS)
    }

    /// Counts `looks` at chunks.
    pub(super) fn count_looks(&mut self, looks: u64) {
        self.0 = self.0.saturating_sub(looks);
    }

    /// Counts the steps of a lowered plan.
    pub(super) fn count_steps(&mut self, steps: usize) {
        self.count_looks(steps as u64 * STEP_LOOKS);
    }

    /// Counts a walk that spills `steps` steps.
    pub(super) fn count_walk(&mut self, steps: usize) {
        self.count_looks(steps as u64 * WALK_LOOKS);
    }

    /// Counts the placing of the buffers of a plan.
    pub(super) fn count_places(&mut self, plan: &Plan) {
        self.count_looks(plan.buffers.len() as u64 * plan.slots.len() as u64 / SLOTS_PER_LOOK);
    }
}

/// Checks the chunks and multiply-adds of `nodes`, which may be only the first of a network.
///
/// # Errors
/// [`Error::Input`] that names the exceeded bound.
pub(super) fn check(nodes: &[Node]) -> Result<()> {
    let chunks: usize = nodes.iter().map(|node| node.partition.count()).sum();
    if chunks > MOST_CHUNKS {
        return Err(too_large(&format!("at most {MOST_CHUNKS} chunks of tensors"), &format!("at least {chunks}")));
    }
    let macs = |node: &Node| node.row_macs.saturating_mul(u64::from(node.partition.height));
    let macs = nodes.iter().map(macs).fold(0, u64::saturating_add);
    if macs > MOST_MACS {
        let [most, found] = [MOST_MACS, macs].map(|macs| macs / TRILLION);
        return Err(too_large(
            &format!("at most {most} trillion multiply-adds"),
            &format!("at least {found} trillion"),
        ));
    }
    Ok(())
}

/// Returns the error for a plan with more than [`MOST_STEPS`] steps.
pub(super) fn too_many_steps() -> Error {
    too_large(&format!("at most {MOST_STEPS} steps"), "a plan with more steps, under this device's limits")
}

fn too_large(expected: &str, found: &str) -> Error {
    Error::input("size", expected, found.to_owned())
}
