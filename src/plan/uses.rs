//! The items that each step of a lowered plan uses: what [`crate::plan::spill`] may move, and what
//! may not share a slot.

use std::ops::Range;

use crate::kernels::{Access, interface};
use crate::plan::{ALIGNMENT, Action, BufferUse, Plan, Resource, Step, Weights};
use crate::tensor::Bytes;

/// A buffer or a weight of the plan before spilling, by index: buffers first, then weights.
pub(super) type Item = usize;

/// The items that each step uses, and true for each item that the step writes.
#[derive(Debug)]
pub(super) struct Uses {
    pub(super) items: Vec<(Item, bool)>,
    /// Next step that uses the same item, for each use.
    pub(super) next: Vec<Option<usize>>,
    /// End of each step's uses.
    ends: Vec<usize>,
    /// Aligned size of each item.
    pub(super) bytes: Vec<Bytes>,
}

impl Uses {
    /// Returns the uses of `steps` on `buffers`. Weights of `plan` count if they come from the
    /// host.
    pub(super) fn new(plan: &Plan, steps: &[Step], buffers: &[BufferUse], weights: Weights) -> Self {
        let (items, ends) = (Vec::with_capacity(steps.len() * 4), Vec::with_capacity(steps.len()));
        let bytes = buffers.iter().map(|buffer| buffer.bytes).chain(plan.weights.iter().map(|weight| weight.bytes));
        let bytes = bytes.map(|bytes| bytes.align_up(ALIGNMENT)).collect();
        let mut uses = Self { items, next: Vec::new(), ends, bytes };
        let declared: Vec<_> = plan.variants.iter().map(|variant| interface(variant.file).bindings).collect();
        for step in steps {
            let start = uses.items.len();
            uses.add(buffers.len(), &declared, &step.action, weights);
            uses.tidy(start);
            uses.ends.push(uses.items.len());
        }
        uses.link();
        uses
    }

    /// Fills in `next`.
    fn link(&mut self) {
        self.next = vec![None; self.items.len()];
        let mut next = vec![None; self.bytes.len()];
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
            Action::Fetch { to, .. } | Action::Recall { to, .. } => self.items.push((to.0, true)),
            Action::Park { from, .. } => self.items.push((from.0, false)),
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

    /// Returns the items that may not be in the same slot as each item: one step uses both and
    /// writes at least one of them.
    pub(super) fn apart(&self) -> Vec<Vec<Item>> {
        // Bands of one chunk repeat the same pairs. This holds the pairs that were added lately, by
        // hash.
        const RECENT: usize = 1024;
        let mut recent = [(0, 0); RECENT];
        let mut pairs = Vec::new();
        let mut add = |written: Item, other: Item| {
            let pair = (written, other);
            if written != other && std::mem::replace(&mut recent[(written * 7 + other) % RECENT], pair) != pair {
                pairs.extend([(written as u64, other), (other as u64, written)]);
            }
        };
        for step in 0..self.ends.len() {
            let used = &self.items[self.range(step)];
            for (written, _) in used.iter().filter(|(_, writes)| *writes) {
                used.iter().for_each(|(other, _)| add(*written, *other));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut apart = vec![Vec::new(); self.bytes.len()];
        for (one, other) in pairs {
            apart[usize::try_from(one).unwrap_or(usize::MAX)].push(other);
        }
        apart
    }

    /// Returns the number of steps.
    pub(super) fn steps(&self) -> usize {
        self.ends.len()
    }

    /// Returns the indices of a step's uses.
    pub(super) fn range(&self, step: usize) -> Range<usize> {
        step.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[step]
    }
}
