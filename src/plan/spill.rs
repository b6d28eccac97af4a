//! Makes a plan fit less memory, exactly: what is not needed for a while waits in host memory, weights included.
//!
//! The plan's launches stay as they are, in their order; only where their buffers live changes, so the result is the same to the bit.
//! It is what a compiler does with registers: walk the steps; before a step make room for what it uses by evicting what is
//! needed again last (Belady's rule); what comes back gets a new buffer. Weights start in host memory and are never written, so evicting
//! one costs nothing but its return; activations are parked only where that is allowed. Chunks are the unit: smaller chunks need less room at once.
//!
//! Never computes anything again, never changes a chunk; see [`crate::plan::residence`] and [`crate::plan::partition`].

use std::collections::{BTreeMap, BTreeSet};

use crate::kernels::{Access, interface};
use crate::plan::{Action, BufferId, BufferUse, HostSource, ParkedId, Plan, Resource, SlotId, Step, Weights};
use crate::tensor::Bytes;

/// A buffer or a weight of the plan before.
type Item = usize;

/// What may leave the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct May {
    /// Activations may wait in host memory.
    pub park: bool,
    /// Where the weights are.
    pub weights: Weights,
}

/// Rewrites a lowered plan so that at no step more than `room` bytes of its buffers, and of its weights where those come from the host, exist.
/// `None` when something that must stay needs more.
pub fn spill(plan: &Plan, room: Bytes, may: May) -> Option<Plan> {
    let mut spilling = Spilling::new(plan, room, may);
    for (index, step) in plan.steps.iter().enumerate() {
        spilling.make_resident(index)?;
        spilling.copy_step(step);
        spilling.release(index);
    }
    Some(spilling.spilled)
}

#[derive(Debug, Clone, Default)]
struct Place {
    /// Where it is now.
    current: Option<BufferId>,
    /// Written since it was last in host memory.
    dirty: bool,
    /// Its copy in host memory.
    host: Option<HostSource>,
    /// Steps that use it, last first.
    uses: Vec<usize>,
}

struct Spilling<'a> {
    plan: &'a Plan,
    room: u64,
    may: May,
    resident: u64,
    items: Vec<Place>,
    uses: Uses,
    /// What can be evicted, the best last: next use, whether that costs nothing, bytes, which.
    evictable: BTreeSet<(usize, bool, Bytes, Item)>,
    /// Host memory whose content nobody wants any more, by size.
    unused: BTreeMap<Bytes, Vec<ParkedId>>,
    spilled: Plan,
}

impl<'a> Spilling<'a> {
    fn new(plan: &'a Plan, room: Bytes, may: May) -> Self {
        let uses = Uses::new(plan, may.weights);
        let mut items = vec![Place::default(); plan.buffers.len() + plan.weights.len()];
        for step in (0..plan.steps.len()).rev() {
            for (item, _) in uses.of(step) {
                items[*item].uses.push(step);
            }
        }
        for (index, item) in items[plan.buffers.len()..].iter_mut().enumerate() {
            item.host = Some(HostSource::Weight(index));
        }
        let spilled = Plan { steps: Vec::new(), buffers: Vec::new(), ..plan.clone() };
        Self {
            plan,
            room: room.0,
            may,
            resident: 0,
            items,
            uses,
            evictable: BTreeSet::new(),
            unused: BTreeMap::new(),
            spilled,
        }
    }

    /// Gives everything that step `index` uses a buffer, and its content where it has one.
    fn make_resident(&mut self, index: usize) -> Option<()> {
        let used = self.uses.range(index);
        let stage = self.plan.steps[index].stage;
        for at in used.clone() {
            if let Some(key) = self.key(self.uses.items[at].0) {
                self.evictable.remove(&key);
            }
        }
        for at in used {
            let (item, writes) = self.uses.items[at];
            if self.items[item].current.is_none() {
                let bytes = item_bytes(self.plan, item).0;
                while self.resident + bytes > self.room {
                    self.evict(stage)?;
                }
                self.allocate(item, stage);
            }
            self.items[item].dirty |= writes;
        }
        Some(())
    }

    /// Where `item` stands among what can be evicted. `None` if it cannot.
    fn key(&self, item: Item) -> Option<(usize, bool, Bytes, Item)> {
        let place = &self.items[item];
        let next = *place.uses.last()?;
        let may = place.current.is_some() && (self.may.park || !place.dirty);
        may.then(|| (next, !place.dirty, item_bytes(self.plan, item), item))
    }

    fn allocate(&mut self, item: Item, stage: usize) {
        let (name, bytes) = match self.plan.buffers.get(item) {
            Some(buffer) => (buffer.name.clone(), buffer.bytes),
            None => {
                let weight = &self.plan.weights[item - self.plan.buffers.len()];
                (weight.name.clone(), weight.bytes)
            }
        };
        self.spilled.buffers.push(BufferUse { name, bytes, live: 0..0, slot: SlotId(0), offset: Bytes(0) });
        let buffer = BufferId(self.spilled.buffers.len() - 1);
        let place = &mut self.items[item];
        place.current = Some(buffer);
        self.resident += item_bytes(self.plan, item).0;
        if let Some(from) = place.host {
            self.spilled.steps.push(Step { stage, action: Action::Fetch { from, to: buffer }, macs: 0 });
        }
    }

    /// Frees the buffer that is needed again last; of those needed again at the same step, one that costs nothing to evict, then the largest.
    /// `None` when everything that could leave is needed now.
    fn evict(&mut self, stage: usize) -> Option<()> {
        let (.., victim) = self.evictable.pop_last()?;
        let place = &mut self.items[victim];
        let buffer = place.current.take()?;
        if place.dirty {
            place.dirty = false;
            let parked = match place.host {
                Some(HostSource::Parked(parked)) => parked,
                Some(HostSource::Weight(_) | HostSource::Input(_)) | None => {
                    let bytes = item_bytes(self.plan, victim);
                    self.unused.get_mut(&bytes).and_then(Vec::pop).unwrap_or_else(|| {
                        self.spilled.parked.push(bytes);
                        ParkedId(self.spilled.parked.len() - 1)
                    })
                }
            };
            place.host = Some(HostSource::Parked(parked));
            self.spilled.steps.push(Step { stage, action: Action::Park { from: buffer, to: parked }, macs: 0 });
        }
        self.resident -= item_bytes(self.plan, victim).0;
        Some(())
    }

    fn copy_step(&mut self, step: &Step) {
        let place = |buffer: BufferId| self.items[buffer.0].current.unwrap_or(buffer);
        let action = match &step.action {
            Action::Copy { from, to, bytes } => {
                Action::Copy { from: (place(from.0), from.1), to: (place(to.0), to.1), bytes: *bytes }
            }
            Action::Dispatch { variant, workgroups, params, bindings } => {
                let moved = |binding: &Resource| match (binding, self.may.weights) {
                    (Resource::Buffer(buffer), _) => Resource::Buffer(place(*buffer)),
                    (Resource::Weight(weight), Weights::Host) => {
                        Resource::Buffer(place(BufferId(self.plan.buffers.len() + weight.0)))
                    }
                    (Resource::Weight(_) | Resource::Unused, _) => *binding,
                };
                let bindings = bindings.iter().map(moved).collect();
                Action::Dispatch { variant: *variant, workgroups: *workgroups, params: params.clone(), bindings }
            }
            Action::Output { from, rows } => Action::Output { from: place(*from), rows: *rows },
            Action::Fetch { from, to } => Action::Fetch { from: *from, to: place(*to) },
            Action::Park { .. } => unreachable!("a plan is spilled once"),
        };
        self.spilled.steps.push(Step { action, stage: step.stage, macs: step.macs });
    }

    /// Frees what step `index` was the last to use; the rest of what it used may be evicted again.
    fn release(&mut self, index: usize) {
        for at in self.uses.range(index) {
            let item = self.uses.items[at].0;
            let place = &mut self.items[item];
            place.uses.pop();
            if place.uses.is_empty() && place.current.take().is_some() {
                self.resident -= item_bytes(self.plan, item).0;
                if let Some(HostSource::Parked(parked)) = place.host.take() {
                    self.unused.entry(self.spilled.parked[parked.0]).or_default().push(parked);
                }
            }
            self.evictable.extend(self.key(item));
        }
    }
}

/// What each step uses, and whether it writes it.
struct Uses {
    items: Vec<(Item, bool)>,
    /// Where those of each step end.
    ends: Vec<usize>,
}

impl Uses {
    /// Those of `plan`'s steps. Weights count where they come from the host.
    fn new(plan: &Plan, weights: Weights) -> Self {
        let mut uses = Self { items: Vec::with_capacity(plan.steps.len() * 4), ends: Vec::new() };
        for step in &plan.steps {
            let start = uses.items.len();
            uses.add(plan, &step.action, weights);
            uses.tidy(start);
            uses.ends.push(uses.items.len());
        }
        uses
    }

    fn add(&mut self, plan: &Plan, action: &Action, weights: Weights) {
        match action {
            Action::Copy { from, to, .. } => self.items.extend([(from.0.0, false), (to.0.0, true)]),
            Action::Output { from, .. } => self.items.push((from.0, false)),
            Action::Dispatch { variant, bindings, .. } => {
                let declared = interface(plan.variants[*variant].file).bindings;
                let used = bindings.iter().zip(declared).filter_map(|(binding, (_, access))| {
                    let writes = *access == Access::ReadWrite;
                    match (binding, weights) {
                        (Resource::Buffer(buffer), _) => Some((buffer.0, writes)),
                        (Resource::Weight(weight), Weights::Host) => Some((plan.buffers.len() + weight.0, false)),
                        (Resource::Weight(_), Weights::Device) | (Resource::Unused, _) => None,
                    }
                });
                self.items.extend(used);
            }
            Action::Fetch { from: HostSource::Input(_), to } => self.items.push((to.0, true)),
            Action::Fetch { .. } | Action::Park { .. } => unreachable!("a plan is spilled once"),
        }
    }

    /// From `start` on: what is bound twice counts once, as written if either binding writes it.
    fn tidy(&mut self, start: usize) {
        self.items[start..].sort_unstable();
        let mut kept = start;
        for at in start..self.items.len() {
            if kept > start && self.items[kept - 1].0 == self.items[at].0 {
                self.items[kept - 1].1 |= self.items[at].1;
            } else {
                self.items[kept] = self.items[at];
                kept += 1;
            }
        }
        self.items.truncate(kept);
    }

    fn range(&self, step: usize) -> std::ops::Range<usize> {
        step.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[step]
    }

    fn of(&self, step: usize) -> &[(Item, bool)] {
        &self.items[self.range(step)]
    }
}

fn item_bytes(plan: &Plan, item: Item) -> Bytes {
    match plan.buffers.get(item) {
        Some(buffer) => buffer.bytes.align_up(super::memory::ALIGNMENT),
        None => plan.weights[item - plan.buffers.len()].bytes.align_up(super::memory::ALIGNMENT),
    }
}
