//! Makes a plan fit less memory, exactly: what is not needed for a while waits in host memory,
//! weights included.
//!
//! The plan's launches stay as they are, in their order; only where their buffers live changes, so
//! the result is the same to the bit. It is what a compiler does with registers: walk the steps;
//! before a step make room for what it uses by evicting what is needed again last (Belady's rule);
//! what comes back gets a new buffer. Weights start in host memory and are never written, so
//! evicting one costs nothing but its return; activations are parked only where that is allowed.
//! Chunks are the unit: smaller chunks need less room at once.
//!
//! Never computes anything again, never changes a chunk; see [`crate::plan::residence`] and
//! [`crate::plan::partition`].

use std::collections::{BTreeMap, BinaryHeap};

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

/// Gives `plan` the lowered `steps` on `buffers`, rewritten so that at no step more than `room`
/// bytes of its buffers, and of its weights where those come from the host, exist. `None` when
/// something that must stay needs more: `plan` has some of them then, and may be given others.
pub fn spill(plan: &mut Plan, steps: &[Step], buffers: &[BufferUse], room: Bytes, may: May) -> Option<()> {
    let mut spilling = Spilling::new(plan, steps, buffers, room, may);
    for (index, step) in steps.iter().enumerate() {
        spilling.make_resident(index, step.stage)?;
        spilling.move_step(step.clone());
        spilling.release(index);
    }
    Some(())
}

#[derive(Debug, Clone, Default)]
struct Place {
    /// What it takes.
    bytes: Bytes,
    /// Where it is now.
    current: Option<BufferId>,
    /// Written since it was last in host memory.
    dirty: bool,
    /// Its copy in host memory.
    host: Option<HostSource>,
    /// The next step that uses it.
    next: Option<usize>,
}

/// Keys of each item, on average, of which all but one are no longer its own: with more they are
/// thrown away.
const MOST_KEYS: usize = 8;

/// Where an item stands among what can be evicted: next use, whether evicting it costs nothing,
/// bytes, which.
type Key = (usize, bool, Bytes, Item);

struct Spilling<'a> {
    /// The buffers of the plan before: the first items. Weights follow.
    buffers: &'a [BufferUse],
    room: u64,
    may: May,
    resident: u64,
    items: Vec<Place>,
    uses: Uses,
    /// What can be evicted, the best first. Items that have been used or evicted since they were
    /// put here stand here still, by keys that are no longer theirs: few uses are followed by an
    /// eviction, and taking each out would be most of the work.
    evictable: BinaryHeap<Key>,
    /// Host memory whose content nobody wants any more, by size.
    unused: BTreeMap<Bytes, Vec<ParkedId>>,
    spilled: &'a mut Plan,
}

impl<'a> Spilling<'a> {
    /// Begins to rewrite `steps` for `plan`.
    fn new(plan: &'a mut Plan, steps: &[Step], buffers: &'a [BufferUse], room: Bytes, may: May) -> Self {
        let uses = Uses::new(plan, steps, buffers.len(), may.weights);
        let aligned = |bytes: Bytes| Place { bytes: bytes.align_up(super::memory::ALIGNMENT), ..Place::default() };
        let activations = buffers.iter().map(|buffer| aligned(buffer.bytes));
        let weights = plan.weights.iter().enumerate();
        let weights =
            weights.map(|(index, weight)| Place { host: Some(HostSource::Weight(index)), ..aligned(weight.bytes) });
        let mut items: Vec<Place> = activations.chain(weights).collect();
        for step in (0..steps.len()).rev() {
            for (item, _) in &uses.items[uses.range(step)] {
                items[*item].next = Some(step);
            }
        }
        plan.steps.clear();
        plan.buffers.clear();
        plan.parked.clear();
        plan.steps.reserve(steps.len());
        plan.buffers.reserve(buffers.len());
        Self {
            buffers,
            room: room.0,
            may,
            resident: 0,
            items,
            uses,
            evictable: BinaryHeap::new(),
            unused: BTreeMap::new(),
            spilled: plan,
        }
    }

    /// Gives everything that step `index`, which is of `stage`, uses a buffer, and its content
    /// where it has one.
    fn make_resident(&mut self, index: usize, stage: usize) -> Option<()> {
        for at in self.uses.range(index) {
            let (item, writes) = self.uses.items[at];
            if self.items[item].current.is_none() {
                let bytes = self.items[item].bytes.0;
                while self.resident + bytes > self.room {
                    self.evict(index, stage)?;
                }
                self.allocate(item, stage);
            }
            self.items[item].dirty |= writes;
        }
        Some(())
    }

    /// Where `item` stands among what can be evicted. `None` if it cannot.
    fn key(&self, item: Item) -> Option<Key> {
        let place = &self.items[item];
        let next = place.next?;
        let may = place.current.is_some() && (self.may.park || !place.dirty);
        may.then_some((next, !place.dirty, place.bytes, item))
    }

    fn allocate(&mut self, item: Item, stage: usize) {
        let (name, bytes) = match self.buffers.get(item) {
            Some(buffer) => (buffer.name.clone(), buffer.bytes),
            None => {
                let weight = &self.spilled.weights[item - self.buffers.len()];
                (weight.name.clone(), weight.bytes)
            }
        };
        self.spilled.buffers.push(BufferUse { name, bytes, live: 0..0, slot: SlotId(0), offset: Bytes(0) });
        let buffer = BufferId(self.spilled.buffers.len() - 1);
        let place = &mut self.items[item];
        place.current = Some(buffer);
        self.resident += place.bytes.0;
        if let Some(from) = place.host {
            self.spilled.steps.push(Step { stage, action: Action::Fetch { from, to: buffer }, macs: 0 });
        }
    }

    /// Frees the buffer that is needed again last; of those needed again at the same step, one that
    /// costs nothing to evict, then the largest. `None` when everything that could leave is needed
    /// now, at step `index`.
    fn evict(&mut self, index: usize, stage: usize) -> Option<()> {
        let victim = loop {
            let key = self.evictable.pop()?;
            let (next, .., item) = key;
            if next > index && self.key(item) == Some(key) {
                break item;
            }
        };
        let place = &mut self.items[victim];
        let buffer = place.current.take()?;
        if place.dirty {
            place.dirty = false;
            let parked = match place.host {
                Some(HostSource::Parked(parked)) => parked,
                Some(HostSource::Weight(_) | HostSource::Input(_)) | None => {
                    self.unused.get_mut(&place.bytes).and_then(Vec::pop).unwrap_or_else(|| {
                        self.spilled.parked.push(place.bytes);
                        ParkedId(self.spilled.parked.len() - 1)
                    })
                }
            };
            place.host = Some(HostSource::Parked(parked));
            self.spilled.steps.push(Step { stage, action: Action::Park { from: buffer, to: parked }, macs: 0 });
        }
        self.resident -= place.bytes.0;
        Some(())
    }

    /// The same step, with its buffers where they are now.
    fn move_step(&mut self, mut step: Step) {
        let place = |buffer: &mut BufferId| *buffer = self.items[buffer.0].current.unwrap_or(*buffer);
        match &mut step.action {
            Action::Copy { from, to, .. } => [from, to].into_iter().for_each(|end| place(&mut end.0)),
            Action::Dispatch { bindings, .. } => bindings.iter_mut().for_each(|binding| match binding {
                Resource::Buffer(buffer) => place(buffer),
                Resource::Weight(weight) if self.may.weights == Weights::Host => {
                    let mut buffer = BufferId(self.buffers.len() + weight.0);
                    place(&mut buffer);
                    *binding = Resource::Buffer(buffer);
                }
                Resource::Weight(_) | Resource::Unused => {}
            }),
            Action::Keep { from, .. } | Action::Output { from, .. } => place(from),
            Action::Fetch { to, .. } | Action::Recall { to, .. } => place(to),
            Action::Park { .. } => unreachable!("a plan is spilled once"),
        }
        self.spilled.steps.push(step);
    }

    /// Frees what step `index` was the last to use; the rest of what it used may be evicted again.
    fn release(&mut self, index: usize) {
        for at in self.uses.range(index) {
            let item = self.uses.items[at].0;
            let place = &mut self.items[item];
            place.next = self.uses.next[at];
            if place.next.is_none() && place.current.take().is_some() {
                self.resident -= place.bytes.0;
                if let Some(HostSource::Parked(parked)) = place.host.take() {
                    self.unused.entry(self.spilled.parked[parked.0]).or_default().push(parked);
                }
            }
            self.evictable.extend(self.key(item));
        }
        if self.evictable.len() > self.items.len() * MOST_KEYS {
            let mut evictable = std::mem::take(&mut self.evictable);
            evictable.retain(|key| self.key(key.3) == Some(*key));
            self.evictable = evictable;
        }
    }
}

/// What each step uses, and whether it writes it.
struct Uses {
    items: Vec<(Item, bool)>,
    /// For each of those, the next step that uses the same.
    next: Vec<Option<usize>>,
    /// Where those of each step end.
    ends: Vec<usize>,
}

impl Uses {
    /// Those of `steps` of `plan`, on so many buffers. Weights count where they come from the host.
    fn new(plan: &Plan, steps: &[Step], buffers: usize, weights: Weights) -> Self {
        let (items, ends) = (Vec::with_capacity(steps.len() * 4), Vec::with_capacity(steps.len()));
        let mut uses = Self { items, next: Vec::new(), ends };
        let declared: Vec<_> = plan.variants.iter().map(|variant| interface(variant.file).bindings).collect();
        for step in steps {
            let start = uses.items.len();
            uses.add(buffers, &declared, &step.action, weights);
            uses.tidy(start);
            uses.ends.push(uses.items.len());
        }
        uses.link(buffers + plan.weights.len());
        uses
    }

    /// Fills in `next`, for so many items.
    fn link(&mut self, items: usize) {
        self.next = vec![None; self.items.len()];
        let mut next = vec![None; items];
        for step in (0..self.ends.len()).rev() {
            for at in self.range(step) {
                self.next[at] = next[self.items[at].0].replace(step);
            }
        }
    }

    /// What `action` of a plan with so many buffers uses, as often as it is bound. `declared` are
    /// the bindings of each variant.
    fn add(&mut self, buffers: usize, declared: &[&[(&str, Access)]], action: &Action, weights: Weights) {
        match action {
            Action::Copy { from, to, .. } => self.items.extend([(from.0.0, false), (to.0.0, true)]),
            Action::Keep { from, .. } | Action::Output { from, .. } => self.items.push((from.0, false)),
            Action::Dispatch { variant, bindings, .. } => {
                let used = bindings.iter().zip(declared[*variant]).filter_map(|(binding, (_, access))| {
                    let writes = *access == Access::ReadWrite;
                    match (binding, weights) {
                        (Resource::Buffer(buffer), _) => Some((buffer.0, writes)),
                        (Resource::Weight(weight), Weights::Host) => Some((buffers + weight.0, false)),
                        (Resource::Weight(_), Weights::Device) | (Resource::Unused, _) => None,
                    }
                });
                self.items.extend(used);
            }
            Action::Fetch { from: HostSource::Input(_), to } | Action::Recall { to, .. } => {
                self.items.push((to.0, true));
            }
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
}
