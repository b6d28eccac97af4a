//! Assigns buffers to places in slots. Never splits a buffer, never moves one; see `partition` for
//! smaller ones.
//!
//! Greedy by size, largest first: each buffer goes to the smallest *lane* that nobody lives in at
//! the same time, or opens a slot of its own. A lane is a range of a slot; a small buffer that
//! moves into a large lane cuts it in two, so that others can live beside it. (After Pisarchyk and
//! Lee, "Efficient memory management for deep neural net inference", 2020: "greedy by size".) Many
//! slots, not one arena: WebGPU refuses a dispatch that reads one part of a buffer and writes
//! another, so buffers that meet in a dispatch that writes one of them are in different slots.

use std::ops::Range;

use crate::kernels::{Access, interface};
use crate::ordered::Ordered as _;
use crate::plan::{Action, BufferId, CHECK_BYTES, Home, Memory, Plan, Resource, SlotId, StateUse, Step, UNUSED_BYTES};
use crate::tensor::Bytes;

/// Sizes of buffers are rounded up to this many bytes.
pub(super) const ALIGNMENT: u64 = 256;

/// Sets `slot` and `offset` of every buffer, the sizes of all slots, and the predicted memory; with
/// room for `timestamps` if asked, and `other_weights` beside the plan's own.
pub fn assign(plan: &mut Plan, timestamps: bool, other_weights: Bytes) {
    let mut order: Vec<usize> = (0..plan.buffers.len()).collect();
    order.sort_by_key(|&index| {
        let buffer = &plan.buffers[index];
        (std::cmp::Reverse(buffer.bytes.align_up(ALIGNMENT)), buffer.live.start, index)
    });
    let apart = apart(plan);
    let mut slots = Vec::new();
    let mut lanes: Vec<Lane> = Vec::new();
    let mut placed: Vec<Option<SlotId>> = vec![None; plan.buffers.len()];
    let mut size_before = Bytes(0);
    for index in order {
        let (bytes, live) = (plan.buffers[index].bytes.align_up(ALIGNMENT), plan.buffers[index].live.clone());
        if bytes != size_before {
            // Buffers of one size come in the order of time; another size starts over.
            lanes.iter_mut().for_each(|lane| (lane.next, lane.busy) = (0, 0));
            size_before = bytes;
        }
        let meets = |slot: SlotId| apart[index].iter().any(|other| placed[*other] == Some(slot));
        // The smallest that is free, and of those the one that was left last.
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
    plan.memory = predict(plan, timestamps, other_weights);
}

/// A range of a slot, in the making.
#[derive(Debug, Clone)]
struct Lane {
    slot: SlotId,
    offset: Bytes,
    bytes: Bytes,
    /// Lives of its tenants, in the order of time. None overlap.
    tenants: Vec<Range<usize>>,
    /// The first tenant that ends after the life asked for last began.
    next: usize,
    /// Somebody lives here up to this step, as far as is known.
    busy: usize,
}

impl Lane {
    /// A slot that nobody has lived in.
    fn new(slot: SlotId, bytes: Bytes) -> Self {
        Self { slot, offset: Bytes(0), bytes, tenants: Vec::new(), next: 0, busy: 0 }
    }

    /// If nobody lives here during `live`: for how many steps nobody has by then. Lives are asked
    /// for in the order of their starts, or `next` and `busy` are set back first.
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

    /// Keeps the first `bytes`, and returns the rest. Who lives here lives in both.
    fn cut(&mut self, bytes: Bytes) -> Self {
        let rest = Self { offset: self.offset + bytes, bytes: Bytes(self.bytes.0 - bytes.0), ..self.clone() };
        self.bytes = bytes;
        rest
    }
}

/// For each buffer, those that must not be in its slot: one command writes the one and uses the
/// other.
fn apart(plan: &Plan) -> Vec<Vec<usize>> {
    // Bands of one chunk repeat themselves: what was added lately, by its remainder.
    const RECENT: usize = 64;
    let mut recent = [(0, 0); RECENT];
    let mut apart = vec![Vec::new(); plan.buffers.len()];
    let mut add = |written: usize, other: usize| {
        let pair = (written, other);
        if written != other && std::mem::replace(&mut recent[(written * 7 + other) % RECENT], pair) != pair {
            apart[other].push(written);
            apart[written].push(other);
        }
    };
    let declared: Vec<_> = plan.variants.iter().map(|variant| interface(variant.file).bindings).collect();
    for step in &plan.steps {
        match &step.action {
            Action::Copy { from, to, .. } => add(to.0.0, from.0.0),
            Action::Dispatch { variant, bindings, .. } => {
                let buffers =
                    bindings.iter().zip(declared[*variant]).filter_map(|(binding, (_, access))| match binding {
                        Resource::Buffer(buffer) => Some((buffer.0, *access)),
                        Resource::Weight(_) | Resource::Unused => None,
                    });
                for (written, _) in buffers.clone().filter(|(_, access)| *access == Access::ReadWrite) {
                    buffers.clone().for_each(|(other, _)| add(written, other));
                }
            }
            Action::Fetch { .. }
            | Action::Park { .. }
            | Action::Recall { .. }
            | Action::Keep { .. }
            | Action::Output { .. } => {}
        }
    }
    for others in &mut apart {
        others.sort_unstable();
        others.dedup();
    }
    apart
}

/// Buffers through which the host writes and reads while a plan runs: a ring of [`Staging::SLOTS`]
/// for either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Staging {
    /// Size of each buffer that the host writes: latents, parameters, and what the plan fetches.
    pub upload: Bytes,
    /// Size of each buffer that the host reads: the result, and what the plan parks.
    pub readback: Bytes,
}

impl Staging {
    /// Buffers of a ring: some are filled for the submission that is being recorded, while others
    /// are read by the device or the host.
    // Measured on a CPU driver, 1.6 GiB moved in a decode: 4 of 1 MiB took as long as 2 of 4 MiB, 2
    // of 1 MiB half as long again.
    pub const SLOTS: u64 = 4;
    /// Larger transfers are split into pieces of this size.
    pub const PIECE: Bytes = Bytes(1 << 20);

    /// What `plan` needs: no larger than a piece, nor than its largest transfer, nor smaller than a
    /// row of the result.
    pub fn of(plan: &Plan) -> Self {
        let bytes = |buffer: &BufferId| plan.buffers[buffer.0].bytes;
        let fetches = plan.steps.iter().filter_map(|step| match &step.action {
            Action::Fetch { to, .. } => Some(bytes(to)),
            Action::Recall { state, part, to } if plan.is_on_host(*state, *part) => Some(bytes(to)),
            _ => None,
        });
        let written = fetches.chain([Bytes(plan.params.len() as u64)]);
        let read = plan.steps.iter().filter_map(|step| match &step.action {
            Action::Park { from, .. } => Some(bytes(from)),
            Action::Keep { state, part, bytes, .. } if plan.is_on_host(*state, *part) => Some(Bytes(*bytes)),
            Action::Output { .. } if plan.output.stays() => Some(CHECK_BYTES),
            Action::Output { rows, .. } => Some(Bytes(u64::from(rows.1 - rows.0) * plan.row_bytes().0)),
            _ => None,
        });
        let slot = |largest: Option<Bytes>, least: Bytes| {
            largest.unwrap_or_default().align_up(Self::ALIGNMENT).min(Self::PIECE.max(least.align_up(Self::ALIGNMENT)))
        };
        let least_read = if plan.output.stays() { CHECK_BYTES } else { plan.row_bytes() };
        // A plan without a result still has timestamps to read.
        let read = read.max().unwrap_or(CHECK_BYTES);
        Self { upload: slot(written.max(), Bytes(0)), readback: slot(Some(read), least_read) }
    }

    /// Where a transfer may start within a buffer: mapped ranges start at multiples of eight.
    pub const ALIGNMENT: u64 = 8;

    /// Both rings together.
    pub fn bytes(self) -> Bytes {
        Bytes((self.upload.0 + self.readback.0) * Self::SLOTS)
    }
}

/// The memory of a plan whose slots are assigned.
fn predict(plan: &Plan, timestamps: bool, other_weights: Bytes) -> Memory {
    let own: Bytes = plan.bound_weights().map(|weight| plan.weights[weight].bytes).sum();
    Memory {
        weights: own + other_weights,
        slots: plan.slots.iter().copied().sum(),
        states: plan.states.iter().map(on_device).sum(),
        params: Bytes(plan.params.len() as u64 + UNUSED_BYTES),
        staging: Staging::of(plan).bytes(),
        timestamps: if timestamps { timestamp_bytes(plan) } else { Bytes(0) },
        picture: if plan.output.stays() {
            Bytes(plan.row_bytes().0 * u64::from(plan.result.size.height))
        } else {
            Bytes(0)
        },
    }
}

/// What of a state is on the device.
fn on_device(state: &StateUse) -> Bytes {
    match state.home {
        Home::Device => state.bytes() + state.table,
        Home::Host => state.table,
    }
}

/// Begin and end of each run of a stage, 8 bytes each. None where a device need not have so many.
fn timestamp_bytes(plan: &Plan) -> Bytes {
    // WebGPU: createQuerySet refuses more.
    const MOST_QUERIES: usize = 4096;
    let queries = plan.stage_runs().len() * 2;
    Bytes(if queries <= MOST_QUERIES { queries as u64 * 8 } else { 0 })
}

impl Plan {
    /// The steps of each stage that follow one another. Where chunks are computed again, stages
    /// take turns and have many runs.
    pub fn stage_runs(&self) -> Vec<Range<usize>> {
        let runs = self.steps.chunk_by(|step, next| step.stage == next.stage);
        let mut start = 0;
        let range = |run: &[Step]| {
            start += run.len();
            start - run.len()..start
        };
        runs.map(range).collect()
    }

    /// Weights that launches bind as such, by index into [`Plan::weights`]: those stay on the GPU.
    pub fn bound_weights(&self) -> impl Iterator<Item = usize> {
        let bindings = self.steps.iter().flat_map(|step| match &step.action {
            Action::Dispatch { bindings, .. } => bindings.as_slice(),
            _ => &[],
        });
        let weights = bindings.filter_map(|binding| match binding {
            Resource::Weight(weight) => Some(weight.0),
            Resource::Buffer(_) | Resource::Unused => None,
        });
        weights.into_set().into_iter()
    }
}
