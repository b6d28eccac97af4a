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
    order.sort_by_key(|&index| {
        let buffer = &plan.buffers[index];
        (std::cmp::Reverse(buffer.bytes), buffer.live.start, index)
    });
    let mut slots: Vec<Slot> = Vec::new();
    let mut size_before = Bytes(0);
    for index in order {
        let (bytes, live) = (plan.buffers[index].bytes, plan.buffers[index].live.clone());
        if bytes != size_before {
            // Buffers of one size come in the order of time; another size starts over.
            slots.iter_mut().for_each(|slot| slot.next = 0);
            size_before = bytes;
        }
        // The smallest that is free, and of those the one that was left last.
        let free = slots.iter_mut().enumerate().filter_map(|(index, slot)| Some((slot.bytes, slot.idle(&live)?, index)));
        let free = free.min().map(|(_, _, index)| index);
        let slot = free.unwrap_or_else(|| {
            slots.push(Slot { bytes: bytes.align_up(ALIGNMENT), tenants: Vec::new(), next: 0 });
            slots.len() - 1
        });
        let Slot { tenants, next, .. } = &mut slots[slot];
        tenants.insert(*next, live);
        plan.buffers[index].slot = SlotId(slot);
    }
    plan.slots = slots.into_iter().map(|slot| slot.bytes).collect();
    plan.memory = predict(plan, timestamps);
}

/// A slot in the making.
#[derive(Debug)]
struct Slot {
    bytes: Bytes,
    /// Lives of its tenants, in the order of time. None overlap.
    tenants: Vec<Range<usize>>,
    /// The first tenant that ends after the life asked for last began.
    next: usize,
}

impl Slot {
    /// If nobody lives here during `live`: for how many steps nobody has by then. Lives are asked for in the order of their starts, or `next` is
    /// set back first.
    fn idle(&mut self, live: &Range<usize>) -> Option<usize> {
        while self.tenants.get(self.next).is_some_and(|tenant| tenant.end <= live.start) {
            self.next += 1;
        }
        let free = self.tenants.get(self.next).is_none_or(|tenant| live.end <= tenant.start);
        let left = self.next.checked_sub(1).map_or(0, |before| self.tenants[before].end);
        free.then_some(live.start - left)
    }
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
