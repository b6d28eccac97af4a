//! How large a plan may grow. Beyond that, planning itself would take minutes and gigabytes, for a
//! decode that no device is done with in a day.
//!
//! Twice and more what the largest published decoders need for the largest images allowed,
//! 16384x8192 pixels: 1.0 million steps, 5e15 multiply-adds.

use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::plan::node::Node;

/// Chunks of all tensors together.
const MOST_CHUNKS: usize = 1 << 16;
/// Multiply-adds of a plan that computes nothing twice.
const MOST_MACS: u64 = 1 << 57;
/// Commands.
pub(super) const MOST_STEPS: usize = 1 << 21;
/// Looks at chunks, to make a schedule: one that takes more has more steps than that.
pub(super) const MOST_LOOKS: u64 = MOST_STEPS as u64 * 2;
/// What a search for a plan within a budget may do in any case, and besides for each step of the
/// whole plan, and at most. In looks at chunks.
const WORK: u64 = 1 << 25;
const WORK_PER_STEP: u64 = 1 << 9;
const MOST_WORK: u64 = 1 << 27;
/// A step that is lowered, spilled and placed takes as long as so many looks.
const STEP_LOOKS: u64 = 24;
/// As long as one look takes it to see whether a buffer fits into so many slots.
const SLOTS_PER_LOOK: u64 = 8;

/// What a search may still do. Counted and not timed: the same search always ends at the same
/// place.
#[derive(Debug)]
pub struct Allowance(pub(super) u64);

impl Allowance {
    /// For plans of what takes `whole` without a budget.
    pub(super) fn new(whole: &Plan) -> Self {
        Self((WORK + whole.steps.len() as u64 * WORK_PER_STEP).min(MOST_WORK))
    }

    /// Looks that the next schedule may take.
    pub(super) fn most_looks(&self) -> u64 {
        self.0.min(MOST_LOOKS)
    }

    /// Counts `looks` at chunks.
    pub(super) fn count_looks(&mut self, looks: u64) {
        self.0 = self.0.saturating_sub(looks);
    }

    /// Counts the steps of a plan that was lowered.
    pub(super) fn count_steps(&mut self, steps: usize) {
        self.count_looks(steps as u64 * STEP_LOOKS);
    }

    /// Counts the placing of a plan's buffers.
    pub(super) fn count_places(&mut self, plan: &Plan) {
        self.count_looks(plan.buffers.len() as u64 * plan.slots.len() as u64 / SLOTS_PER_LOOK);
    }
}

/// Checks what there is of the nodes so far.
///
/// # Errors
/// [`Error::Input`] with what is too much.
pub(super) fn check(nodes: &[Node]) -> Result<()> {
    let chunks: usize = nodes.iter().map(|node| node.partition.count()).sum();
    if chunks > MOST_CHUNKS {
        return Err(too_large(&format!("tensors in at most {MOST_CHUNKS} chunks"), "more, within these limits"));
    }
    let macs = |node: &Node| node.row_macs.saturating_mul(u64::from(node.partition.height));
    let macs = nodes.iter().map(macs).fold(0, u64::saturating_add);
    if macs > MOST_MACS {
        return Err(too_large(&format!("a decode of at most {MOST_MACS:e} multiply-adds"), &format!("{macs:e}")));
    }
    Ok(())
}

/// The error of a plan with more than [`MOST_STEPS`].
pub(super) fn too_many_steps() -> Error {
    too_large(&format!("a decode of at most {MOST_STEPS} steps"), "more, within these limits")
}

fn too_large(expected: &str, found: &str) -> Error {
    Error::Input { what: "size".to_owned(), expected: expected.to_owned(), found: found.to_owned() }
}
