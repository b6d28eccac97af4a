//! Chooses the sizes of the slots for [`crate::plan::spill`].
//!
//! Most buffers are chunks of about one size. Larger ones are few: transformed inputs, products and
//! filters of Winograd convolutions, weights, blocks of attention. Steps in a row use the same ones
//! again and again. So a plan has a slot for each large buffer that a stretch of steps uses. The
//! rest of the room is slots for chunks, and two for small buffers. Chunks also use the large slots
//! while these are free.

use crate::plan::ALIGNMENT;
use crate::plan::uses::{Item, Uses};
use crate::tensor::Bytes;

/// Lengths of the stretches that are tried, in steps. Each single step finds slots for its large
/// buffers in any case.
const STRETCHES: [usize; 8] = [32, 24, 16, 12, 8, 6, 4, 2];
/// Fewest slots for chunks.
const LEAST_CHUNKS: u64 = 2;

/// Returns lists of the sizes of slots that take at most `room` bytes together: first those with
/// which least should move. `chunk` is the most bytes of a chunk. Only slots for items that are
/// larger than `most` exceed it.
pub(super) fn choices(uses: &Uses, room: Bytes, chunk: Bytes, most: Bytes) -> impl Iterator<Item = Vec<Bytes>> {
    let chunk = chunk.align_up(ALIGNMENT);
    // The largest chunk may be smaller than chunks may be.
    let chunk = uses.bytes.iter().copied().filter(|bytes| *bytes <= chunk).max().unwrap_or(chunk);
    let large = Large::new(uses, chunk);
    let least = large.ranks(1);
    let ranks = STRETCHES.map(|stretch| large.ranks(stretch));
    // Where the largest items of a stretch find no slots, the smaller ones may.
    let smaller = |ranks: &Vec<Bytes>| least.iter().chain(ranks.iter().skip(least.len())).copied().collect();
    let mut all: Vec<Vec<Bytes>> =
        ranks.iter().cloned().chain(ranks.iter().map(smaller)).chain([least.clone()]).collect();
    all.dedup();
    all.into_iter().filter_map(move |large| filled(large, room, chunk.max(Bytes(ALIGNMENT)), most))
}

/// Returns `slots` with as many smaller ones as `room` has place for. Returns `None` if there is
/// not enough.
fn filled(mut slots: Vec<Bytes>, room: Bytes, chunk: Bytes, most: Bytes) -> Option<Vec<Bytes>> {
    // Norms and biases are small, and would divide larger slots.
    slots.extend([Bytes(chunk.0 / 4).align_up(ALIGNMENT); 2]);
    let left = room.0.checked_sub(slots.iter().copied().sum::<Bytes>().0)?;
    let (chunks, rest) = (left / chunk.0, left % chunk.0 / ALIGNMENT * ALIGNMENT);
    slots[0].0 += rest.min(most.0.saturating_sub(slots[0].0));
    slots.extend((0..chunks).map(|_| chunk));
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
        // A stretch is two parts, and begins at each part.
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
