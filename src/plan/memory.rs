//! Assigns buffers to slots. Never splits a buffer, never moves one; see `partition` for smaller ones.
//!
//! Greedy by size, largest first: each buffer goes to the slot whose tenants are never live with it, or opens a new one. A slot is as
//! large as its first tenant. (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020: "greedy by
//! size for shared objects".) Separate slots, not one arena: WebGPU refuses a dispatch that reads and writes one buffer.

use std::ops::Range;

use crate::kernels::weights::Layout;
use crate::plan::{Action, Memory, Plan, Resource, SlotId, UNUSED_BYTES};
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

/// The memory of a plan whose slots are assigned.
fn predict(plan: &Plan, timestamps: bool) -> Memory {
    let read = plan.steps.iter().filter_map(|step| match &step.action {
        Action::Park { from, .. } | Action::Output { from, .. } => Some(plan.buffers[from.0].bytes),
        Action::Dispatch { .. } | Action::Copy { .. } | Action::Fetch { .. } => None,
    });
    let staging = read.max().unwrap_or_default();
    let mut resident: Vec<usize> = plan.steps.iter().flat_map(|step| bound_weights(&step.action)).collect();
    resident.sort_unstable();
    resident.dedup();
    Memory {
        weights: resident.into_iter().map(|weight| plan.weights[weight].bytes).sum(),
        slots: plan.slots.iter().copied().sum(),
        params: Bytes(plan.params.len() as u64 + UNUSED_BYTES),
        staging,
        // Begin and end of each stage, 8 bytes each, once on the device and once for the host.
        timestamps: Bytes(if timestamps { plan.stages.len() as u64 * 32 } else { 0 }),
    }
}

/// Weights that a step binds as such: those stay on the GPU.
fn bound_weights(action: &Action) -> Vec<usize> {
    let Action::Dispatch { bindings, .. } = action else { return Vec::new() };
    let weight = |binding: &Resource| match binding {
        Resource::Weight(weight) => Some(weight.0),
        Resource::Buffer(_) | Resource::Unused => None,
    };
    bindings.iter().filter_map(weight).collect()
}

/// The factors of the latents, which the configuration gives and no file.
pub fn latent_transform_layout(channels: u32) -> Layout {
    Layout::Vector { channels: channels * 2 }
}
