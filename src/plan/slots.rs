//! Chooses the sizes of the slots for [`crate::plan::spill`].
//!
//! Most buffers are chunks of about one size. Larger ones are few: transformed inputs, products and
//! filters of Winograd convolutions, weights, blocks of attention. Steps in a row use the same ones
//! again and again. So a plan has a slot for each large buffer that a stretch of steps uses. The
//! rest of the room is slots for chunks. Chunks also use the large slots while these are free.

use crate::plan::memory::ALIGNMENT;
use crate::plan::uses::{Item, Uses};
use crate::tensor::Bytes;

/// Lengths in steps of the stretches that are tried. Each step of a plan finds a slot for each of
/// its buffers in any case.
const STRETCHES: [usize; 9] = [32, 24, 16, 12, 8, 6, 4, 3, 2];
/// Fewest slots for chunks.
const LEAST_CHUNKS: u64 = 2;

/// Bounds on the sizes of slots.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Most bytes of all slots together.
    pub(super) room: Bytes,
    /// Most bytes of a chunk.
    pub(super) chunk: Bytes,
    /// Most bytes of a slot.
    pub(super) slot: Bytes,
}

/// Returns lists of the sizes of slots: first those with which least should move.
pub(super) fn choices(uses: &Uses, sizes: Sizes) -> impl Iterator<Item = Vec<Bytes>> {
    // The largest chunk may be smaller than chunks may be.
    let chunks = uses.bytes.iter().copied().filter(|bytes| *bytes <= sizes.chunk);
    let chunk = chunks.max().unwrap_or(sizes.chunk).max(Bytes(ALIGNMENT));
    let large = Large::new(uses, chunk);
    let least = large.ranks(1);
    let ranks = STRETCHES.map(|stretch| large.ranks(stretch));
    // Where the largest items of a stretch find no slots, the smaller ones may.
    let smaller = |ranks: &Vec<Bytes>| least.iter().chain(ranks.iter().skip(least.len())).copied().collect();
    let partly: Vec<Vec<Bytes>> = ranks.iter().map(smaller).collect();
    let (items, sizes) = (uses.bytes.len(), Sizes { chunk, ..sizes });
    ranks.into_iter().chain(partly).chain([least]).filter_map(move |large| filled(large, items, sizes))
}

/// Returns `slots` with as many smaller ones as there is room for. Returns `None` if there is not
/// enough. `items` is the number of items.
fn filled(mut slots: Vec<Bytes>, items: usize, sizes: Sizes) -> Option<Vec<Bytes>> {
    let Sizes { room, chunk, slot } = sizes;
    // Norms and biases are small, and would divide larger slots.
    slots.extend([Bytes(chunk.0 / 4).align_up(ALIGNMENT); 2]);
    let left = room.0.checked_sub(slots.iter().map(|bytes| bytes.0).sum())?;
    let (chunks, rest) = (left / chunk.0, left % chunk.0 / ALIGNMENT * ALIGNMENT);
    slots[0].0 += rest.min(slot.0.saturating_sub(slots[0].0));
    // More slots than items would stay empty.
    slots.extend((0..chunks).map(|_| chunk).take(items));
    (chunks >= LEAST_CHUNKS).then_some(slots)
}

/// Uses of items that are larger than a chunk.
struct Large<'a> {
    uses: &'a Uses,
    /// Steps and items, in order of the steps.
    used: Vec<(usize, Item)>,
}

impl<'a> Large<'a> {
    fn new(uses: &'a Uses, chunk: Bytes) -> Self {
        let of_step = |step| uses.items[uses.range(step)].iter().map(move |(item, _)| (step, *item));
        let used = (0..uses.steps()).flat_map(of_step).filter(|(_, item)| uses.bytes[*item] > chunk).collect();
        Self { uses, used }
    }

    /// Returns, for each rank by size, the most bytes of the item that has this rank among those
    /// that `stretch` steps use.
    fn ranks(&self, stretch: usize) -> Vec<Bytes> {
        let mut most: Vec<Bytes> = Vec::new();
        // Stretches overlap by half.
        let part = (stretch / 2).max(1);
        let parts: Vec<_> = self.used.chunk_by(|one, next| one.0 / part == next.0 / part).collect();
        for (index, own) in parts.iter().enumerate() {
            let next = parts.get(index + 1).filter(|next| stretch > 1 && next[0].0 / part == own[0].0 / part + 1);
            let mut items: Vec<Item> = own.iter().chain(next.copied().unwrap_or_default()).map(|used| used.1).collect();
            items.sort_unstable();
            items.dedup();
            let mut sizes: Vec<Bytes> = items.into_iter().map(|item| self.uses.bytes[item]).collect();
            sizes.sort_unstable_by(|one, other| other.cmp(one));
            most.resize(most.len().max(sizes.len()), Bytes(0));
            most.iter_mut().zip(sizes).for_each(|(most, size)| *most = size.max(*most));
        }
        most
    }
}
