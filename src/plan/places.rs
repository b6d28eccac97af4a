//! Slots, and what lies in them while [`crate::plan::spill`] walks the steps of a plan.

use crate::plan::uses::Item;
use crate::tensor::Bytes;

/// Memory for items, with the items that are in it now.
#[derive(Debug)]
pub(super) enum Places {
    /// Slots of fixed sizes.
    Slots(Vec<Slot>),
    /// Memory in which items lie anywhere. Another pass places them.
    Anywhere {
        /// Free bytes.
        free: u64,
        /// Items with their sizes.
        tenants: Vec<(Item, u64)>,
    },
}

/// Memory of a fixed size.
#[derive(Debug)]
pub(super) struct Slot {
    bytes: u64,
    /// Without overlap, in order of their places.
    tenants: Vec<Tenant>,
}

/// An item in a slot, with its first byte and the byte after its last.
#[derive(Debug, Clone, Copy)]
struct Tenant {
    item: Item,
    start: u64,
    end: u64,
}

/// Tells whether an item may not be in the same slot.
pub(super) type IsApart<'a> = &'a dyn Fn(Item) -> bool;
/// Returns the cost of evicting a byte of an item, `None` if it must stay.
pub(super) type Cost<'a> = &'a dyn Fn(Item) -> Option<f64>;

/// A place in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Index of the slot.
    pub(super) slot: usize,
    /// First byte.
    pub(super) offset: u64,
}

/// A place for an item, if the tenants within its bounds leave.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    place: Place,
    /// Cost of evicting the tenants.
    cost: f64,
    /// End of the free range that is there then.
    end: u64,
    /// Bytes of that range that the item does not take.
    rest: u64,
}

impl Places {
    /// Returns empty slots of these sizes.
    pub(super) fn slots(sizes: &[Bytes]) -> Self {
        Self::Slots(sizes.iter().map(|bytes| Slot { bytes: bytes.0, tenants: Vec::new() }).collect())
    }

    /// Returns empty memory of `room` bytes without slots.
    pub(super) fn anywhere(room: Bytes) -> Self {
        Self::Anywhere { free: room.0, tenants: Vec::new() }
    }

    /// Returns the sizes of the slots.
    pub(super) fn sizes(&self) -> Vec<Bytes> {
        match self {
            Self::Slots(slots) => slots.iter().map(|slot| Bytes(slot.bytes)).collect(),
            Self::Anywhere { .. } => Vec::new(),
        }
    }

    /// Returns the cheapest place for `bytes`, and the items that must leave it. Among places that
    /// cost the same, it is the one in the smallest free range. Items that `is_apart` names must
    /// leave the slot of that place. Returns `None` if there is no place.
    pub(super) fn find(&self, bytes: Bytes, is_apart: IsApart<'_>, cost: Cost<'_>) -> Option<(Place, Vec<Item>)> {
        match self {
            Self::Slots(slots) => find_in_slots(slots, bytes.0, is_apart, cost),
            Self::Anywhere { free, tenants } => {
                Some((Place { slot: 0, offset: 0 }, cheapest(bytes.0.saturating_sub(*free), tenants, cost)?))
            }
        }
    }

    /// Puts `item` of `bytes` at `place`, which must be free.
    pub(super) fn put(&mut self, place: Place, bytes: Bytes, item: Item) {
        match self {
            Self::Slots(slots) => {
                let tenants = &mut slots[place.slot].tenants;
                let at = tenants.partition_point(|tenant| tenant.start < place.offset);
                tenants.insert(at, Tenant { item, start: place.offset, end: place.offset + bytes.0 });
            }
            Self::Anywhere { free, tenants } => {
                *free -= bytes.0;
                tenants.push((item, bytes.0));
            }
        }
    }

    /// Removes `item` of `bytes` from its place.
    pub(super) fn remove(&mut self, place: Place, bytes: Bytes, item: Item) {
        match self {
            Self::Slots(slots) => slots[place.slot].tenants.retain(|tenant| tenant.item != item),
            Self::Anywhere { free, tenants } => {
                *free += bytes.0;
                tenants.retain(|(tenant, _)| *tenant != item);
            }
        }
    }
}

/// Returns the items of `tenants` that cost least, at least `bytes` together. Returns `None` if too
/// many must stay.
fn cheapest(mut bytes: u64, tenants: &[(Item, u64)], cost: Cost<'_>) -> Option<Vec<Item>> {
    let mut leaving = Vec::new();
    while bytes > 0 {
        let mut best: Option<(f64, Item, u64)> = None;
        for (item, size) in tenants.iter().filter(|(item, _)| !leaving.contains(item)) {
            let Some(cost) = cost(*item) else { continue };
            if best.is_none_or(|best| cost < best.0 || cost <= best.0 && (best.2, best.1) < (*size, *item)) {
                best = Some((cost, *item, *size));
            }
        }
        let (_, item, size) = best?;
        leaving.push(item);
        bytes = bytes.saturating_sub(size);
    }
    Some(leaving)
}

/// See [`Places::find`].
fn find_in_slots(slots: &[Slot], bytes: u64, is_apart: IsApart<'_>, cost: Cost<'_>) -> Option<(Place, Vec<Item>)> {
    let mut best: Option<Candidate> = None;
    let mut others = Vec::new();
    for (index, slot) in slots.iter().enumerate().filter(|(_, slot)| slot.bytes >= bytes) {
        let most = best.map_or(f64::INFINITY, |best| best.cost);
        let better = slot.best(index, bytes, is_apart, cost, most, &mut others);
        best = better.filter(|better| best.is_none_or(|best| better.is_before(best))).or(best);
        if best.is_some_and(|best| best.cost <= 0.0 && best.rest == 0) {
            break;
        }
    }
    let Candidate { place, end, .. } = best?;
    let leaves = |tenant: &&Tenant| tenant.start < end && tenant.end > place.offset || is_apart(tenant.item);
    let leaving = slots[place.slot].tenants.iter().filter(leaves).map(|tenant| tenant.item).collect();
    Some((place, leaving))
}

impl Slot {
    /// Returns the best place for `bytes` in this slot, the slot `index`, if one costs at most
    /// `most`. See [`Places::find`]. `others` is memory for the tenants that may stay.
    fn best(
        &self,
        index: usize,
        bytes: u64,
        is_apart: IsApart<'_>,
        cost: Cost<'_>,
        mut most: f64,
        others: &mut Vec<Tenant>,
    ) -> Option<Candidate> {
        let mut leaving = 0.0;
        others.clear();
        for tenant in &self.tenants {
            if is_apart(tenant.item) {
                leaving += tenant.cost(cost)?;
            } else {
                others.push(*tenant);
            }
        }
        let mut best: Option<Candidate> = None;
        for first in 0..=others.len() {
            let Some(range) = free_range(self.bytes, others, first, bytes, cost, (leaving, most)) else { continue };
            let (place, rest) = (Place { slot: index, offset: range.start }, range.end - range.start - bytes);
            let candidate = Candidate { place, cost: range.cost, end: range.end, rest };
            if best.is_none_or(|best| candidate.is_before(best)) {
                most = candidate.cost.min(most);
                best = Some(candidate);
            }
        }
        best
    }
}

impl Tenant {
    /// Returns the cost of evicting this tenant. `cost` is that of a byte.
    #[expect(clippy::cast_precision_loss, reason = "a score")]
    fn cost(&self, cost: Cost<'_>) -> Option<f64> {
        Some(cost(self.item)? * (self.end - self.start) as f64)
    }
}

impl Candidate {
    /// True if this is the better one of two places.
    fn is_before(&self, other: Self) -> bool {
        self.cost.total_cmp(&other.cost).then(self.rest.cmp(&other.rest)).is_lt()
    }
}

/// A range of a slot, and what it costs to free it.
struct FreeRange {
    start: u64,
    end: u64,
    cost: f64,
}

/// Returns the range of at least `bytes` in a slot of `size` that is free when some tenants from
/// `first` on leave. `leaving` is what the slot costs besides them. Returns `None` if one of them
/// must stay, if the slot ends before, or if all costs more than `most`.
fn free_range(
    size: u64,
    tenants: &[Tenant],
    first: usize,
    bytes: u64,
    cost: Cost<'_>,
    (leaving, most): (f64, f64),
) -> Option<FreeRange> {
    let start = first.checked_sub(1).map_or(0, |before| tenants[before].end);
    let mut sum = 0.0;
    for next in first.. {
        if leaving + sum > most {
            return None;
        }
        let tenant = tenants.get(next);
        let end = tenant.map_or(size, |tenant| tenant.start);
        if end >= start + bytes {
            return Some(FreeRange { start, end, cost: leaving + sum });
        }
        sum += tenant?.cost(cost)?;
    }
    None
}
