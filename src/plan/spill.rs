//! Makes a plan fit less memory: moves weights and activations that are not needed for a while to
//! host memory and back.
//!
//! The plan's launches and their order stay as they are. Only the places of their buffers change,
//! so the result is the same to the bit. The pass works like a register allocator: it walks the
//! steps, and before each step it makes room by evicting what is needed again last (Belady's rule).
//! A buffer that comes back is a new buffer. Weights start in host memory and are never written, so
//! evicting one costs nothing but its return. Activations are parked only where that is allowed.
//! Chunks are the unit: smaller chunks need less room at once.
//!
//! Recomputing and sizes of chunks are decided elsewhere: see [`crate::plan::retention`] and
//! [`crate::plan::partition`].

use std::collections::BinaryHeap;

use crate::kernels::{Access, interface};
use crate::ordered::Map;
use crate::plan::turns::Turns;
use crate::plan::{Action, BufferId, BufferUse, HostSource, ParkedId, Plan, Resource, SlotId, Step, Weights};
use crate::tensor::Bytes;

/// A buffer or a weight of the plan before spilling, by index: buffers first, then weights.
type Item = usize;

/// The kinds of memory that may leave the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct May {
    /// True if activations may wait in host memory.
    pub park: bool,
    /// Place of the weights before the plan runs.
    pub weights: Weights,
}

/// Rewrites the lowered `steps` on `buffers` into `plan`, so that at no step more than `room` bytes
/// of its buffers exist. Weights count if they come from the host. Returns `None` if memory that
/// must stay needs more. `plan` then holds only some of the steps; another call may still replace
/// them.
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
struct ItemState {
    /// Aligned size.
    bytes: Bytes,
    /// Buffer that holds the item now.
    current: Option<BufferId>,
    /// True if the buffer was written since the item was last in host memory.
    dirty: bool,
    /// Copy in host memory.
    host: Option<HostSource>,
    /// Next step that uses the item.
    next: Option<usize>,
    /// Parts of a clip in which any step uses the item; `None` for all. It moves in all of them, so
    /// that a copy in host memory is there whenever it is fetched.
    turns: Option<Turns>,
}

/// Most keys for each item, on average. At most one key of an item is current; when there are more
/// keys than this, the outdated ones are removed.
const MOST_KEYS: usize = 8;

/// Rank of an item among those that can be evicted: its next use, true if evicting it costs
/// nothing, its bytes, and the item.
type Key = (usize, bool, Bytes, Item);

struct Spilling<'a> {
    /// Buffers of the plan before spilling: the first items. Weights follow.
    buffers: &'a [BufferUse],
    room: u64,
    may: May,
    resident: u64,
    items: Vec<ItemState>,
    uses: Uses,
    /// Keys of items that can be evicted, the best first. An item that was used or evicted since
    /// leaves an outdated key here: few uses are followed by an eviction, and removing each key at
    /// once would be most of the work.
    evictable: BinaryHeap<Key>,
    /// Copies in host memory that are free again, by size.
    unused: Map<Bytes, Vec<ParkedId>>,
    spilled: &'a mut Plan,
}

impl<'a> Spilling<'a> {
    /// Begins to rewrite `steps` into `plan`.
    fn new(plan: &'a mut Plan, steps: &[Step], buffers: &'a [BufferUse], room: Bytes, may: May) -> Self {
        let uses = Uses::new(plan, steps, buffers.len(), may.weights);
        let aligned =
            |bytes: Bytes| ItemState { bytes: bytes.align_up(super::memory::ALIGNMENT), ..ItemState::default() };
        let activations = buffers.iter().map(|buffer| aligned(buffer.bytes));
        let weights = plan.weights.iter().enumerate();
        let weights =
            weights.map(|(index, weight)| ItemState { host: Some(HostSource::Weight(index)), ..aligned(weight.bytes) });
        let mut items: Vec<ItemState> = activations.chain(weights).collect();
        for step in (0..steps.len()).rev() {
            for (item, _) in &uses.items[uses.range(step)] {
                let (item, turns) = (&mut items[*item], steps[step].turns);
                let together = |(own, turns): (Turns, Turns)| own.and(turns);
                item.turns = if item.next.is_some() { item.turns.zip(turns).map(together) } else { turns };
                item.next = Some(step);
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
            unused: Map::new(),
            spilled: plan,
        }
    }

    /// Gives every item that step `index` uses a buffer, and its content if it has any. The new
    /// steps count for `stage`. Returns `None` if there is not enough room.
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

    /// Returns the rank of `item` among those that can be evicted. Returns `None` if it cannot be
    /// evicted.
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
            let turns = place.turns;
            self.spilled.steps.push(Step { stage, action: Action::Fetch { from, to: buffer }, macs: 0, turns });
        }
    }

    /// Evicts the item that is needed again last. Among items needed again at the same step, an
    /// item that costs nothing to evict comes first, then the largest. Returns `None` if everything
    /// that may leave is needed now, at step `index`.
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
            let (action, turns) = (Action::Park { from: buffer, to: parked }, place.turns);
            self.spilled.steps.push(Step { stage, action, macs: 0, turns });
        }
        self.resident -= place.bytes.0;
        Some(())
    }

    /// Appends `step`, with its buffers replaced by their current ones.
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

    /// Frees the items that step `index` was the last to use. Its other items may be evicted again.
    fn release(&mut self, index: usize) {
        for at in self.uses.range(index) {
            let item = self.uses.items[at].0;
            let place = &mut self.items[item];
            place.next = self.uses.next[at];
            if place.next.is_none() && place.current.take().is_some() {
                self.resident -= place.bytes.0;
                if let Some(HostSource::Parked(parked)) = place.host.take() {
                    self.unused.or_insert(self.spilled.parked[parked.0], Vec::new()).push(parked);
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

/// The items that each step uses, and true for each item that the step writes.
struct Uses {
    items: Vec<(Item, bool)>,
    /// Next step that uses the same item, for each use.
    next: Vec<Option<usize>>,
    /// End of each step's uses.
    ends: Vec<usize>,
}

impl Uses {
    /// Returns the uses of `steps` on `buffers` buffers. Weights count if they come from the host.
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

    /// Fills in `next`, for `items` items.
    fn link(&mut self, items: usize) {
        self.next = vec![None; self.items.len()];
        let mut next = vec![None; items];
        for step in (0..self.ends.len()).rev() {
            for at in self.range(step) {
                self.next[at] = next[self.items[at].0].replace(step);
            }
        }
    }

    /// Adds the items that `action` uses, once for each binding. `buffers` is the number of the
    /// plan's buffers, and `declared` has the bindings of each variant.
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

    /// Merges uses of one item from `start` on into one, which writes if any of them writes.
    fn tidy(&mut self, start: usize) {
        // An insertion sort: a step has few uses, and no other list is sorted by them.
        for end in start + 1..self.items.len() {
            let mut at = end;
            while at > start && self.items[at] < self.items[at - 1] {
                self.items.swap(at, at - 1);
                at -= 1;
            }
        }
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
