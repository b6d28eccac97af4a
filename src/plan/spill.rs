//! Makes a plan fit less memory: moves weights and activations that are not needed for a while to
//! host memory and back. If activations may move, it also places all buffers in slots of given
//! sizes; otherwise [`crate::plan::memory`] places them afterwards.
//!
//! The plan's launches and their order stay as they are. Only the places of their buffers change,
//! so the result is the same to the bit. The pass works like a register allocator: it walks the
//! steps, and before each step it gives everything that the step uses a place. Where there is none,
//! it evicts what lies side by side in one slot, moves few bytes and is needed again late. A buffer
//! that comes back is a new buffer, and may come back elsewhere. Weights start in host memory and
//! are never written, so evicting one costs nothing but its return. Activations are parked only
//! where that is allowed. Chunks are the unit: smaller chunks need less room at once.
//!
//! Decided elsewhere: the sizes of the slots (`slots`), what is computed again
//! ([`crate::plan::retention`]), and the sizes of chunks ([`crate::plan::partition`]).

use crate::ordered::{Map, by_key};
use crate::plan::places::{Place, Places};
use crate::plan::turns::Turns;
use crate::plan::uses::{Item, Uses};
use crate::plan::{
    ALIGNMENT, Action, BufferId, BufferUse, HostSource, ParkedId, Plan, Resource, SlotId, Step, Weights,
};
use crate::tensor::Bytes;

/// The kinds of memory that may leave the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct May {
    /// True if activations may wait in host memory.
    pub park: bool,
    /// Place of the weights before the plan runs.
    pub weights: Weights,
}

/// Steps and buffers without places, and their uses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unplaced<'a> {
    pub(super) steps: &'a [Step],
    pub(super) buffers: &'a [BufferUse],
    pub(super) uses: &'a Uses,
    /// For each item, those that may not share its slot; empty without slots.
    pub(super) apart: &'a [Vec<Item>],
}

/// Rewrites `unplaced` into `plan`, whose buffers lie in `places`. Returns `None` if something
/// finds no place. `plan` then holds only some of the steps; another call may still replace them.
pub(super) fn spill(plan: &mut Plan, unplaced: Unplaced<'_>, places: Places, may: May) -> Option<()> {
    let mut spilling = Spilling::new(plan, unplaced, places, may);
    for (index, step) in unplaced.steps.iter().enumerate() {
        spilling.make_resident(index, step.stage)?;
        spilling.move_step(step.clone());
        spilling.release(index);
    }
    if !plan.slots.is_empty() {
        trim(plan);
    }
    Some(())
}

/// Makes slots as small as their buffers allow, and drops those without buffers.
fn trim(plan: &mut Plan) {
    let mut used = vec![Bytes(0); plan.slots.len()];
    for buffer in &plan.buffers {
        let end = buffer.offset + buffer.bytes.align_up(ALIGNMENT);
        used[buffer.slot.0] = used[buffer.slot.0].max(end);
    }
    let kept: Vec<usize> = (0..used.len()).filter(|slot| used[*slot] > Bytes(0)).collect();
    for buffer in &mut plan.buffers {
        buffer.slot.0 = kept.partition_point(|slot| *slot < buffer.slot.0);
    }
    plan.slots = kept.into_iter().map(|slot| used[slot]).collect();
}

#[derive(Debug, Clone, Default)]
struct ItemState {
    /// Buffer that holds the item now, and its place.
    current: Option<(BufferId, Place)>,
    /// Step for which the item got its place or kept it. It cannot lose it before that step.
    placed_for: Option<usize>,
    /// Number of the last search for a place that this item may not share.
    apart_in: usize,
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

struct Spilling<'a> {
    unplaced: Unplaced<'a>,
    may: May,
    items: Vec<ItemState>,
    places: Places,
    /// Number of searches for places.
    finds: usize,
    /// Copies in host memory that are free again, by size.
    unused: Map<Bytes, Vec<ParkedId>>,
    spilled: &'a mut Plan,
}

impl<'a> Spilling<'a> {
    /// Begins to rewrite `unplaced` into `plan`.
    fn new(plan: &'a mut Plan, unplaced: Unplaced<'a>, places: Places, may: May) -> Self {
        let Unplaced { steps, buffers, uses, .. } = unplaced;
        let mut items = vec![ItemState::default(); uses.bytes.len()];
        for (weight, item) in items[buffers.len()..].iter_mut().enumerate() {
            item.host = Some(HostSource::Weight(weight));
        }
        for (step, turns) in steps.iter().map(|step| step.turns).enumerate().rev() {
            for (item, _) in &uses.items[uses.range(step)] {
                let item = &mut items[*item];
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
        plan.slots = places.sizes();
        Self { unplaced, may, items, places, finds: 0, unused: Map::new(), spilled: plan }
    }

    /// Gives every item that step `index` uses a buffer, and its content if it has any. The new
    /// steps count for `stage`. Returns `None` if there is no place.
    fn make_resident(&mut self, index: usize, stage: usize) -> Option<()> {
        let uses = self.unplaced.uses;
        let used = &uses.items[uses.range(index)];
        // The largest first: they have the fewest places.
        for at in by_key(used.iter().map(|(item, _)| u64::MAX - uses.bytes[*item].0)) {
            let (item, writes) = used[at];
            if self.items[item].current.is_none() {
                let (place, leaving) = self.find(index, item)?;
                leaving.into_iter().for_each(|other| self.evict(other, stage));
                self.allocate(item, place, stage);
            }
            self.items[item].placed_for = Some(index);
            self.items[item].dirty |= writes;
        }
        Some(())
    }

    /// Returns the best place for `item`, which step `index` uses, and the items that must leave.
    fn find(&mut self, index: usize, item: Item) -> Option<(Place, Vec<Item>)> {
        self.finds += 1;
        for other in self.unplaced.apart.get(item).into_iter().flatten() {
            self.items[*other].apart_in = self.finds;
        }
        let is_apart = |other: Item| self.items[other].apart_in == self.finds;
        self.places.find(self.unplaced.uses.bytes[item], &is_apart, &|other| self.cost(index, other))
    }

    /// Returns the cost of evicting a byte of `item` before step `index`: how often the byte moves,
    /// divided by the steps until the item is needed again. Returns `None` if it must stay.
    #[expect(clippy::cast_precision_loss, reason = "a score")]
    fn cost(&self, index: usize, item: Item) -> Option<f64> {
        // Something that this step uses, too, would come back at once.
        const AT_ONCE: f64 = 16.0;
        let state = &self.items[item];
        let next = state.next?;
        if state.placed_for == Some(index) || state.dirty && !self.may.park {
            return None;
        }
        let moves = if state.dirty { 2.0 } else { 1.0 };
        Some(if next == index { moves * AT_ONCE } else { moves / (next - index) as f64 })
    }

    fn allocate(&mut self, item: Item, place: Place, stage: usize) {
        let buffers = self.unplaced.buffers;
        let (name, bytes) = match buffers.get(item) {
            Some(buffer) => (buffer.name.clone(), buffer.bytes),
            None => {
                let weight = &self.spilled.weights[item - buffers.len()];
                (weight.name.clone(), weight.bytes)
            }
        };
        let (slot, offset) = (SlotId(place.slot), Bytes(place.offset));
        self.spilled.buffers.push(BufferUse { name, bytes, live: 0..0, slot, offset });
        let buffer = BufferId(self.spilled.buffers.len() - 1);
        self.places.put(place, self.unplaced.uses.bytes[item], item);
        let state = &mut self.items[item];
        state.current = Some((buffer, place));
        if let Some(from) = state.host {
            let turns = state.turns;
            self.spilled.steps.push(Step { stage, action: Action::Fetch { from, to: buffer }, macs: 0, turns });
        }
    }

    /// Takes its place from `item`, and moves it to the host if it was written.
    fn evict(&mut self, item: Item, stage: usize) {
        let bytes = self.unplaced.uses.bytes[item];
        let state = &mut self.items[item];
        let Some((buffer, place)) = state.current.take() else { return };
        self.places.remove(place, bytes, item);
        if std::mem::take(&mut state.dirty) {
            let parked = match state.host {
                Some(HostSource::Parked(parked)) => parked,
                Some(HostSource::Weight(_) | HostSource::Input(_)) | None => {
                    self.unused.get_mut(&bytes).and_then(Vec::pop).unwrap_or_else(|| {
                        self.spilled.parked.push(bytes);
                        ParkedId(self.spilled.parked.len() - 1)
                    })
                }
            };
            state.host = Some(HostSource::Parked(parked));
            let (action, turns) = (Action::Park { from: buffer, to: parked }, state.turns);
            self.spilled.steps.push(Step { stage, action, macs: 0, turns });
        }
    }

    /// Appends `step`, with its buffers replaced by their current ones.
    fn move_step(&mut self, mut step: Step) {
        let buffers = self.unplaced.buffers.len();
        let place =
            |buffer: &mut BufferId| *buffer = self.items[buffer.0].current.map_or(*buffer, |(current, _)| current);
        match &mut step.action {
            Action::Copy { from, to, .. } => [from, to].into_iter().for_each(|end| place(&mut end.0)),
            Action::Dispatch { bindings, .. } => bindings.iter_mut().for_each(|binding| match binding {
                Resource::Buffer(buffer) => place(buffer),
                Resource::Weight(weight) if self.may.weights == Weights::Host => {
                    let mut buffer = BufferId(buffers + weight.0);
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

    /// Frees the items that step `index` was the last to use.
    fn release(&mut self, index: usize) {
        let uses = self.unplaced.uses;
        for at in uses.range(index) {
            let item = uses.items[at].0;
            let state = &mut self.items[item];
            state.next = uses.next[at];
            if state.next.is_none()
                && let Some((_, place)) = state.current.take()
            {
                self.places.remove(place, uses.bytes[item], item);
                if let Some(HostSource::Parked(parked)) = state.host.take() {
                    self.unused.or_insert(self.spilled.parked[parked.0], Vec::new()).push(parked);
                }
            }
        }
    }
}
