//! Assigns buffers to places in slots, unless [`crate::plan::spill`] has placed them. It never
//! splits or moves a buffer; `partition` makes smaller ones. Predicts the memory of a plan.
//!
//! The assignment is greedy by size, largest first. Each buffer goes to the smallest *lane* that is
//! free during its life, or opens a slot of its own. A lane is a range of a slot. A small buffer
//! that moves into a large lane cuts it in two, so that other buffers can use the rest. (After
//! Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020: "greedy by
//! size".) There are many slots instead of one arena because WebGPU rejects a dispatch that reads
//! one part of a buffer and writes another. So buffers that meet in a dispatch that writes one of
//! them are in different slots.

use std::ops::Range;

use crate::limits::DeviceKind;
use crate::ordered::{Set, by_key};
use crate::plan::uses::Uses;
use crate::plan::{
    ALIGNMENT, Action, BufferUse, CHECK_BYTES, Home, Memory, Plan, Resource, SlotId, StateUse, Step, UNUSED_BYTES,
    Weights,
};
use crate::tensor::Bytes;

/// Sets `slot` and `offset` of every buffer, and the sizes of all slots.
pub fn assign(plan: &mut Plan) {
    // The largest first, and equal ones in order of time.
    let key = |buffer: &BufferUse| {
        u64::from(u32::MAX).saturating_sub(buffer.bytes.align_up(ALIGNMENT).0 / ALIGNMENT) << 32
            | buffer.live.start as u64
    };
    let order: Vec<usize> = by_key(plan.buffers.iter().map(key)).collect();
    let apart = Uses::new(plan, &plan.steps, &plan.buffers, Weights::Device).apart();
    let mut slots = Vec::new();
    let mut lanes: Vec<Lane> = Vec::new();
    let mut placed: Vec<Option<SlotId>> = vec![None; plan.buffers.len()];
    let mut size_before = Bytes(0);
    for index in order {
        let (bytes, live) = (plan.buffers[index].bytes.align_up(ALIGNMENT), plan.buffers[index].live.clone());
        if bytes != size_before {
            // Buffers of one size come in order of time. Another size starts over.
            lanes.iter_mut().for_each(|lane| (lane.next, lane.busy) = (0, 0));
            size_before = bytes;
        }
        let meets = |slot: SlotId| apart[index].iter().any(|other| placed[*other] == Some(slot));
        // The smallest free lane, and among equal lanes the one that was left last.
        let mut best: Option<(Bytes, usize, usize)> = None;
        for (at, lane) in lanes.iter_mut().enumerate().filter(|(_, lane)| lane.bytes >= bytes) {
            if let Some(idle) = lane.idle(&live)
                && best.is_none_or(|best| (lane.bytes, idle, at) < best)
                && !meets(lane.slot)
            {
                best = Some((lane.bytes, idle, at));
            }
        }
        let lane = best.map(|(.., at)| at).unwrap_or_else(|| {
            slots.push(bytes);
            lanes.push(Lane::new(SlotId(slots.len() - 1), bytes));
            lanes.len() - 1
        });
        if lanes[lane].bytes > bytes {
            let rest = lanes[lane].cut(bytes);
            lanes.push(rest);
        }
        let Lane { tenants, next, slot, offset, .. } = &mut lanes[lane];
        tenants.insert(*next, live);
        (plan.buffers[index].slot, plan.buffers[index].offset) = (*slot, *offset);
        placed[index] = Some(*slot);
    }
    plan.slots = slots;
}

/// A range of a slot, while buffers are assigned.
#[derive(Debug, Clone)]
struct Lane {
    slot: SlotId,
    offset: Bytes,
    bytes: Bytes,
    /// Lives of its buffers in order of time, without overlap.
    tenants: Vec<Range<usize>>,
    /// First buffer whose life ends after the start of the life asked for last.
    next: usize,
    /// Step up to which the lane is known to be in use.
    busy: usize,
}

impl Lane {
    /// Returns the lane of a new slot.
    fn new(slot: SlotId, bytes: Bytes) -> Self {
        Self { slot, offset: Bytes(0), bytes, tenants: Vec::new(), next: 0, busy: 0 }
    }

    /// Returns the number of steps that the lane has been free before `live`, or `None` if the lane
    /// is in use during `live`. Lives must be asked for in order of their starts, or `next` and
    /// `busy` must be reset first.
    fn idle(&mut self, live: &Range<usize>) -> Option<usize> {
        if live.start < self.busy {
            return None;
        }
        while self.tenants.get(self.next).is_some_and(|tenant| tenant.end <= live.start) {
            self.next += 1;
        }
        if let Some(tenant) = self.tenants.get(self.next)
            && tenant.start < live.end
        {
            self.busy = if tenant.start <= live.start { tenant.end } else { 0 };
            return None;
        }
        let left = self.next.checked_sub(1).map_or(0, |before| self.tenants[before].end);
        Some(live.start - left)
    }

    /// Keeps the first `bytes` and returns the rest. Both lanes keep the lives so far.
    fn cut(&mut self, bytes: Bytes) -> Self {
        let rest = Self { offset: self.offset + bytes, bytes: Bytes(self.bytes.0 - bytes.0), ..self.clone() };
        self.bytes = bytes;
        rest
    }
}

/// Staging buffers through which the host writes and reads while a plan runs: a ring of
/// [`Staging::SLOTS`] buffers for either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Staging {
    /// Size of each buffer that the host writes: latents, parameters, and data that the plan
    /// fetches.
    pub upload: Bytes,
    /// Size of each buffer that the host reads: the result, and buffers that the plan parks.
    pub readback: Bytes,
}

impl Staging {
    /// Buffers of a ring. Some are filled for the submission that is being recorded, while the
    /// device or the host reads others.
    // Measured on a CPU driver with 1.6 GiB moved in a decode: 4 buffers of 1 MiB took as long as 2
    // of 4 MiB; 2 of 1 MiB took half as long again.
    pub const SLOTS: u64 = 4;
    /// Larger transfers are split into pieces of this size.
    pub const PIECE: Bytes = Bytes(1 << 20);

    /// Returns the sizes that `plan` needs: at most a piece and at most the largest transfer, but
    /// at least one row of the result.
    pub fn of(plan: &Plan) -> Self {
        let transfers = |step: &Step| plan.transfer(&step.action);
        let written = plan.steps.iter().map(|step| transfers(step)[0]).chain([Bytes(plan.params.len() as u64)]);
        let outputs = plan.steps.iter().filter(|step| matches!(step.action, Action::Output { .. })).count() as u64;
        let read = plan.steps.iter().map(|step| match step.action {
            // One submission may hold the checks of all rows.
            Action::Output { .. } if plan.output.stays() => Bytes(CHECK_BYTES.0 * outputs),
            Action::Output { rows, .. } => Bytes(u64::from(rows.1 - rows.0) * plan.row_bytes().0),
            _ => transfers(step)[1],
        });
        let slot = |largest: Option<Bytes>, least: Bytes| {
            largest.unwrap_or_default().align_up(Self::ALIGNMENT).min(Self::PIECE.max(least.align_up(Self::ALIGNMENT)))
        };
        let least_read = if plan.output.stays() { CHECK_BYTES } else { plan.row_bytes() };
        // A plan without a result still has timestamps to read.
        let read = read.max().filter(|most| *most > Bytes(0)).unwrap_or(CHECK_BYTES);
        Self { upload: slot(written.max(), Bytes(0)), readback: slot(Some(read), least_read) }
    }

    /// Alignment in bytes of a transfer within a buffer: mapped ranges start at multiples of eight.
    pub const ALIGNMENT: u64 = 8;

    /// Returns the bytes of both rings together.
    pub fn bytes(self) -> Bytes {
        Bytes((self.upload.0 + self.readback.0) * Self::SLOTS)
    }
}

/// Returns the most memory besides slots that `plan`, which has no slots yet, can take once any of
/// its buffers may move to the host and back, and its weights as `weights` says.
pub(super) fn most_beside_slots(plan: &Plan, timestamps: bool, other_weights: Bytes, weights: Weights) -> Bytes {
    let memory = predict(plan, false, other_weights);
    let sizes = plan.buffers.iter().map(|buffer| buffer.bytes).chain(plan.weights.iter().map(|weight| weight.bytes));
    let piece = sizes.max().unwrap_or_default().align_up(Staging::ALIGNMENT).min(Staging::PIECE);
    let Staging { upload, readback } = Staging::of(plan);
    let staging = Staging { upload: upload.max(piece), readback: readback.max(piece) };
    let staging = if plan.kind == DeviceKind::Host { Bytes(0) } else { staging.bytes() };
    let own = if weights == Weights::Host { other_weights } else { memory.weights };
    let timestamps = Bytes(if timestamps { MOST_QUERIES as u64 * 8 } else { 0 });
    Memory { weights: own, staging, timestamps, ..memory }.peak()
}

/// Predicts the memory of a plan whose slots are assigned. The prediction has room for `timestamps`
/// if true, and counts `other_weights` besides the plan's own.
pub(super) fn predict(plan: &Plan, timestamps: bool, other_weights: Bytes) -> Memory {
    let own: Bytes = plan.bound_weights().map(|weight| plan.weights[weight].bytes).sum();
    // The host reads parameters and hands out results where they are.
    let on_device = |bytes: Bytes| if plan.kind == DeviceKind::Host { Bytes(0) } else { bytes };
    Memory {
        weights: own + other_weights,
        slots: plan.slots.iter().copied().sum(),
        states: plan.states.iter().map(state_bytes).sum(),
        params: on_device(Bytes(plan.params.len() as u64 + UNUSED_BYTES)),
        staging: on_device(Staging::of(plan).bytes()),
        timestamps: if timestamps { timestamp_bytes(plan) } else { Bytes(0) },
        picture: if plan.output.stays() {
            Bytes(plan.row_bytes().0 * u64::from(plan.result.size.height))
        } else {
            Bytes(0)
        },
    }
}

/// Returns the bytes of a state that are on the device.
fn state_bytes(state: &StateUse) -> Bytes {
    match state.home {
        Home::Device => state.bytes() + state.table,
        Home::Host => state.table,
    }
}

/// Most timestamps of a plan. WebGPU: createQuerySet rejects a larger count.
const MOST_QUERIES: usize = 4096;

/// Returns the bytes for the begin and the end of each run of a stage, 8 bytes each. Returns 0 if
/// there are more queries than a device must support.
fn timestamp_bytes(plan: &Plan) -> Bytes {
    let queries = plan.stage_runs().len() * 2;
    Bytes(if queries <= MOST_QUERIES { queries as u64 * 8 } else { 0 })
}

impl Plan {
    /// Returns the runs of consecutive steps of one stage. If chunks are recomputed, stages take
    /// turns and have many runs.
    pub fn stage_runs(&self) -> Vec<Range<usize>> {
        let runs = self.steps.chunk_by(|step, next| step.stage == next.stage);
        let mut start = 0;
        let range = |run: &[Step]| {
            start += run.len();
            start - run.len()..start
        };
        runs.map(range).collect()
    }

    /// Returns the weights that launches bind directly, by index into [`Plan::weights`]. These stay
    /// on the GPU.
    pub fn bound_weights(&self) -> impl Iterator<Item = usize> {
        let bindings = self.steps.iter().filter_map(|step| step.action.dispatch()).flat_map(|(_, bindings)| bindings);
        let weights = bindings.filter_map(|binding| match binding {
            Resource::Weight(weight) => Some(weight.0),
            Resource::Buffer(_) | Resource::Unused => None,
        });
        weights.collect::<Set<usize>>().into_items().into_iter()
    }
}
