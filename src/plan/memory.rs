//! Assigns buffers to slots. Never splits a buffer, never moves one; see `partition` for smaller ones.
//!
//! Greedy by size, largest first: each buffer goes to the slot whose tenants are never live with it, or opens a new one. A slot is as
//! large as its first tenant. (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020: "greedy by
//! size for shared objects".) Separate slots, not one arena: WebGPU refuses a dispatch that reads and writes one buffer.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::kernels::weights::Layout;
use crate::plan::{Action, BufferId, Memory, Plan, Resource, SlotId, UNUSED_BYTES};
use crate::tensor::Bytes;

/// Sizes of buffers are rounded up to this many bytes.
pub(super) const ALIGNMENT: u64 = 256;

/// Sets `slot` of every buffer, the sizes of all slots, and the predicted memory; with room for `timestamps` if asked.
pub fn assign(plan: &mut Plan, timestamps: bool) {
    let mut order: Vec<usize> = (0..plan.buffers.len()).collect();
    order.sort_by_key(|&index| (std::cmp::Reverse(plan.buffers[index].bytes), index));
    let mut slots: Vec<Bytes> = Vec::new();
    let mut tenants: Vec<Vec<Range<usize>>> = Vec::new();
    for index in order {
        let live = plan.buffers[index].live.clone();
        let mut free = (0..slots.len()).filter(|&slot| tenants[slot].iter().all(|tenant| disjoint(tenant, &live)));
        // The smallest that is free: it was opened last.
        let slot = free.next_back().unwrap_or_else(|| {
            slots.push(plan.buffers[index].bytes.align_up(ALIGNMENT));
            tenants.push(Vec::new());
            slots.len() - 1
        });
        tenants[slot].push(live);
        plan.buffers[index].slot = SlotId(slot);
    }
    plan.slots = slots;
    plan.memory = predict(plan, timestamps);
}

fn disjoint(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.end <= b.start || b.end <= a.start
}

/// Buffers through which the host writes and reads while a plan runs: a ring of [`Staging::SLOTS`] for either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Staging {
    /// Size of each buffer that the host writes: latents, parameters, and what the plan fetches.
    pub upload: Bytes,
    /// Size of each buffer that the host reads: the result, and what the plan parks.
    pub readback: Bytes,
}

impl Staging {
    /// Buffers of a ring: some are filled for the submission that is being recorded, while others are read by the device or the host.
    // Measured on a CPU driver, 1.6 GiB moved in a decode: 4 of 1 MiB took as long as 2 of 4 MiB, 2 of 1 MiB half as long again.
    pub const SLOTS: u64 = 4;
    /// Larger transfers are split into pieces of this size.
    pub const PIECE: Bytes = Bytes(1 << 20);

    /// What `plan` needs: no larger than a piece, nor than its largest transfer, nor smaller than a row of the result.
    pub fn of(plan: &Plan) -> Self {
        let bytes = |buffer: &BufferId| plan.buffers[buffer.0].bytes;
        let fetches = plan.steps.iter().filter_map(|step| match &step.action {
            Action::Fetch { to, .. } => Some(bytes(to)),
            Action::Park { .. } | Action::Output { .. } | Action::Dispatch { .. } | Action::Copy { .. } => None,
        });
        let written = fetches.chain([bytes(&plan.input), Bytes(plan.params.len() as u64)]);
        let read = plan.steps.iter().filter_map(|step| match &step.action {
            Action::Park { from, .. } => Some(bytes(from)),
            Action::Output { rows, .. } => Some(Bytes(u64::from(rows.1 - rows.0) * plan.row_bytes().0)),
            Action::Fetch { .. } | Action::Dispatch { .. } | Action::Copy { .. } => None,
        });
        let slot = |largest: Option<Bytes>, least: Bytes| {
            largest.unwrap_or_default().align_up(Self::ALIGNMENT).min(Self::PIECE.max(least.align_up(Self::ALIGNMENT)))
        };
        Self { upload: slot(written.max(), Bytes(0)), readback: slot(read.max(), plan.row_bytes()) }
    }

    /// Where a transfer may start within a buffer: mapped ranges start at multiples of eight.
    pub const ALIGNMENT: u64 = 8;

    /// Both rings together.
    pub fn bytes(self) -> Bytes {
        Bytes((self.upload.0 + self.readback.0) * Self::SLOTS)
    }
}

/// The memory of a plan whose slots are assigned.
fn predict(plan: &Plan, timestamps: bool) -> Memory {
    Memory {
        weights: plan.bound_weights().map(|weight| plan.weights[weight].bytes).sum(),
        slots: plan.slots.iter().copied().sum(),
        params: Bytes(plan.params.len() as u64 + UNUSED_BYTES),
        staging: Staging::of(plan).bytes(),
        // Begin and end of each stage, 8 bytes each.
        timestamps: Bytes(if timestamps { plan.stages.len() as u64 * 16 } else { 0 }),
    }
}

impl Plan {
    /// Weights that launches bind as such, by index into [`Plan::weights`]: those stay on the GPU.
    pub fn bound_weights(&self) -> impl Iterator<Item = usize> {
        let bindings = self.steps.iter().flat_map(|step| match &step.action {
            Action::Dispatch { bindings, .. } => bindings.as_slice(),
            Action::Copy { .. } | Action::Fetch { .. } | Action::Park { .. } | Action::Output { .. } => &[],
        });
        let weights: BTreeSet<usize> = bindings
            .filter_map(|binding| match binding {
                Resource::Weight(weight) => Some(weight.0),
                Resource::Buffer(_) | Resource::Unused => None,
            })
            .collect();
        weights.into_iter()
    }
}

/// The factors of the latents, which the configuration gives and no file.
pub fn latent_transform_layout(channels: u32) -> Layout {
    Layout::Vector { channels: channels * 2 }
}
